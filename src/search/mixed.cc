// Half of a batch random, half evolutionary. A model that has seen only what a search proposes has seen no
// slow programs and ranks them by chance; one that has seen only random programs knows little of the fast
// ones, where it is asked.
#include "search/strategies.h"

namespace tensorsmith::search {

namespace {

class MixedStrategy final : public Strategy {
 public:
  std::vector<ProposedCandidate> propose(const StrategyView& view, size_t count, Rng& rng) override {
    auto result = evolutionary_->propose(view, count - count / 2, rng);
    append_random(view, count, rng, result);
    return result;
  }

 private:
  std::unique_ptr<Strategy> evolutionary_ = make_evolutionary_strategy();
};

}  // namespace

std::unique_ptr<Strategy> make_mixed_strategy() { return std::make_unique<MixedStrategy>(); }

}  // namespace tensorsmith::search
