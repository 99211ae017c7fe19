// Loop nests that are products of tiles, as matrix units compute them (AMX).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/stmt.h"

namespace tensorsmith::codegen {

// Which products of packed elements a device has matrix units for.
struct MatrixUnits {
  bool dot4 = false, dot2 = false;
  bool take(ir::Intrinsic dot) const {
    return (dot == ir::Intrinsic::kDot4 && dot4) || (dot == ir::Intrinsic::kDot2 && dot2);
  }
};

// Rows and 32-bit columns of a tile, and how many tiles there are (Intel's manual, volume 1, 18.2).
inline constexpr int64_t kTileRows = 16, kTileColumns = 16, kMatrixTiles = 8;

//   for k0 ..                        (sums: serial or unrolled, none of them in C's indices)
//     for k in K
//       unrolled i in R              (rows: in A's and C's indices)
//         vectorized j in N          (columns: in B's and C's)
//           C[i, j] = C[i, j] + dot(A[i, k], B[k, j])
//
// A is contiguous along k, B and C along j; rows of each lie apart by a constant. K is a multiple of a tile's columns, or
// less than that. The tiles of A, B and C fit the units together.
struct MatrixNest {
  const ir::Store* store = nullptr;
  const ir::Load *a = nullptr, *b = nullptr;
  ir::Intrinsic dot = ir::Intrinsic::kDot4;
  bool b_is_first = false;                           // argument of the intrinsic
  std::vector<const ir::For*> sums, rows, columns;   // the last of rows and columns are cut into tiles
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;  // elements from row to row
};

// The nest that begins with this loop.
std::optional<MatrixNest> match_matrix_nest(const ir::For& loop, const MatrixUnits& units);

// Tiles that n rows or columns are cut into.
constexpr int64_t tiles_of(int64_t n) { return (n + kTileRows - 1) / kTileRows; }
// Of the tiles of a product's sums, and of its factors' rows and columns.
constexpr int64_t matrix_tiles(int64_t rows, int64_t columns) { return rows * columns + rows + columns; }

}  // namespace tensorsmith::codegen
