// Measures what a writer (a language model) writes, and nothing else: several times as many candidates as are wanted, of
// which the best by the scores are taken. What was measured is not written again.
#include <algorithm>
#include <cmath>

#include "search/schedule_writer.h"
#include "search/strategies.h"

namespace tensorsmith::search {

namespace {

constexpr size_t kWritten = 4;  // for each that is proposed

class WrittenStrategy final : public Strategy {
 public:
  std::vector<ProposedCandidate> propose(const StrategyView& view, size_t count, Rng& rng) override {
    std::vector<ProposedCandidate> result;
    if (view.writer == nullptr) return result;
    auto written = view.writer->write(kWritten * count, view.known, rng);
    if (!written.ok()) {
      view.failed(written.error());
      return result;
    }
    const auto scores = view.score(*written);
    std::vector<size_t> order;
    for (size_t i = 0; i < scores.size(); ++i)
      if (std::isfinite(scores[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    for (size_t i = 0; i < std::min(count, order.size()); ++i)
      result.push_back({std::move((*written)[order[i]]), record::Reason::kWritten});
    return result;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_written_strategy() { return std::make_unique<WrittenStrategy>(); }

}  // namespace tensorsmith::search
