// toy_rotate(stage)
//   Arguments: a stage.
//   Rewrite: the outermost loop becomes the innermost one.
//   Checks: the stage has loops; its loops and all attachments are legal in the new order.
//
//     for i (4)           toy_rotate          for j (3)
//       for j (3)              =>               for i (4)
#include <algorithm>

#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const ToyRotate& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  if (stage.leaves.empty()) return illegal("the stage has no loops");
  auto leaves = stage.leaves;
  std::rotate(leaves.begin(), leaves.begin() + 1, leaves.end());
  leaves.swap(stage.leaves);
  Status status = check_loops(stage);
  if (status.ok()) status = check_attachments(schedule);
  if (!status.ok()) leaves.swap(stage.leaves);
  return status;
}

}  // namespace tensorsmith::sched::primitives
