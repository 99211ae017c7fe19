// Sums of a thread that are products of rows and columns: what the inner loops of a tiled product are, whatever the tensors.
//
//   for ... sums[r, c] = sums[r, c] + A[r, k] * B[k, c]     (r, c and k over the nest's loops, in any order)
//
// Hopper's schedulers issue a multiply-add a cycle, but the registers are two banks, of even and of odd numbers, which give one each
// a cycle; the third operand has to be one that the instruction before has read, too. A compiler that does not look at that leaves a
// third of the cycles to waiting. So sums are kept in pairs of registers: the even one of the products with odd columns, the odd one of
// those with even columns, and a value of A stays for a whole row (docs/decisions/049-gpu-products.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/gpu/kernels.h"
#include "ir/analysis.h"
#include "ir/bounds.h"

namespace tensorsmith::codegen {

// A factor: elements of a buffer in shared memory.
struct TileOperand {
  ir::Buffer buffer;
  ir::Expr first;              // flat index where all loops of the nest are at 0
  std::vector<int64_t> lines;  // rows, or columns: elements from there, ascending
  std::vector<int64_t> steps;  // of the reduction, within a group: the same
  int64_t group = 0;           // from group to group: the same
};

struct RegisterTile {
  TileOperand rows, columns;
  ir::Buffer sums;
  std::vector<int64_t> at;  // elements of `sums`: by row, then by column
  int64_t groups = 1;       // of the reduction, one after the other
  int64_t lanes = 4;        // columns that are one vector in memory, 4 or 2
  // Steps, or else rows, that are one vector in memory; 1: neither.
  int64_t step_lanes = 1, row_lanes = 1;
};

// Of a nest whose reduction is not unrolled altogether, which asks for other code. bounds: of the variables around it; constants: of
// those that have one value here.
std::optional<RegisterTile> find_register_tile(const ir::Stmt& nest, const GpuKernel& kernel,
                                               const ir::VarBounds& bounds, const ir::VarMap& constants);

}  // namespace tensorsmith::codegen
