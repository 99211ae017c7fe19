// storage_align(stage, iterator, factor, offset)
//   Arguments: a leaf that is a whole spatial axis; factor > 0, offset >= 0, in elements.
//   Rewrite: the stride of that axis in the stage's storage becomes the smallest k * factor + offset that is
//     large enough (avoids bank and cache-set conflicts).
//   Checks: an unsplit spatial axis other than the innermost; the stage is no output and has no packed
//     layout.
//
//     B: 64 x 64, strides (64, 1)    storage_align axis 0, factor 32, offset 1    =>    strides (65, 1)
//
// pack_layout(stage, layout)
//   Arguments: a constant placeholder or an intermediate stage, and the layout of its elements.
//   Rewrite: the tensor is stored in this layout; a constant is packed when the model is compiled.
//   Checks: the layout covers the shape: for each tensor dimension, the digits have extents e0, e1, ... and the
//     divisors 1, e0, e0 * e1, ..., and the product of the extents is at least the dimension (dimensions of
//     extent 1 may be missing). The stage is no output and no non-constant input; an intermediate is computed
//     at root and has one output.
//
//     W: [O=40, I=8]    pack_layout {O/16 (3), I (8), O%16 (16)}    =>    3 x 8 x 16, 8 lanes of padding
#include <algorithm>
#include <utility>

#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const StorageAlign& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  TS_ASSIGN_OR_RETURN(const IteratorId leaf, find_leaf(stage, step.iterator));
  const size_t rank = stage.op->spatial.size();
  const std::string& loop = stage.iterators[leaf].name;
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (step.factor <= 0 || step.factor > kLimit) return invalid("factor is not between 1 and 2^30");
  if (step.offset < 0 || step.offset > kLimit) return invalid("offset is not between 0 and 2^30");
  if (leaf.place() >= rank)
    return illegal("loop '" + loop + "' is not a whole spatial axis; align it before splitting");
  if (leaf.place() + 1 == rank) return illegal("axis '" + loop + "' is the innermost, its stride is 1");
  if (schedule.is_output(s))
    return illegal("stage '" + stage.op->name + "' is an output of the workload, its strides are given");
  if (stage.layout) return illegal("stage '" + stage.op->name + "' has a packed layout");
  stage.storage_align = {step.factor, step.offset};
  stage.storage_align_iterator = leaf;
  return {};
}

Status apply(Schedule& schedule, const PackLayout& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  const std::string name = "stage '" + stage.op->name + "'";
  if (stage.is_placeholder()) {
    if (!stage.op->is_constant)
      return illegal(name + " is an input that is not constant, its layout is given");
  } else {
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const StageId computed, find_computed_stage(schedule, step.stage));
    if (schedule.is_output(s)) return illegal(name + " is an output of the workload, its layout is given");
    if (stage.attach == AttachKind::kAt)
      return illegal(name + " is attached to a loop; only stages at root have a layout");
    if (stage.op->outputs.size() != 1) return unsupported(name + " has two outputs, it cannot be packed");
    if (stage.storage_align) return illegal(name + " has aligned strides, so it cannot also be packed");
  }
  const std::vector<int64_t>& shape = stage.op->output()->shape;
  int64_t total = 1;
  for (const LayoutDim& digit : step.layout) {
    if (digit.dim < 0 || std::cmp_greater_equal(digit.dim, shape.size()))
      return invalid("the layout names dimension " + std::to_string(digit.dim) + ", but the tensor has " +
                     std::to_string(shape.size()));
    if (digit.divisor <= 0 || digit.extent <= 0)
      return invalid("divisors and extents of a layout must be positive");
    if (digit.extent > (int64_t{1} << 40) / total) return invalid("the layout has more than 2^40 elements");
    total *= digit.extent;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<LayoutDim> digits;
    for (const LayoutDim& digit : step.layout) {
      if (std::cmp_equal(digit.dim, d)) digits.push_back(digit);
    }
    // A digit of extent 1 has the same divisor as the digit above it.
    std::sort(digits.begin(), digits.end(), [](const LayoutDim& a, const LayoutDim& b) {
      return a.divisor != b.divisor ? a.divisor < b.divisor : a.extent < b.extent;
    });
    int64_t covered = 1;
    for (const LayoutDim& digit : digits) {
      if (digit.divisor != covered)
        return illegal("the layout's digits of dimension " + std::to_string(d) +
                       " do not fit together: divisor " + std::to_string(digit.divisor) + " where " +
                       std::to_string(covered) + " is needed");
      covered *= digit.extent;
    }
    if (covered < shape[d])
      return illegal("the layout covers " + std::to_string(covered) + " of the " + std::to_string(shape[d]) +
                     " indices of dimension " + std::to_string(d));
  }
  stage.layout = step.layout;
  return {};
}

}  // namespace tensorsmith::sched::primitives
