#include "codegen/next_block.h"

#include <algorithm>

namespace tensorsmith::codegen {
namespace {

// Returns the size in elements of the region that the loops read, in any order; nothing if the
// region has gaps or if elements are read again.
std::optional<int64_t> without_gaps(std::vector<ReadLoop> loops, int64_t span) {
  std::sort(loops.begin(), loops.end(),
            [](const ReadLoop& a, const ReadLoop& b) { return a.coefficient < b.coefficient; });
  for (const ReadLoop& loop : loops) {
    if (loop.coefficient != span) return std::nullopt;
    span *= loop.extent;
  }
  return span;
}

// If `again` is true, looks for a block that surrounding loops read again; otherwise for the
// shortest block without gaps.
std::optional<NextBlock> find_block(std::span<const ReadLoop> loops, const StepReads& step, bool again) {
  int64_t steps = 1, uses = 1;
  std::vector<ReadLoop> within;  // loops inside a block
  if (step.count > 1) within.push_back({step.count, step.stride});
  std::vector<int64_t> weights;  // steps of the innermost loop per iteration of each loop, the
                                 // innermost loop first
  size_t around = loops.size();
  for (; around > 0; --around) {
    const ReadLoop& loop = loops[around - 1];
    if (loop.coefficient != 0 && (again ? uses > 1 : without_gaps(within, step.span).has_value())) break;
    if (loop.coefficient == 0) {
      uses *= loop.extent;
    } else if (loop.extent > 1) {
      within.push_back(loop);
    }
    weights.push_back(steps);
    steps *= loop.extent;
  }
  if (around == 0) return std::nullopt;
  const auto read = without_gaps(std::move(within), step.span);
  const int64_t distance = loops[around - 1].coefficient;
  if (!read || distance < *read || distance - *read > *read / 8) return std::nullopt;
  NextBlock next;
  next.depth = around - 1;
  next.block = distance;
  next.elements = (distance + steps - 1) / steps;
  for (auto weight = weights.rbegin(); weight != weights.rend(); ++weight)
    next.offsets.push_back(*weight * next.elements);
  return next;
}

}  // namespace

std::optional<NextBlock> next_block(std::span<const ReadLoop> loops, const StepReads& step) {
  if (auto next = find_block(loops, step, true)) return next;
  // A read of one piece per step is a stream, which needs no prefetch.
  return step.count > 1 ? find_block(loops, step, false) : std::nullopt;
}

std::optional<int64_t> next_tile(std::span<const ReadLoop> loops, int64_t stride) {
  if (loops.empty() || loops.back().coefficient < stride) return std::nullopt;
  for (size_t i = loops.size() - 1; i-- > 0;)
    if (loops[i].extent > 1 && loops[i].coefficient > 0 && loops[i].coefficient < loops.back().coefficient)
      return loops[i].coefficient;
  return std::nullopt;
}

}  // namespace tensorsmith::codegen
