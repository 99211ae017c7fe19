// Copies into shared memory that the tensor memory accelerator (TMA) can do as a whole.
#pragma once

#include <optional>

#include "codegen/gpu/warpgroup_nest.h"

namespace tensorsmith::codegen {

//   for y in Y, for x in X    (in any order)
//     tile[y, x] = from[.., y0 + y, .., x0 + x], or 0 where that is outside of `from`
//
// executed by one thread, or alike by each.
// Returns the copy as boxes if it fills the whole tile, if the lines of the tile are along the
// contiguous dimension of `from`, and if the strides of `from` are multiples of 16 bytes.
std::optional<TensorBox> match_box(const GpuKernel& kernel, const ir::Stmt& copy, const WarpgroupTile& tile);

}  // namespace tensorsmith::codegen
