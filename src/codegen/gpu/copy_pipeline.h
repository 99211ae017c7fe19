// Loops over chunks of a reduction whose copies into shared memory run ahead of the computation
// (cp.async).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// Number of reads and writes of each buffer by some statements.
struct BufferUses {
  std::unordered_map<const ir::BufferNode*, int> reads, writes;
  void add(const ir::Stmt& s);
};

struct CopyPipeline {
  int64_t chunks = 0, stages = 1;
  std::vector<ir::Stmt> copies;
  ir::Stmt nest;                  // the computation on a chunk
  std::vector<ir::Buffer> tiles;  // buffers that the copies write; each has `stages` instances
};

// Returns the pipelines by their loops. A loop's auto_unroll_max_step requests the number of
// stages, 2 to kMostStages. The tiles are written only by the loop's copies and read only by its
// computation, which writes only private buffers.
inline constexpr int64_t kMostStages = 8;
std::unordered_map<const ir::StmtNode*, CopyPipeline> find_copy_pipelines(const GpuKernel& kernel);

}  // namespace tensorsmith::codegen
