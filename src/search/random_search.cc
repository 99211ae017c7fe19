// Random search: a baseline that every strategy must beat.
#include <algorithm>
#include <unordered_set>

#include "search/strategies.h"

namespace tensorsmith::search {

namespace {

// Spaces up to this size are enumerated if sampling finds nothing new.
constexpr size_t kEnumerated = 4096;

class RandomStrategy final : public Strategy {
 public:
  std::vector<ProposedCandidate> propose(const StrategyView& view, size_t count, Rng& rng) override {
    std::vector<ProposedCandidate> result;
    append_random(view, count, rng, result);
    return result;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_random_strategy() { return std::make_unique<RandomStrategy>(); }

void append_random(const StrategyView& view, size_t count, Rng& rng, std::vector<ProposedCandidate>& result) {
  std::unordered_set<uint64_t> seen;
  for (const auto& c : result) seen.insert(c.candidate.hash());
  const size_t missing = count - std::min(count, result.size());
  for (size_t misses = 0; result.size() < count && misses < 64 + 4 * missing;) {
    auto c = view.space->sample(rng);
    if (seen.insert(c.hash()).second && !view.known(c)) {
      result.push_back({std::move(c), record::Reason::kRandom});
    } else {
      ++misses;
    }
  }
  if (result.size() >= count) return;
  for (auto& c : view.space->listed(kEnumerated)) {
    if (result.size() == count) break;
    if (view.known(c) || !seen.insert(c.hash()).second) continue;
    result.push_back({std::move(c), record::Reason::kRandom});
  }
}

}  // namespace tensorsmith::search
