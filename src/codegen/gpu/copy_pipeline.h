// Loops over chunks of a reduction whose copies into shared memory run ahead of what is computed of them (cp.async).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// How often statements read and write each buffer.
struct BufferUses {
  std::unordered_map<const ir::BufferNode*, int> reads, writes;
  void add(const ir::Stmt& s);
};

struct CopyPipeline {
  int64_t chunks = 0, stages = 1;
  std::vector<ir::Stmt> copies;
  ir::Stmt nest;                  // what is computed of a chunk
  std::vector<ir::Buffer> tiles;  // that the copies write, each there `stages` times
};

// By their loop. How many stages such a loop has, its auto_unroll_max_step says: 2 to kMostStages. It copies what nothing else
// writes or reads, and computes values of single threads.
inline constexpr int64_t kMostStages = 8;
std::unordered_map<const ir::StmtNode*, CopyPipeline> find_copy_pipelines(const GpuKernel& kernel);

}  // namespace tensorsmith::codegen
