// Matrix products by the warpgroups of Hopper (wgmma), with the elementwise consumer that writes
// them:
//
//   (tiles of a block /) blocks / fragments / warps / lanes / chunks of the reduction / pairs of columns
//
// Like the plan for mma.sync (gpu_mma), but with four warps of 16 rows each and all columns of one
// instruction instead of a warp with several fragments. A decision chooses who copies the chunks:
// all threads (cp.async), one of them (boxes, by the tensor memory accelerator), or a warp besides
// those that compute. A block computes one tile or, if only as many blocks are started as run at a
// time, several tiles. Two neighbouring blocks may form a cluster, whose copying warps fetch only
// once what both blocks need.
#pragma once

#include "sched/tensor_cores.h"
#include "space/anchored_plan.h"
#include "space/estimate/gpu_kernel.h"
#include "space/mma_product.h"

namespace tensorsmith::space {

class GpuWgmmaPlan final : public AnchoredPlan {
 public:
  GpuWgmmaPlan(const PlanContext& context, StageId output, StageId anchor, MmaProduct product);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions decisions) const override;
  Status check(Decisions decisions) const override;
  double estimate(Decisions decisions, EstimateParts*) const override;
  void sample(Rng& rng, std::span<int64_t> decisions) const override;

 private:
  enum class Copies : uint8_t { kThreads, kBoxes, kOwnWarp };

  struct Choice {
    int64_t columns_of_group = 32;               // of a warpgroup, which has 64 rows
    int64_t groups_down = 1, groups_across = 1;  // warpgroups of a block
    int64_t chunk = 32;                          // steps of the reduction
    int64_t stages = 2;                          // chunks in shared memory at a time
    Copies copies = Copies::kThreads;
    bool columns_outside = false;
    int64_t group = 1;  // tiles of the outer axis whose blocks follow each other
    bool persistent = false;
    bool cluster = false;  // two neighbouring blocks copy together what both need

    int64_t groups() const { return groups_down * groups_across; }
    int64_t rows() const { return sched::kWarpgroupRows * groups_down; }
    int64_t columns() const { return columns_of_group * groups_across; }
  };

  Choice decode(Decisions decisions) const;
  GpuBlock block(const Choice& c) const;
  int64_t tiles(const Choice& c) const;  // number of tiles of all blocks
  int64_t outer_tiles(const Choice& c) const;
  // Returns the number of blocks that run at a time, at most as many as there are tiles.
  int64_t blocks_at_a_time(const Choice& c) const;
  double dram_bytes(const Choice& c) const;
  // The axis along which neighbouring blocks differ (columns or rows), and the number of tiles that
  // follow each other along it.
  bool neighbours_in_columns(const Choice& c) const { return c.columns_outside == (c.group > 1); }
  int64_t run(const Choice& c) const;

  LoopId emit_output(TraceMaker& maker, const Choice& c) const;
  LoopId emit_anchor(TraceMaker& maker, const Choice& c, StageId anchor) const;
  void emit_copy(TraceMaker& maker, const Choice& c, StageId stage, bool for_cluster) const;

  MmaProduct product_;
  size_t columns_ = kNone, down_ = kNone, across_ = kNone, chunk_ = kNone, stages_ = kNone, copies_ = kNone,
         order_ = kNone, group_ = kNone, persistent_ = kNone, cluster_ = kNone;
};

}  // namespace tensorsmith::space
