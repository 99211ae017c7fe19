// Proposes the random candidates with the highest scores.
#include <algorithm>
#include <cmath>

#include "lab/strategies/strategies.h"

namespace tensorsmith::lab {

namespace {

class ToyStrategy final : public search::Strategy {
 public:
  std::vector<search::ProposedCandidate> propose(const search::StrategyView& view, size_t count,
                                                 Rng& rng) override {
    std::vector<search::ProposedCandidate> sampled, result;
    search::append_random(view, view.score_budget, rng, sampled);
    std::vector<space::Candidate> candidates;
    for (auto& proposed : sampled) candidates.push_back(std::move(proposed.candidate));
    const std::vector<float> scores = view.score(candidates);
    std::vector<size_t> order;
    for (size_t i = 0; i < candidates.size(); ++i)
      if (std::isfinite(scores[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return scores[i] > scores[j]; });
    order.resize(std::min(order.size(), count));
    for (const size_t i : order) result.push_back({std::move(candidates[i]), record::Reason::kPredicted});
    return result;
  }
};

}  // namespace

std::unique_ptr<search::Strategy> make_toy_strategy() { return std::make_unique<ToyStrategy>(); }

}  // namespace tensorsmith::lab
