// Simulated annealing as in AutoTVM (NeurIPS 2018): parallel chains walk by mutation, guided by the
// cost model's score at a falling temperature. The best points visited are proposed. The chains
// continue from round to round. Their number and the temperature follow from the search:
//   There is a chain for each program that is asked for, so that the proposals can all come from different
//   chains, however large a batch is.
//   The temperature begins at the mean gap between the scores of two neighbouring chains, if they are ordered
//   by score. So a typical accepted loss costs a chain one place, whatever the scale of the scores is.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lab/strategies/strategies.h"

namespace tensorsmith::lab {

namespace {

constexpr double kRestarted = 0.375;  // share of the chains that start from the fastest measured programs
constexpr size_t kFewestSteps = 8;
constexpr double kJump = 0.05;  // share of steps to a random candidate; mutation never changes the structure

class AnnealingStrategy final : public search::Strategy {
 public:
  std::vector<search::ProposedCandidate> propose(const search::StrategyView& view, size_t count,
                                                 Rng& rng) override {
    start_chains(view, count, rng);
    std::unordered_set<uint64_t> visited;
    std::vector<search::ScoredCandidate> pool;
    const auto visit = [&](const space::Candidate& c, float score) {
      if (std::isfinite(score) && visited.insert(c.hash()).second && !view.known(c))
        pool.push_back({c, score});
    };
    auto scores = view.score(chains_);
    for (size_t i = 0; i < chains_.size(); ++i) visit(chains_[i], scores[i]);
    const size_t steps = std::max(kFewestSteps, view.score_budget / std::max<size_t>(chains_.size(), 1));
    // The temperature falls linearly to 0.
    const double first = mean_gap(scores);
    for (size_t step = 0; step < steps; ++step) {
      const double temperature = first * (1.0 - static_cast<double>(step) / static_cast<double>(steps));
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
  void start_chains(const search::StrategyView& view, size_t count, Rng& rng) {
    while (chains_.size() < count) chains_.push_back(view.space->sample(rng));
    const double restarted = std::ceil(kRestarted * static_cast<double>(chains_.size()));
    const auto fastest = search::fastest_measured(view, static_cast<size_t>(restarted));
    std::copy(fastest.begin(), fastest.end(), chains_.begin());
  }

  // Returns the range of the finite scores divided by the number of gaps between them; 0 if there are none.
  static double mean_gap(std::vector<float> scores) {
    std::erase_if(scores, [](float score) { return !std::isfinite(score); });
    if (scores.size() < 2) return 0;
    const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
    return (static_cast<double>(*high) - static_cast<double>(*low)) / static_cast<double>(scores.size() - 1);
  }

  std::vector<space::Candidate> chains_;
};

}  // namespace

std::unique_ptr<search::Strategy> make_annealing_strategy() { return std::make_unique<AnnealingStrategy>(); }

}  // namespace tensorsmith::lab
