#include "record/metaschedule/factored_axes.h"

#include <algorithm>
#include <optional>

namespace tensorsmith::record {

namespace {

using sched::IteratorId;
using sched::Stage;

// Returns which reduce axis of the stage has this variable.
std::optional<size_t> reduce_axis_of(const ir::Operation& op, const ir::Var& var) {
  for (size_t axis = 0; axis < op.reduce.size(); ++axis) {
    if (op.reduce[axis].var == var) return axis;
  }
  return std::nullopt;
}

}  // namespace

Result<FactoredBlocks> blocks_after_rfactor(const Stage& before, const std::vector<size_t>& axes,
                                            IteratorId leaf, const Stage& partial, size_t factor) {
  const size_t rank = before.op->spatial.size();
  // The new stage keeps the variables of reduce axes that the leaf is no part of. The others are loops, in
  // their order.
  std::vector<size_t> parts;
  for (size_t axis = 0; axis < partial.op->reduce.size(); ++axis) {
    if (!reduce_axis_of(*before.op, partial.op->reduce[axis].var)) parts.push_back(rank + 1 + axis);
  }
  FactoredBlocks out;
  std::vector<size_t> axis_of_root(before.num_roots(), SIZE_MAX);
  size_t used = 0;
  for (const IteratorId loop : before.leaves) {
    const bool is_root = loop.place() < before.num_roots();
    size_t axis = SIZE_MAX;
    if (loop == leaf) {
      axis = factor;
      out.rest.loops.push_back(rank);
    } else if (loop.place() < rank) {
      axis = loop.place() + (loop.place() >= factor ? 1 : 0);
      out.rest.loops.push_back(loop.place());
    } else if (is_root) {
      const auto same = reduce_axis_of(*partial.op, before.op->reduce[loop.place() - rank].var);
      if (same) axis = rank + 1 + *same;
    } else if (used < parts.size()) {
      axis = parts[used++];
    }
    out.partial.loops.push_back(axis);
    if (is_root) axis_of_root[loop.place()] = axis;
  }
  std::vector<size_t> sorted = out.partial.loops;
  std::sort(sorted.begin(), sorted.end());
  for (size_t axis = 0; axis < sorted.size(); ++axis) {
    if (sorted[axis] != axis || sorted.size() != partial.num_roots())
      return Error{ErrorCode::kUnsupported, "", "another axis that is summed over was split or fused before"};
  }
  out.partial.axes = {factor};
  out.rest.axes = {rank};
  for (const size_t axis : axes) {
    if (axis < rank) out.rest.axes.push_back(axis);
    if (axis_of_root[axis] == factor) continue;
    if (axis_of_root[axis] != SIZE_MAX) {
      out.partial.axes.push_back(axis_of_root[axis]);
    } else {
      out.partial.axes.insert(out.partial.axes.end(), parts.begin(), parts.end());
      parts.clear();
    }
  }
  return out;
}

}  // namespace tensorsmith::record
