// Simulated annealing as in AutoTVM (NeurIPS 2018): parallel chains walk by mutation, guided by the
// cost model's score at a falling temperature. The best points visited are proposed. The chains
// continue from round to round.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lab/strategies/strategies.h"

namespace tensorsmith::lab {

namespace {

constexpr size_t kChains = 16;
constexpr size_t kRestarted = 6;  // chains that start from the fastest measured programs
constexpr double kJump = 0.05;  // share of steps to a random candidate; mutation never changes the structure

class AnnealingStrategy final : public search::Strategy {
 public:
  std::vector<search::ProposedCandidate> propose(const search::StrategyView& view, size_t count,
                                                 Rng& rng) override {
    start_chains(view, rng);
    std::unordered_set<uint64_t> visited;
    std::vector<search::ScoredCandidate> pool;
    const auto visit = [&](const space::Candidate& c, float score) {
      if (std::isfinite(score) && visited.insert(c.hash()).second && !view.known(c))
        pool.push_back({c, score});
    };
    auto scores = view.score(chains_);
    for (size_t i = 0; i < chains_.size(); ++i) visit(chains_[i], scores[i]);
    const size_t steps = std::max<size_t>(8, view.score_budget / kChains);
    // The temperature falls linearly from a share of the range of the initial scores to 0.
    const double spread = spread_of(scores);
    for (size_t step = 0; step < steps; ++step) {
      const double temperature = spread * (1.0 - static_cast<double>(step) / static_cast<double>(steps));
      std::vector<space::Candidate> next;
      for (const auto& c : chains_)
        next.push_back(rng.bernoulli(kJump) ? view.space->sample(rng) : view.space->mutate(c, rng));
      const auto next_scores = view.score(next);
      for (size_t i = 0; i < next.size(); ++i) {
        visit(next[i], next_scores[i]);
        const double gain = static_cast<double>(next_scores[i]) - static_cast<double>(scores[i]);
        const bool accept = std::isfinite(next_scores[i]) &&
                            (!std::isfinite(scores[i]) || gain >= 0 ||
                             (temperature > 0 && rng.uniform() < std::exp(gain / temperature)));
        if (!accept) continue;
        chains_[i] = next[i];
        scores[i] = next_scores[i];
      }
    }
    std::stable_sort(pool.begin(), pool.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    std::vector<search::ProposedCandidate> result;
    const size_t random = search::random_share(view.epsilon, count, rng);
    for (auto& scored : pool) {
      if (result.size() + random >= count) break;
      result.push_back({std::move(scored.candidate), record::Reason::kPredicted});
    }
    search::append_random(view, count, rng, result);
    return result;
  }

 private:
  void start_chains(const search::StrategyView& view, Rng& rng) {
    if (chains_.empty())
      for (size_t i = 0; i < kChains; ++i) chains_.push_back(view.space->sample(rng));
    const auto fastest = search::fastest_measured(view, kRestarted);
    std::copy(fastest.begin(), fastest.end(), chains_.begin());
  }

  static double spread_of(const std::vector<float>& scores) {
    double low = 0, high = 0;
    bool first = true;
    for (float s : scores) {
      if (!std::isfinite(s)) continue;
      const auto x = static_cast<double>(s);
      low = first ? x : std::min(low, x);
      high = first ? x : std::max(high, x);
      first = false;
    }
    return 0.05 * (high - low);
  }

  std::vector<space::Candidate> chains_;
};

}  // namespace

std::unique_ptr<search::Strategy> make_annealing_strategy() { return std::make_unique<AnnealingStrategy>(); }

}  // namespace tensorsmith::lab
