// What the primitives share: argument checks, the invariants of a schedule, insertion of stages.
#pragma once

#include <string>

#include "sched/schedule.h"

namespace tensorsmith::sched::primitives {

Error illegal(std::string reason);
Error invalid(std::string reason);
Error unsupported(std::string reason);

// Steps name stages and leaves by position; what they say comes from text and foreign records, and becomes an
// id here. Fails where there is no such stage.
Result<StageId> find_stage(const Schedule& schedule, int position);
// The same for a stage that computes something with loops: no placeholder, not inlined.
Result<StageId> find_computed_stage(const Schedule& schedule, int position);
Result<IteratorId> find_leaf(const Stage& stage, int position);
// No stage is attached to a loop of this stage.
Status check_nothing_attached(const Schedule& schedule, StageId stage);
// No step has changed the stage's loops yet, and nothing refers to them: they may be replaced.
Status check_loops_untouched(const Schedule& schedule, StageId stage);

// Invariants of one stage's loops:
//  - vectorize and parallel on spatial loops only; at most one of each a stage;
//  - after the vectorized loop come unrolled loops only: the code generator turns the body into vectors;
//  - a thread or block axis at most once a stage; blocks and virtual threads on spatial loops only (a
//    reduction over threadIdx is a cross-thread reduction); no parallel loop beside thread axes;
//  - the reduction's init is not inside a reduce loop.
Status check_loops(const Stage& stage);

// Invariants between stages. For each attached stage:
//  - its target is a stage with loops that is not attached below it;
//  - all its readers are inside the loop it is attached to;
//  - no vectorized loop is around it; no parallel loop of its own is inside a parallel loop; block axes are
//    bound in root stages only.
Status check_attachments(const Schedule& schedule);

inline bool is_reduce(const Iterator& iterator) { return iterator.kind != IterKind::kSpatial; }

// Inserts a stage and shifts the ids of stages in attachments: `before` and those after it move up.
void insert_stage(Schedule& schedule, StageId before, Stage stage);

// Removes a stage that nothing reads and nothing is attached to, and shifts the ids after it.
void erase_stage(Schedule& schedule, StageId stage);

// base, or base.1, base.2, ... if a stage of that name exists.
std::string unique_name(const Schedule& schedule, const std::string& base);

// Axes with the same names and extents, but new variables.
std::vector<ir::Axis> fresh_axes(const std::vector<ir::Axis>& axes);
std::vector<ir::Expr> axis_values(const std::vector<ir::Axis>& axes);

}  // namespace tensorsmith::sched::primitives
