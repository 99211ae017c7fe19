// Measures only what a writer (a language model) writes, without repetition.
#include "lab/strategies/strategies.h"
#include "search/best_written.h"

namespace tensorsmith::lab {

namespace {

class WrittenStrategy final : public search::Strategy {
 public:
  std::vector<search::ProposedCandidate> propose(const search::StrategyView& view, size_t count,
                                                 Rng& rng) override {
    if (view.writer == nullptr) return {};
    return search::best_written(view, count, rng);
  }
};

}  // namespace

std::unique_ptr<search::Strategy> make_written_strategy() { return std::make_unique<WrittenStrategy>(); }

}  // namespace tensorsmith::lab
