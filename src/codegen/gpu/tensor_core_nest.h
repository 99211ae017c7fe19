// Loop nests of a kernel that tensor cores compute: products of tiles in shared memory, by the warps of a block.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/gpu/copy_pipeline.h"
#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// Lines of a tile lie in different banks where the units of a line are exchanged by the line's number:
// unit ^ (line >> shift & mask).
struct MmaSwizzle {
  int64_t unit = 16;  // bytes
  int shift = 0, mask = 0;
};

// A tile of one factor. Its lines are its rows where steps of the reduction are contiguous in them, else the steps.
struct MmaTile {
  ir::Buffer buffer;
  bool steps_contiguous = true;
  int64_t line = 0;    // elements from line to line
  ir::Expr first;      // flat index of the warp's first element, a sum over the warp's index
  MmaSwizzle swizzle;  // without a mask: none

  // Whether lanes read each element for itself: those of 4 bytes are not transposed on their way to the registers.
  bool single_elements() const { return !steps_contiguous && ir::bytes_of(buffer->dtype) == 4; }
};

//   for k in K
//     c[pair] = c[pair] + convert(A[row, k]) * convert(B[k, column])     (for each fragment and pair, in any order)
//
// or with values of f32 that are rounded to TF32 in place of converted ones,
//
// where `row` and `column` are those that an instruction gives to a lane (sched/tensor_cores.h), and c is private.
struct MmaNest {
  MmaTile a, b;
  ir::Buffer sums;
  int64_t steps = 0;              // K
  int64_t rows = 0, columns = 0;  // fragments, of 16 and of 8
  int64_t pair = 1;               // elements of `sums` between two columns of a lane
  std::vector<int64_t>
      at;  // by half of 8 rows, then by column of fragments: a lane's first element of `sums`
};

// What a kernel has for tensor cores, and loops whose copies run ahead, of scalar code, too.
struct MmaKernel {
  std::unordered_map<const ir::StmtNode*, MmaNest> nests;           // by their outermost loop
  std::unordered_map<const ir::StmtNode*, CopyPipeline> pipelines;  // by their loop
  std::unordered_map<const ir::BufferNode*, int64_t> copies;        // how often a tile is in shared memory
  std::unordered_map<const ir::BufferNode*, MmaTile> swizzled;
  // Why sums of products of such types in shared memory are scalar code.
  std::vector<std::string> refused;
};

// capability: of the device (sched/tensor_cores.h). The kernel has no loops over virtual threads.
MmaKernel find_mma(const GpuKernel& kernel, int capability);

// Of lines of so many bytes. unit: 16 where eight lines are read together, 32 where four are. Without a mask where lines are no
// power of two, or one unit.
MmaSwizzle mma_swizzle(int64_t line_bytes, int64_t unit = 16);

}  // namespace tensorsmith::codegen
