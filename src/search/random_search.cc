// Random search: the baseline that every strategy must beat.
#include <algorithm>
#include <unordered_set>

#include "search/strategies.h"

namespace tensorsmith::search {

namespace {

// Spaces up to this size are enumerated when sampling finds nothing new.
constexpr size_t kEnumerated = 4096;

class RandomStrategy final : public Strategy {
 public:
  std::vector<space::Candidate> propose(const StrategyView& view, size_t count, Rng& rng) override {
    return sample_unseen(view, count, {}, rng);
  }
};

}  // namespace

std::unique_ptr<Strategy> make_random_strategy() { return std::make_unique<RandomStrategy>(); }

std::vector<space::Candidate> sample_unseen(const StrategyView& view, size_t count,
                                            std::span<const space::Candidate> taken, Rng& rng) {
  std::unordered_set<uint64_t> seen;
  for (const auto& c : taken) seen.insert(c.hash());
  std::vector<space::Candidate> result;
  for (size_t misses = 0; result.size() < count && misses < 64 + 4 * count;) {
    auto c = view.space->sample(rng);
    if (seen.insert(c.hash()).second && !view.known(c)) {
      result.push_back(std::move(c));
    } else {
      ++misses;
    }
  }
  for (size_t k = 0; result.size() < count && k < view.space->num_sketches(); ++k) {
    if (view.space->size(static_cast<int>(k)) > static_cast<double>(kEnumerated)) continue;
    for (auto& c : view.space->enumerate(static_cast<int>(k), kEnumerated)) {
      if (result.size() == count) break;
      if (!view.space->check(c).ok() || view.known(c) || !seen.insert(c.hash()).second) continue;
      result.push_back(std::move(c));
    }
  }
  return result;
}

std::unique_ptr<Strategy> make_strategy(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::kEvolutionary:
      return make_evolutionary_strategy();
    case StrategyKind::kRandom:
      return make_random_strategy();
    case StrategyKind::kAnnealing:
      return make_annealing_strategy();
    case StrategyKind::kMixed:
      return make_mixed_strategy();
  }
  return make_evolutionary_strategy();
}

}  // namespace tensorsmith::search
