// compute_at(stage, target_stage, target_iterator)
//   Arguments: a producer and a leaf of a stage that (transitively) reads it.
//   Rewrite: the producer is computed inside that loop, at its beginning, only the region that the readers
//     need there (sched::infer_bounds); its own splits apply to the smaller extents.
//   Checks: the stage is no output and has no packed layout; the target comes later and has loops; all
//     readers are inside the target loop; see check_attachments for vectorized, parallel and thread loops
//     around it.
//
//     for i (16)                              for i.0 (4)
//       B[i] = A[i] * 2    compute_at B, C, 0   for j (4)
//     for i.0 (4)                =>               B[j] = A[i.0 * 4 + j] * 2
//       for i.1 (4)                             for i.1 (4)
//         C[..] = B[..] + 1                       C[..] = B[i.1] + 1
//
// compute_root(stage)
//   Arguments: a stage.
//   Rewrite: undoes compute_at: the whole stage is computed before its readers.
//   Checks: the readers of stages attached elsewhere are still inside the loops that these are
// attached to.
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const ComputeAt& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  TS_ASSIGN_OR_RETURN(const StageId t, find_computed_stage(schedule, step.target_stage));
  Stage& stage = schedule.stages[s];
  const Stage& target = schedule.stages[t];
  TS_ASSIGN_OR_RETURN(const IteratorId leaf, find_leaf(target, step.target_iterator));
  if (t <= s) return illegal("stage '" + target.op->name + "' does not read stage '" + stage.op->name + "'");
  if (schedule.is_output(s))
    return illegal(
        "stage '" + stage.op->name +
        "' is an output of the workload and must be computed at root; cache_write it, and attach the copy");
  if (stage.layout)
    return illegal("stage '" + stage.op->name + "' has a packed layout and must be computed at root");
  if (schedule.consumers_of(s).empty()) return illegal("no stage reads stage '" + stage.op->name + "'");
  const AttachKind old_kind = stage.attach;
  const StageId old_stage = stage.attach_stage;
  const IteratorId old_iterator = stage.attach_iterator;
  stage.attach = AttachKind::kAt;
  stage.attach_stage = t;
  stage.attach_iterator = leaf;
  Status status = check_attachments(schedule);
  if (!status.ok()) {
    stage.attach = old_kind;
    stage.attach_stage = old_stage;
    stage.attach_iterator = old_iterator;
  }
  return status;
}

Status apply(Schedule& schedule, const ComputeRoot& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  if (stage.attach == AttachKind::kRoot) return {};
  const StageId old_stage = stage.attach_stage;
  const IteratorId old_iterator = stage.attach_iterator;
  stage.attach = AttachKind::kRoot;
  stage.attach_stage = {};
  stage.attach_iterator = {};
  Status status = check_attachments(schedule);
  if (!status.ok()) {
    stage.attach = AttachKind::kAt;
    stage.attach_stage = old_stage;
    stage.attach_iterator = old_iterator;
  }
  return status;
}

}  // namespace tensorsmith::sched::primitives
