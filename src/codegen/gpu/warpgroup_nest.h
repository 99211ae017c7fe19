// Products of tiles in shared memory that Hopper's warpgroups compute (wgmma): nests for tensor
// cores (tensor_core_nest.h) in a loop over chunks of the reduction, whose groups of four
// neighbouring warps have the 64 rows of one instruction.
//
// A tile is stored in panels. A panel holds 32, 64 or 128 bytes of each line, line after line, with
// the 16-byte chunks permuted as mma_swizzle says; the next panel follows. This is the layout that
// matrix descriptors describe and that the tensor memory accelerator (TMA) writes.
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
  int64_t lines = 0, line = 0, panel = 0;  // number of lines; elements of a line; elements of a
                                           // line within a panel
  ir::Expr first;                          // flat index of the warpgroup's first element

  int64_t bytes() const { return ir::bytes_of(buffer->dtype, lines * line); }
  int64_t line_bytes() const { return ir::bytes_of(buffer->dtype, panel); }  // within a panel
  int64_t panel_bytes() const { return lines * line_bytes(); }
  int64_t panels() const { return line / panel; }
};

// A tile as boxes of a buffer in device memory, one box per panel.
struct TensorBox {
  ir::Buffer from;
  runtime::TensorMap map;
  std::vector<ir::Expr> begin;  // begin of the first panel's box, with the innermost dimension
                                // first, as in the map
  // Dimension of the box that the tile's lines run along, if there is one.
  std::optional<size_t> lines_at;
  // Each block of a cluster copies half of these lines for both blocks (block_cluster.h).
  bool for_cluster = false;
};

struct WarpgroupPipeline {
  CopyPipeline loop;
  WarpgroupTile a, b;
  ir::Buffer sums;      // sums of a lane, in the instruction's order
  int64_t columns = 0;  // columns of an instruction
  int64_t steps = 0;    // instructions per chunk
  std::string type;     // operand types, for example "f16" or "s8_u8"
  // Copies by TMA; if empty, threads copy.
  std::optional<TensorBox> box_a, box_b;
};

struct WarpgroupKernel {
  std::unordered_map<const ir::StmtNode*, WarpgroupPipeline> pipelines;   // by loop; at most one
  std::unordered_map<const ir::BufferNode*, const WarpgroupTile*> tiles;  // tiles of the pipelines
  std::vector<std::string> refused;  // reasons why pipelines for tensor cores are not computed by
                                     // warpgroups
  bool uses_boxes = false;
  // The block has four more warps than the loops have threads for; one thread of them starts the
  // copies of boxes.
  bool own_producer = false;
  bool in_clusters = false;  // clusters of two blocks

  const WarpgroupPipeline* pipeline() const {
    return pipelines.empty() ? nullptr : &pipelines.begin()->second;
  }
};

// Shared memory of a block for the pipeline's tiles and barriers, in bytes.
int64_t warpgroup_shared_bytes(const WarpgroupPipeline& pipeline);

// `capability` is that of the device (sched/tensor_cores.h); only Hopper's finds any.
WarpgroupKernel find_warpgroups(const GpuKernel& kernel, const MmaKernel& mma, int capability);

}  // namespace tensorsmith::codegen
