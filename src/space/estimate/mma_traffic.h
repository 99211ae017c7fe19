// Device memory traffic of matrix products on tensor cores.
#pragma once

#include <cstdint>

#include "space/estimate/gpu_units.h"
#include "space/mma_product.h"

namespace tensorsmith::space {

// The blocks of a matrix product and their order of execution.
struct MmaBlocks {
  int64_t rows = 1, columns = 1;  // size of a block's tile
  int64_t down = 1, across = 1;   // number of tiles along the rows and along the columns
  bool columns_outside = false;   // the outer loop runs over the tiles along the columns
  int64_t group = 1;              // tiles of the outer axis whose blocks follow each other
  double tiles = 1;               // number of all tiles, including batches
  double together = 1;            // number of blocks that run at the same time
};

// Returns the bytes of the operands that are read from device memory: what the blocks that run at
// the same time (a wave) read, once per wave unless L2 holds both operands.
double operand_bytes(const PlanContext& context, StageId anchor, const MmaProduct& product,
                     const MmaBlocks& blocks);

}  // namespace tensorsmith::space
