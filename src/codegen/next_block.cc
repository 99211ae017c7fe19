#include "codegen/next_block.h"

namespace tensorsmith::codegen {

std::optional<NextBlock> next_block(std::span<const ReadLoop> loops, int64_t span) {
  NextBlock next;
  next.block = span;
  int64_t steps = 1, uses = 1;
  std::vector<int64_t> weights;  // steps of the innermost loop in an iteration, the innermost loop first
  size_t around = loops.size();
  for (; around > 0; --around) {
    const ReadLoop& loop = loops[around - 1];
    // Loops over the block come first, then those that use it again.
    if (loop.coefficient != 0 && uses > 1) break;
    if (loop.coefficient == 0) {
      uses *= loop.extent;
    } else if (loop.coefficient == next.block) {
      next.block *= loop.extent;
    } else {
      return std::nullopt;
    }
    weights.push_back(steps);
    steps *= loop.extent;
  }
  if (around == 0 || uses < 2 || loops[around - 1].coefficient != next.block) return std::nullopt;
  next.depth = static_cast<int>(around) - 1;
  next.elements = (next.block + steps - 1) / steps;
  for (auto weight = weights.rbegin(); weight != weights.rend(); ++weight)
    next.offsets.push_back(*weight * next.elements);
  return next;
}

}  // namespace tensorsmith::codegen
