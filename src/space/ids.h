// Ids of what plans and steps are about.
#pragma once

#include "base/id.h"

namespace tensorsmith::space {

// An operation of the workload, or a stage that a cache or rfactor step has made (TraceMaker). It keeps its id
// while steps insert stages; sched::StageId is where a stage stands at the moment.
using StageId = Id<struct StageInfo>;
using LoopId = Id<struct TraceLoop>;  // of a TraceMaker, over all stages

}  // namespace tensorsmith::space
