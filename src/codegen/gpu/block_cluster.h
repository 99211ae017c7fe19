// Clusters of two neighbouring blocks, each of which copies half of what both need (multicast).
#pragma once

#include "codegen/gpu/warpgroup_nest.h"

namespace tensorsmith::codegen {

// Whether blocks 2 n and 2 n + 1 come to the same chunks, and copy the same box for each: shown by trying all blocks and
// all iterations around the loop over chunks.
bool neighbours_share(const GpuKernel& kernel, const ir::StmtNode* chunks, const TensorBox& box);

}  // namespace tensorsmith::codegen
