// Ids that plans and steps use.
#pragma once

#include <algorithm>

#include "base/id.h"

namespace tensorsmith::space {

// An operation of the workload, or a stage that a cache or rfactor step has made (TraceMaker). The
// id does not change when steps insert stages; sched::StageId is the current position of a stage.
using StageId = Id<struct StageInfo>;
// An axis of a stage: the spatial axes, which are its output's dimensions, then the reduce axes.
using AxisId = Id<struct StageAxis>;
using LoopId = Id<struct TraceLoop>;  // of a TraceMaker, unique over all stages
inline constexpr LoopId kNoLoop;

template <class List, class Id>
bool contains(const List& list, const Id& id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

}  // namespace tensorsmith::space
