// Matrix units of processors (AMX): the products that they compute, and the tiles that a product
// takes. Plans choose register tiles accordingly, and code generation recognizes them.
#pragma once

#include <cstdint>

#include "ir/expr.h"
#include "target/target.h"

namespace tensorsmith::sched {

// Rows of a tile, which is also the number of its 32-bit columns, and the number of tiles (Intel's
// manual, volume 1, 18.2).
inline constexpr int64_t kTileSide = 16, kMatrixTiles = 8;

// Returns the number of tiles that `length` rows or columns are cut into.
constexpr int64_t tiles_of(int64_t length) { return (length + kTileSide - 1) / kTileSide; }

// Returns whether the tiles of a product's sums and of its two factors fit at the same time. `rows`
// and `columns` are numbers of tiles.
constexpr bool tiles_fit(int64_t rows, int64_t columns) {
  return rows * columns + rows + columns <= kMatrixTiles;
}
// Returns whether products of tiles can handle all steps of a reduction of packed elements: a
// multiple of a tile's steps, or less than one tile.
constexpr bool steps_fit(int64_t steps) { return steps % kTileSide == 0 || steps < kTileSide; }

// The products of packed elements that a device's matrix units can compute.
struct MatrixUnits {
  bool dot4 = false, dot2 = false;

  static MatrixUnits of(const target::Device& device) {
    return {target::has_matrix_dot4(device), target::has_matrix_dot2(device)};
  }
  bool take(ir::Intrinsic dot) const {
    if (dot == ir::Intrinsic::kDot4 || dot == ir::Intrinsic::kDot4Narrow) return dot4;
    return dot == ir::Intrinsic::kDot2 && dot2;
  }
};

}  // namespace tensorsmith::sched
