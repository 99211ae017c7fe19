// The blocks that TVM's RFactor makes, in terms of the axes of our stages.
#pragma once

#include <vector>

#include "base/result.h"
#include "sched/schedule.h"

namespace tensorsmith::record {

// By place: the axis of our stage (spatial, then reduce) of each loop of the block, outer to inner, and of each
// of the block's own axes.
struct FactoredBlock {
  std::vector<size_t> loops, axes;
};
struct FactoredBlocks {
  FactoredBlock partial, rest;  // the block of the partial results, and the one that combines them
};

// `before` is the stage before our rfactor of the leaf, `axes` the order of its block's axes, `partial` the new
// stage, of which the leaf is spatial axis `factor`. In TVM both blocks keep the loops in their order. Their
// first axis is that of the loop, the others follow as before, and the parts of a split axis take its place.
// kUnsupported if other reduce axes were split or fused.
Result<FactoredBlocks> blocks_after_rfactor(const sched::Stage& before, const std::vector<size_t>& axes,
                                            sched::IteratorId leaf, const sched::Stage& partial,
                                            size_t factor);

}  // namespace tensorsmith::record
