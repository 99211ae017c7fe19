// Matrix units of processors (AMX): what they multiply, and the tiles that a product takes. Plans choose register tiles by
// this, code generation recognizes them by it.
#pragma once

#include <cstdint>

#include "ir/expr.h"
#include "target/target.h"

namespace tensorsmith::sched {

// Rows of a tile, and its columns of 32 bits; how many tiles there are (Intel's manual, volume 1, 18.2).
inline constexpr int64_t kTileSide = 16, kMatrixTiles = 8;

// Tiles that a number of rows or columns is cut into.
constexpr int64_t tiles_of(int64_t length) { return (length + kTileSide - 1) / kTileSide; }

// Whether the tiles of a product's sums and of its two factors are there at once. Of rows and columns: in tiles.
constexpr bool tiles_fit(int64_t rows, int64_t columns) {
  return rows * columns + rows + columns <= kMatrixTiles;
}
// Whether products of tiles take all steps of a reduction of packed elements: whole tiles, or less than one.
constexpr bool steps_fit(int64_t steps) { return steps % kTileSide == 0 || steps < kTileSide; }

// Which products of packed elements a device has matrix units for.
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
