// Products of tiles in shared memory that Hopper's warpgroups compute (wgmma): nests for tensor cores (tensor_core_nest.h)
// whose four neighbouring warps have the 64 rows of one instruction, in a loop over chunks of the reduction.
//
// A tile lies in panels: so many elements of each line that they take 32, 64 or 128 bytes, line after line, the 16-byte
// chunks exchanged as mma_swizzle says; then the next panel. That is what matrix descriptors describe, and what the tensor
// memory accelerator (TMA) writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/gpu/tensor_core_nest.h"
#include "runtime/launch.h"

namespace tensorsmith::codegen {

struct WarpgroupTile {
  ir::Buffer buffer;
  bool steps_contiguous = true;
  int64_t lines = 0, line = 0, panel = 0;  // elements of a line, and of a line in a panel
  ir::Expr first;                          // flat index of the warpgroup's first element

  int64_t bytes() const { return lines * line * ir::bytes_of(buffer->dtype); }
  int64_t line_bytes() const { return panel * ir::bytes_of(buffer->dtype); }  // of a panel
  int64_t panel_bytes() const { return lines * line_bytes(); }
  int64_t panels() const { return line / panel; }
};

// A tile as boxes of a device's buffer, one for each panel.
struct TensorBox {
  ir::Buffer from;
  runtime::TensorMap map;
  std::vector<ir::Expr> begin;  // of the first panel; as the map's dimensions, the innermost first
  // The dimension of the tile's lines, if it is one.
  std::optional<size_t> lines_at;
  // Each block of a cluster copies half of these lines, for both (block_cluster.h).
  bool for_cluster = false;
};

struct WarpgroupPipeline {
  CopyPipeline loop;
  WarpgroupTile a, b;
  ir::Buffer sums;      // of a lane, in the order of the instruction
  int64_t columns = 0;  // of an instruction
  int64_t steps = 0;    // instructions of a chunk
  std::string type;     // "f16", "s8_u8"
  // Copies by TMA; none: threads copy.
  std::optional<TensorBox> box_a, box_b;
};

struct WarpgroupKernel {
  std::unordered_map<const ir::StmtNode*, WarpgroupPipeline> pipelines;   // by their loop: one, or none
  std::unordered_map<const ir::BufferNode*, const WarpgroupTile*> tiles;  // of these
  std::vector<std::string> refused;  // why pipelines of tensor cores are none of warpgroups
  bool uses_boxes = false;
  // Four warps more than the loops have threads for, of which one thread has the boxes copied.
  bool own_producer = false;
  bool in_clusters = false;  // of two blocks

  const WarpgroupPipeline* pipeline() const {
    return pipelines.empty() ? nullptr : &pipelines.begin()->second;
  }
};

// Of a block, for the pipeline's tiles and barriers.
int64_t warpgroup_shared_bytes(const WarpgroupPipeline& pipeline);

// capability: of the device (sched/tensor_cores.h); others than Hopper's have none.
WarpgroupKernel find_warpgroups(const GpuKernel& kernel, const MmaKernel& mma, int capability);

}  // namespace tensorsmith::codegen
