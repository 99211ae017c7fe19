// What products of matrices on tensor cores read from device memory.
#pragma once

#include <cstdint>

#include "space/estimate/gpu_machine.h"
#include "space/mma_product.h"

namespace tensorsmith::space {

// The blocks of a product, and the order that they run in.
struct MmaBlocks {
  int64_t rows = 1, columns = 1;  // of a block's tile
  int64_t down = 1, across = 1;   // tiles along the rows and along the columns
  bool columns_outside = false;   // tiles along the columns are the outer loop
  int64_t group = 1;              // tiles of the outer axis whose blocks follow each other
  double tiles = 1;               // of all, batches included
  double together = 1;            // blocks that run at a time
};

// Bytes of the operands that come from device memory: what the blocks that run together read, once a wave where L2
// does not hold them from one wave to the next.
double operand_bytes(const PlanContext& context, StageId anchor, const MmaProduct& product,
                     const MmaBlocks& blocks);

}  // namespace tensorsmith::space
