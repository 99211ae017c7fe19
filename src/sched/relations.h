// Extents and index values along a stage's splits and fuses.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/schedule.h"

namespace tensorsmith::sched {

// On entry extents[i] of the root axes; on return of every iterator, as Bounds defines them.
void pass_down_extents(const Stage& stage, std::vector<int64_t>& extents);
// Extents of all iterators if the stage is computed in full.
std::vector<int64_t> full_extents(const Stage& stage);

// On entry values[i] of the leaves; on return of every iterator (row-major recomposition with the extents).
// Iterators that depend on an undefined value stay undefined.
void pass_up_values(const Stage& stage, const std::vector<int64_t>& extents, std::vector<ir::Expr>& values);

// The parents of splits whose children enumerate more than the parent's extent: their values need a guard.
std::vector<int> overshooting(const Stage& stage, const std::vector<int64_t>& extents);

}  // namespace tensorsmith::sched
