// Ids of what plans and steps are about.
#pragma once

#include <algorithm>

#include "base/id.h"

namespace tensorsmith::space {

// An operation of the workload, or a stage that a cache or rfactor step has made (TraceMaker). It keeps its id
// while steps insert stages; sched::StageId is where a stage stands at the moment.
using StageId = Id<struct StageInfo>;
using AxisId = Id<struct StageAxis>;  // of a stage: spatial, which are its output's dimensions, then reduce
using LoopId = Id<struct TraceLoop>;  // of a TraceMaker, over all stages
inline constexpr LoopId kNoLoop;

template <class List, class Id>
bool contains(const List& list, const Id& id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

}  // namespace tensorsmith::space
