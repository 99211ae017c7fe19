// Copies into shared memory that the tensor memory accelerator (TMA) does as a whole.
#pragma once

#include <optional>

#include "codegen/gpu/warpgroup_nest.h"

namespace tensorsmith::codegen {

//   for y in Y, for x in X    (in any order)
//     tile[y, x] = from[.., y0 + y, .., x0 + x], or 0 where that is outside of `from`
//
// by one thread, or by each the same.
// The copy as boxes, if it is such a copy into this tile: all of it, lines of the tile along what is contiguous in `from`,
// whose strides are multiples of 16 bytes.
std::optional<TensorBox> match_box(const GpuKernel& kernel, const ir::Stmt& copy, const WarpgroupTile& tile);

}  // namespace tensorsmith::codegen
