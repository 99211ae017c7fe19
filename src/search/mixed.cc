// Half of a batch is random, half evolutionary. A model trained only on proposals of a search has
// seen no slow programs and ranks them by chance; one trained only on random programs knows little
// about the fast ones, for which it is used.
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
