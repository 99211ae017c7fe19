// decompose_reduction(stage, iterator)
//   Arguments: a reduction and one of its leaves.
//   Rewrite: the reduction's init runs as a loop nest of its own right before that loop (over all spatial
//     loops from there on), instead of right before the outermost reduce loop.
//   Checks: a reduction; no reduce loop is outside the leaf.
//
//     for i (4)             decompose at j       for i (4)
//       for j (8)                =>                for j (8)
//         C = 0                                      C = 0
//         for k (16)                               for j (8)
//           C += ...                                 for k (16)
//                                                      C += ...
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const DecomposeReduction& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  TS_ASSIGN_OR_RETURN(const IteratorId leaf, find_leaf(stage, step.iterator));
  if (!stage.op->has_reduction())
    return illegal("stage '" + stage.op->name + "' is not a reduction, it has no init");
  const IteratorId old = stage.init_at;
  stage.init_at = leaf;
  Status status = check_loops(stage);
  if (!status.ok()) stage.init_at = old;
  return status;
}

}  // namespace tensorsmith::sched::primitives
