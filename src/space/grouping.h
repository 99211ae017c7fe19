// Decides which stages are scheduled together. Rules, from output to input:
//   always inline   injective stages that are cheap to recompute where they are read (algorithm.cc)
//   pattern         stages that a kind of plan has matched and computes as a whole
//   group           a root with what can be computed inside its loops: a reduction before its
//                   elementwise consumer, the padding before a tiled reduction, the reductions of
//                   one row
#pragma once

#include <vector>

#include "space/plan_kind.h"

namespace tensorsmith::space {

// Returns the groups, producers before consumers. `fuse_rows`: the stages of a row, and patterns
// that need not be computed as a whole, are computed inside the loops of one root.
std::vector<Group> make_groups(const PlanContext& context, bool fuse_rows);

}  // namespace tensorsmith::space
