// Loop nests that tensor cores compute: products of tiles in shared memory by the warps of a block.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/gpu/copy_pipeline.h"
#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// Swizzle that spreads the lines of a tile over the banks: the units of a line are permuted by the
// line's number, unit ^ (line >> shift & mask).
struct MmaSwizzle {
  int64_t unit = 16;  // bytes
  int shift = 0, mask = 0;
};

// The tile of one factor. Its lines are its rows if steps of the reduction are contiguous in them,
// otherwise the steps.
struct MmaTile {
  ir::Buffer buffer;
  bool steps_contiguous = true;
  int64_t line = 0;    // elements between lines
  ir::Expr first;      // flat index of the warp's first element, as a function of the warp's index
  MmaSwizzle swizzle;  // a mask of 0 means no swizzle

  // Lanes read elements one by one: ldmatrix cannot transpose 4-byte elements on their way to
  // registers.
  bool single_elements() const { return !steps_contiguous && ir::bytes_of(buffer->dtype) == 4; }
};

// A nest of the form
//
//   for k in K
//     c[pair] = c[pair] + convert(A[row, k]) * convert(B[k, column])
//
// for each fragment and pair, in any order. In place of converted values, the factors may be f32
// values that are rounded to TF32. `row` and `column` are those that an instruction assigns to a
// lane (sched/tensor_cores.h), and c is private.
struct MmaNest {
  MmaTile a, b;
  ir::Buffer sums;
  int64_t steps = 0;              // K
  int64_t rows = 0, columns = 0;  // number of fragments, of 16 rows and of 8 columns
  int64_t pair = 1;               // distance in `sums` between the two columns of a lane
  std::vector<int64_t>
      at;  // first element in `sums` of a lane, by half of 8 rows, then by column of fragments
};

// The tensor core nests of a kernel, and its copy pipelines, which scalar code may use, too.
struct MmaKernel {
  std::unordered_map<const ir::StmtNode*, MmaNest> nests;           // by their loop
  std::unordered_map<const ir::StmtNode*, CopyPipeline> pipelines;  // by their loop
  std::unordered_map<const ir::BufferNode*, int64_t> copies;        // instances of a tile in shared memory
  std::unordered_map<const ir::BufferNode*, MmaTile> swizzled;
  // Reasons why candidate products in shared memory are scalar code.
  std::vector<std::string> refused;
};

// `capability` is that of the device (sched/tensor_cores.h). The kernel must not have loops over
// virtual threads.
MmaKernel find_mma(const GpuKernel& kernel, int capability);

// Returns the swizzle for lines of line_bytes. `unit` is 16 if eight lines are read together, 32 if
// four are. The mask is 0 unless line_bytes is a power of two and at least two units.
MmaSwizzle mma_swizzle(int64_t line_bytes, int64_t unit = 16);

}  // namespace tensorsmith::codegen
