// Measures only what a writer (a language model) writes, without repetition.
#include "search/best_written.h"
#include "search/strategies.h"

namespace tensorsmith::search {

namespace {

class WrittenStrategy final : public Strategy {
 public:
  std::vector<ProposedCandidate> propose(const StrategyView& view, size_t count, Rng& rng) override {
    if (view.writer == nullptr) return {};
    return best_written(view, count, rng);
  }
};

}  // namespace

std::unique_ptr<Strategy> make_written_strategy() { return std::make_unique<WrittenStrategy>(); }

}  // namespace tensorsmith::search
