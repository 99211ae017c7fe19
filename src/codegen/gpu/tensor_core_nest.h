// Loop nests of a kernel that tensor cores compute: products of tiles in shared memory, by the warps of a block.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/gpu/copy_pipeline.h"
#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// A tile of one factor. Its lines are its rows where steps of the reduction are contiguous in them, else the steps.
struct MmaTile {
  ir::Buffer buffer;
  bool steps_contiguous = true;
  int64_t line = 0;       // elements from line to line
  ir::Expr first;         // flat index of the warp's first element, a sum over the warp's index
  bool swizzled = false;  // see mma_swizzle
};

//   for k in K
//     c[pair] = c[pair] + convert(A[row, k]) * convert(B[k, column])     (for each fragment and pair, in any order)
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
  // By tile: how often it is in shared memory; elements of a line where it is swizzled, else 0.
  std::unordered_map<const ir::BufferNode*, int64_t> copies, swizzled_lines;
  // Why sums of products of such types in shared memory are scalar code.
  std::vector<std::string> refused;
};

// capability: of the device (sched/tensor_cores.h). The kernel has no loops over virtual threads.
MmaKernel find_mma(const GpuKernel& kernel, int capability);

// Eight lines of a tile lie in different banks where the 16-byte chunks of a line are exchanged by the line's number:
// chunk ^ (line >> shift & mask). line: its bytes, a power of two, 32 at least.
struct MmaSwizzle {
  int shift = 0, mask = 0;
};
MmaSwizzle mma_swizzle(int64_t line_bytes);
bool can_swizzle(int64_t line_bytes);

}  // namespace tensorsmith::codegen
