// Splits a loop program that was scheduled for a GPU into kernels. The program's meaning is serial:
// a loop bound to a thread axis runs through the threads one after the other. On the GPU all its
// iterations run at once, and nested loops bound to the same axis are the same threads: if the load
// of a shared tile is inside the loop of its readers, all threads together do it once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/stmt.h"

namespace tensorsmith::codegen {

// The axes of ir::ThreadAxis that are indices of blocks or threads, in the same order.
enum GpuAxis : uint8_t { kBlockX, kBlockY, kBlockZ, kThreadX, kThreadY, kThreadZ, kGpuAxes };
using GpuExtents = std::array<int64_t, kGpuAxes>;

enum class GpuMemory : uint8_t {
  kDevice,   // parameters, and buffers that kernels pass to each other
  kShared,   // memory of a block
  kPrivate,  // memory of a thread
};

struct GpuKernel {
  // The code of one thread. Serial, unrolled, vectorized and virtual-thread loops remain; `index`
  // holds the variables of the thread and block axes.
  ir::Stmt body;
  GpuExtents extents = {1, 1, 1, 1, 1, 1};
  std::array<ir::Var, kGpuAxes> index;
  std::unordered_map<const ir::BufferNode*, GpuMemory> memory;  // memory of each buffer that the
                                                                // body uses
  std::vector<ir::Buffer> shared;  // shared buffers in the order of their allocations

  // Returns kDevice for a buffer that the kernel does not allocate.
  GpuMemory memory_of(const ir::BufferNode* buffer) const {
    const auto it = memory.find(buffer);
    return it == memory.end() ? GpuMemory::kDevice : it->second;
  }
};

struct WorkspaceBuffer {
  ir::Buffer buffer;
  int64_t offset = 0;  // in bytes, a multiple of runtime::kGpuOffsetAlignment
};

struct GpuProgram {
  std::vector<GpuKernel> kernels;  // in execution order
  std::vector<WorkspaceBuffer> workspace;
  int64_t workspace_bytes = 0;
};

// Makes one kernel of each loop nest at the outermost level. A statement that is outside the loops
// over an axis is executed by the axis' first block or thread if it writes memory that others see,
// and by every one if it writes private memory. A loop that is shorter than others of its axis runs
// on the first threads of the axis. Returns kUnsupported for a loop over threads with varying
// extent, and for threads that would write private memory of others.
Result<GpuProgram> split_kernels(const ir::Program& program);

}  // namespace tensorsmith::codegen
