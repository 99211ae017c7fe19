// reorder(stage, order)
//   Arguments: a permutation of all leaf positions; order[i] is the old position of the new i-th loop.
//   Rewrite: the leaves are permuted. Attached stages and the init move with their loops.
//   Checks: a permutation; the stage's loops and all attachments are legal in the new order (inside a
//     vectorized loop only unrolled loops, the init outside all reduce loops, readers inside the loop that
//     their producer is attached to). The accumulation order of a reduction may change, so that floats round
//     differently.
//
//     for i (4)           reorder [1, 0]      for j (3)
//       for j (3)              =>               for i (4)
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const Reorder& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  const size_t n = stage.leaves.size();
  if (step.order.size() != n)
    return invalid("the order names " + std::to_string(step.order.size()) + " loops, but the stage has " +
                   std::to_string(n));
  std::vector<IteratorId> leaves;
  leaves.reserve(n);
  IdVector<IteratorId, char> used(stage.iterators.size(), 0);
  for (const int position : step.order) {
    const auto leaf = find_leaf(stage, position);
    if (!leaf.ok() || used[*leaf] != 0)
      return invalid("the order is not a permutation of the " + std::to_string(n) + " loops");
    used[*leaf] = 1;
    leaves.push_back(*leaf);
  }
  leaves.swap(stage.leaves);
  Status status = check_loops(stage);
  if (status.ok()) status = check_attachments(schedule);
  if (!status.ok()) leaves.swap(stage.leaves);
  return status;
}

}  // namespace tensorsmith::sched::primitives
