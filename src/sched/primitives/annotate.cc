// annotate(stage, iterator, annotation)
//   Arguments: a leaf and how its loop runs: none, unroll, vectorize, parallel, or bound to a GPU axis.
//   Rewrite: sets (or with none: removes) the annotation.
//   Checks, which every later step keeps:
//     - vectorize, parallel, vthread and block axes on spatial loops only; threadIdx also on reduce loops (a
//       cross-thread reduction);
//     - one vectorized and one parallel loop a stage, each GPU axis once a stage, not mixed with parallel;
//     - inside the vectorized loop only unrolled loops, and no stage is attached to or inside it;
//     - no parallel loop inside a parallel loop, including those of attached stages;
//     - block axes in root stages only.
//
//     for i (64)      annotate i parallel     parallel i (64)
//       for j (16)    annotate j vectorize      vectorize j (16)
//
// unroll(stage, auto_max_step)
//   Arguments: a stage; the most copies of a body that may be made, 0: the code generator decides.
//   Rewrite: allows the code generator to unroll the stage's inner loops whose extents multiply to at most
//     auto_max_step. For a product that tensor cores compute (codegen/gpu/tensor_core_nest.h), it is the number
//     of chunks that are in shared memory at a time.
//   Checks: not negative.
#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

Status apply(Schedule& schedule, const Annotate& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  Stage& stage = schedule.stages[s];
  TS_ASSIGN_OR_RETURN(const IteratorId leaf, find_leaf(stage, step.iterator));
  if (step.annotation > Annotation::kThreadZ) return invalid("unknown annotation");
  Iterator& it = stage.iterators[leaf];
  const Annotation old = it.annotation;
  it.annotation = step.annotation;
  Status status = check_loops(stage);
  if (status.ok() && step.annotation != Annotation::kUnroll && step.annotation != Annotation::kNone)
    status = check_attachments(schedule);
  if (!status.ok()) it.annotation = old;
  return status;
}

Status apply(Schedule& schedule, const Unroll& step) {
  TS_ASSIGN_OR_RETURN(const StageId s, find_computed_stage(schedule, step.stage));
  if (step.auto_max_step < 0) return invalid("auto_max_step is negative");
  schedule.stages[s].auto_unroll_max_step = step.auto_max_step;
  return {};
}

}  // namespace tensorsmith::sched::primitives
