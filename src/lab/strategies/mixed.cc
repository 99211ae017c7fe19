// Half of a batch is random, half evolutionary. A model trained only on proposals of a search has
// seen no slow programs and ranks them by chance; one trained only on random programs knows little
// about the fast ones, for which it is used.
#include "lab/strategies/strategies.h"

namespace tensorsmith::lab {

namespace {

class MixedStrategy final : public search::Strategy {
 public:
  std::vector<search::ProposedCandidate> propose(const search::StrategyView& view, size_t count,
                                                 Rng& rng) override {
    auto result = evolutionary_->propose(view, count - count / 2, rng);
    search::append_random(view, count, rng, result);
    return result;
  }

 private:
  std::unique_ptr<search::Strategy> evolutionary_ = search::make_evolutionary_strategy({});
};

}  // namespace

std::unique_ptr<search::Strategy> make_mixed_strategy() { return std::make_unique<MixedStrategy>(); }

}  // namespace tensorsmith::lab
