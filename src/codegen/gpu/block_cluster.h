// Clusters of two neighbouring blocks, each of which copies half of the data that both need
// (multicast).
#pragma once

#include "codegen/gpu/warpgroup_nest.h"

namespace tensorsmith::codegen {

// Returns whether blocks 2 n and 2 n + 1 execute the loop over chunks alike and copy the same box
// for each chunk. It tries all blocks and all iterations of the loops around the loop over chunks.
bool neighbours_share(const GpuKernel& kernel, const ir::StmtNode* chunks, const TensorBox& box);

}  // namespace tensorsmith::codegen
