// Coordinate descent: changes single decisions of the fastest measured programs, in the order of
// the scores. If the fastest has no step left, the next fastest is used. A part of each batch
// starts elsewhere, at the best of many random candidates.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lab/strategies/strategies.h"

namespace tensorsmith::lab {

namespace {

constexpr size_t kStarts = 8;          // most programs to step from
constexpr size_t kSampled = 256;       // random candidates for new starts
constexpr double kRestartShare = 0.2;  // share of a batch

class DescentStrategy final : public search::Strategy {
 public:
  std::vector<search::ProposedCandidate> propose(const search::StrategyView& view, size_t count,
                                                 Rng& rng) override {
    const auto restarts = static_cast<size_t>(std::lround(kRestartShare * static_cast<double>(count)));
    std::vector<search::ProposedCandidate> result;
    std::unordered_set<uint64_t> taken;
    const auto starts = search::fastest_measured(view, kStarts);
    if (!starts.empty()) {
      for (const auto& start : starts) {
        if (result.size() + restarts >= count) break;
        take_best(view, view.space->neighbours(start), count - restarts, record::Reason::kNeighbour, taken,
                  result);
      }
    }
    std::vector<space::Candidate> sampled;
    for (size_t i = 0; i < kSampled; ++i) sampled.push_back(view.space->sample(rng));
    take_best(view, std::move(sampled), count, record::Reason::kPredicted, taken, result);
    search::append_random(view, count, rng, result);
    return result;
  }

 private:
  // Appends unknown candidates, best score first, until `result` holds `most`.
  static void take_best(const search::StrategyView& view, std::vector<space::Candidate> candidates,
                        size_t most, record::Reason reason, std::unordered_set<uint64_t>& taken,
                        std::vector<search::ProposedCandidate>& result) {
    std::erase_if(candidates, [&](const auto& c) { return view.known(c) || !taken.insert(c.hash()).second; });
    const auto scores = view.score(candidates);
    std::vector<size_t> order;
    for (size_t i = 0; i < candidates.size(); ++i)
      if (std::isfinite(scores[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return scores[i] > scores[j]; });
    for (const size_t i : order) {
      if (result.size() >= most) {
        taken.erase(candidates[i].hash());
        continue;
      }
      result.push_back({std::move(candidates[i]), reason});
    }
  }
};

}  // namespace

std::unique_ptr<search::Strategy> make_descent_strategy() { return std::make_unique<DescentStrategy>(); }

}  // namespace tensorsmith::lab
