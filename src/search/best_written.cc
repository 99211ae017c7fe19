#include "search/best_written.h"

#include <algorithm>
#include <cmath>

#include "search/schedule_writer.h"

namespace tensorsmith::search {

namespace {

constexpr size_t kWritten = 4;  // candidates written for each one that is proposed

}  // namespace

std::vector<ProposedCandidate> best_written(const StrategyView& view, size_t count, Rng& rng) {
  auto written = view.writer->write(kWritten * count, view.known, rng);
  if (!written.ok()) {
    view.failed(written.error());
    return {};
  }
  const auto scores = view.score(*written);
  std::vector<size_t> order;
  for (size_t i = 0; i < scores.size(); ++i)
    if (std::isfinite(scores[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<ProposedCandidate> result;
  for (size_t i = 0; i < std::min(count, order.size()); ++i)
    result.push_back({std::move((*written)[order[i]]), record::Reason::kWritten});
  return result;
}

}  // namespace tensorsmith::search
