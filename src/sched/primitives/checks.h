// Functions that the primitives share: argument checks, the invariants of a schedule, insertion of
// stages.
#pragma once

#include <string>

#include "sched/schedule.h"

namespace tensorsmith::sched::primitives {

Error illegal(std::string reason);
Error invalid(std::string reason);
Error unsupported(std::string reason);

// Steps refer to stages and leaves by position, which may come from text or foreign records. These
// functions turn positions into ids and fail if there is no such stage.
Result<StageId> find_stage(const Schedule& schedule, int position);
// Finds a stage that computes something with loops: neither a placeholder nor inlined.
Result<StageId> find_computed_stage(const Schedule& schedule, int position);
Result<IteratorId> find_leaf(const Stage& stage, int position);
// Checks that no stage is attached to a loop of this stage.
Status check_nothing_attached(const Schedule& schedule, StageId stage);
// Checks that no step has changed the stage's loops and that nothing refers to them, so that they
// may be replaced.
Status check_loops_untouched(const Schedule& schedule, StageId stage);

// Checks the invariants of one stage's loops:
//  - vectorize and parallel on spatial loops only; at most one of each per stage;
//  - inside the vectorized loop there are only unrolled loops: the code generator turns the body into vectors;
//  - each thread or block axis at most once per stage; blocks and virtual threads on spatial loops only (a
//    reduction over threadIdx is a cross-thread reduction); no parallel loop together with thread axes;
//  - the reduction's init is not inside a reduce loop.
Status check_loops(const Stage& stage);

// Checks the invariants between stages. For each attached stage:
//  - its target is a stage with loops that is not attached below it;
//  - all its readers are inside the loop that it is attached to;
//  - there is no vectorized loop around it; its parallel loops are not inside a parallel loop; block axes are
//    bound in root stages only.
Status check_attachments(const Schedule& schedule);

inline bool is_reduce(const Iterator& iterator) { return iterator.kind != IterKind::kSpatial; }

// Inserts a stage before `before` and increments the ids of it and of later stages in attachments.
void insert_stage(Schedule& schedule, StageId before, Stage stage);

// Removes a stage that nothing reads and nothing is attached to, and decrements the ids of later
// stages.
void erase_stage(Schedule& schedule, StageId stage);

// Returns base, or base.1, base.2, ... if a stage of that name exists.
std::string unique_name(const Schedule& schedule, const std::string& base);

// Returns axes with the same names and extents, but new variables.
std::vector<ir::Axis> fresh_axes(const std::vector<ir::Axis>& axes);
std::vector<ir::Expr> axis_values(const std::vector<ir::Axis>& axes);

}  // namespace tensorsmith::sched::primitives
