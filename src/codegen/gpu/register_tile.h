// Register tiles of a thread: sums of products of rows and columns, as the inner loops of every
// tiled product compute them.
//
//   for ... sums[r, c] = sums[r, c] + A[r, k] * B[k, c]     (r, c and k over the nest's loops, in any order)
//
// Hopper's schedulers issue one multiply-add per cycle, but the registers form two banks (even and
// odd numbers), each of which delivers one operand per cycle. The third operand has to be one that
// the preceding instruction has read, too. A compiler that ignores this wastes a third of the
// cycles. So the sums are kept in pairs of registers: the even register holds the sum for an odd
// column and the odd register that for an even column, and a value of A stays in place for a whole
// row (docs/decisions/049-gpu-products.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/gpu/kernels.h"
#include "ir/analysis.h"
#include "ir/bounds.h"

namespace tensorsmith::codegen {

// One factor: elements of a buffer in shared memory.
struct TileOperand {
  ir::Buffer buffer;
  ir::Expr first;              // flat index for which all loops of the nest are at 0
  std::vector<int64_t> lines;  // offsets of the rows (or columns) from `first`, in elements,
                               // ascending
  std::vector<int64_t> steps;  // offsets of a group's reduction steps, in elements
  int64_t group = 0;           // distance between groups, in elements
};

struct RegisterTile {
  TileOperand rows, columns;
  ir::Buffer sums;
  std::vector<int64_t> at;  // indices into `sums`, by row, then by column
  int64_t groups = 1;       // groups of the reduction, which run one after the other
  int64_t lanes = 4;        // columns per vector in memory, 4 or 2
  // Reduction steps, or else rows, per vector in memory; both are 1 if neither can be loaded as
  // vectors.
  int64_t step_lanes = 1, row_lanes = 1;
};

// Matches a nest whose reduction is not fully unrolled; unrolled reductions request other code.
// `bounds` are those of the variables around the nest, `constants` the variables that have a single
// value here.
std::optional<RegisterTile> find_register_tile(const ir::Stmt& nest, const GpuKernel& kernel,
                                               const ir::VarBounds& bounds, const ir::VarMap& constants);

}  // namespace tensorsmith::codegen
