// A loop program that was scheduled for a GPU, cut into kernels. The program's meaning is serial: a loop bound to a
// thread axis runs through the threads one after the other. On the GPU all its iterations run at once, and nested loops
// bound to one axis are the same threads: the load of a shared tile inside the loop of its readers is done once by all of
// them together.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

// The axes of ir::ThreadAxis that are a block's or a thread's, in its order.
enum GpuAxis : uint8_t { kBlockX, kBlockY, kBlockZ, kThreadX, kThreadY, kThreadZ, kGpuAxes };
using GpuExtents = std::array<int64_t, kGpuAxes>;

enum class GpuMemory : uint8_t {
  kDevice,   // parameters, and what kernels hand to each other
  kShared,   // of a block
  kPrivate,  // of a thread
};

struct GpuKernel {
  // What one thread does. Left are serial, unrolled and vectorized loops and those over virtual threads; the
  // variables of all others are `index`.
  ir::Stmt body;
  GpuExtents extents = {1, 1, 1, 1, 1, 1};
  std::array<ir::Var, kGpuAxes> index;
  std::unordered_map<const ir::BufferNode*, GpuMemory> memory;  // of each buffer that the body uses
  std::vector<ir::Buffer> shared;                               // in the order of their allocations
};

struct WorkspaceBuffer {
  ir::Buffer buffer;
  int64_t offset = 0;  // bytes, a multiple of runtime::kGpuOffsetAlignment
};

struct GpuProgram {
  std::vector<GpuKernel> kernels;  // in order
  std::vector<WorkspaceBuffer> workspace;
  int64_t workspace_bytes = 0;
};

// One kernel for each loop nest at the outermost level. A statement outside of the loops over an axis is executed by that
// axis' first block or thread if it writes memory that others see, by each if it writes what is private to it.
// A loop that is shorter than others of its axis is one of its first threads. kUnsupported: a loop over threads of
// varying length; threads that would write what is private to others.
Result<GpuProgram> split_kernels(const ir::Program& program);

}  // namespace tensorsmith::codegen
