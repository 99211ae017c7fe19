// Proposes nothing: only the default and candidates from outside are measured, as in
// transfer-tuning (PACT 2022).
#include "search/strategies.h"

namespace tensorsmith::search {

namespace {

class TransferStrategy final : public Strategy {
 public:
  std::vector<ProposedCandidate> propose(const StrategyView&, size_t, Rng&) override { return {}; }
};

}  // namespace

std::unique_ptr<Strategy> make_transfer_strategy() { return std::make_unique<TransferStrategy>(); }

}  // namespace tensorsmith::search
