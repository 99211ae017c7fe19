// Proposes every candidate of a small space, in the order of the draft. For larger spaces, proposes
// all candidates of the sketches that are small enough, then random candidates.
#include <algorithm>

#include "search/strategies.h"

namespace tensorsmith::search {

namespace {

// Largest sketch that is listed, in candidates of some hundred bytes each.
constexpr size_t kListed = 50'000;

class ExhaustiveStrategy final : public Strategy {
 public:
  std::vector<ProposedCandidate> propose(const StrategyView& view, size_t count, Rng& rng) override {
    if (!listed_) list(view);
    std::vector<ProposedCandidate> result;
    for (; next_ < all_.size() && result.size() < count; ++next_)
      if (!view.known(all_[next_].candidate))
        result.push_back({all_[next_].candidate, record::Reason::kEnumerated});
    append_random(view, count, rng, result);
    return result;
  }

 private:
  void list(const StrategyView& view) {
    for (auto& candidate : view.space->listed(kListed)) {
      const auto score = static_cast<float>(view.draft(candidate));
      all_.push_back({std::move(candidate), score});
    }
    std::stable_sort(all_.begin(), all_.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    listed_ = true;
  }

  bool listed_ = false;
  std::vector<ScoredCandidate> all_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_exhaustive_strategy() { return std::make_unique<ExhaustiveStrategy>(); }

}  // namespace tensorsmith::search
