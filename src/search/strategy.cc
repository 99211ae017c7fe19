#include "search/strategy.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::search {

size_t random_share(double epsilon, size_t count, Rng& rng) {
  const double expected = epsilon * count;
  const auto whole = static_cast<size_t>(std::floor(expected));
  return std::min(count, whole + (rng.bernoulli(expected - whole) ? 1 : 0));
}

std::vector<space::Candidate> fastest_measured(const StrategyView& view, size_t count) {
  std::vector<const MeasuredCandidate*> sorted;
  for (const auto& m : view.measured)
    if (std::isfinite(m.seconds)) sorted.push_back(&m);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->cost != b->cost ? a->cost < b->cost : a->seconds < b->seconds;
  });
  std::vector<space::Candidate> result;
  for (size_t i = 0; i < std::min(count, sorted.size()); ++i) result.push_back(sorted[i]->candidate);
  return result;
}

}  // namespace tensorsmith::search
