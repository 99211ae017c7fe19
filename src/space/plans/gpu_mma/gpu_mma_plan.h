// Matrix products on the tensor cores of NVIDIA's GPUs (mma.sync), with the elementwise consumer
// that writes them:
//
//   blocks / fragments / warps / lanes / chunks of the reduction / pairs of columns
//
// A block computes a tile of the output, and a warp its part of it in fragments of 16 x 8. Rows and
// columns are split so that a lane has the sums that the instruction assigns to it
// (sched/tensor_cores.h); a lane's sums in one half of a fragment are two neighbours of a row. The
// fragments are virtual threads, so that all of a lane's sums are registers. Chunks of both
// operands are copied into shared memory, several chunks ahead of their use.
#pragma once

#include <vector>

#include "space/anchored_plan.h"
#include "space/estimate/gpu_kernel.h"
#include "space/mma_product.h"

namespace tensorsmith::space {

class GpuMmaPlan final : public AnchoredPlan {
 public:
  // `pads`: stages that are computed where an operand is copied.
  GpuMmaPlan(const PlanContext& context, StageId output, StageId anchor, MmaProduct product,
             std::vector<StageId> pads);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions decisions) const override;
  Status check(Decisions decisions) const override;
  double estimate(Decisions decisions, EstimateParts*) const override;
  void sample(Rng& rng, std::span<int64_t> decisions) const override;

 private:
  struct Choice {
    int64_t warp_rows = 16, warp_columns = 16;  // tile of a warp
    int64_t warps_down = 1, warps_across = 1;
    int64_t chunk = 16;  // steps of the reduction
    int64_t stages = 1;  // chunks in shared memory at a time
    bool padded = false, columns_outside = false;
    int64_t group = 1;          // tiles of the outer axis whose blocks follow each other
    int64_t vector_bytes = 16;  // bytes that a thread copies at once

    int64_t rows() const { return warp_rows * warps_down; }
    int64_t columns() const { return warp_columns * warps_across; }
    int64_t warps() const { return warps_down * warps_across; }
  };

  // The layout of an operand's tile in shared memory.
  struct Copy {
    int64_t vector = 1;         // elements that a thread copies at once
    int64_t rows = 1, row = 1;  // elements of a row are along the axis that is contiguous in the tile
    bool contiguous = true;     // a row of the tile is contiguous in the tensor too
    int64_t run = 1;            // elements of a row that are contiguous in the tensor, then
    int64_t row_stride = 1;
    AxisId aligned;                  // axis whose stride is padded, or none
    int64_t factor = 1, offset = 0;  // its stride is a multiple of `factor`, plus `offset` elements
    double elements() const { return rows * row; }
  };

  Choice decode(Decisions decisions) const;
  bool is_aligned(const ReadIndex& index, AxisId own, int64_t line, int64_t vector) const;
  Copy copy_of(const Choice& c, const Read& read, AxisId own) const;
  GpuBlock block(const Choice& c) const;
  // Returns the number of chunks of the whole reduction.
  int64_t chunks(const Choice& c) const;
  double dram_bytes(const Choice& c, double blocks) const;
  // Returns the axis along which a tile has lines of kFoldedPoints rows or columns, or none.
  AxisId folded(AxisId own) const {
    return own == product_.rows ? product_.folded_rows : product_.folded_columns;
  }
  // Returns the number of tiles of so many rows or columns along their axis, or along the folded
  // axis.
  int64_t tiles_along(AxisId own, int64_t tile) const;
  // Return the rows or columns of the output, and those of all its tiles.
  int64_t points(AxisId own) const;
  int64_t covered(AxisId own, int64_t tile) const;
  bool fits(const Read& read, AxisId own, int64_t tile) const;
  // Returns the number of tiles along the outer axis, along which blocks are grouped.
  int64_t outer_tiles(const Choice& c) const;

  LoopId emit_output(TraceMaker& maker, const Choice& c) const;
  LoopId emit_anchor(TraceMaker& maker, const Choice& c, StageId anchor) const;
  void emit_copy(TraceMaker& maker, const Choice& c, const Copy& copy, StageId stage) const;

  MmaProduct product_;
  size_t warp_rows_ = kNone, warp_columns_ = kNone, warps_down_ = kNone, warps_across_ = kNone,
         chunk_ = kNone, stages_ = kNone, layout_ = kNone, order_ = kNone, group_ = kNone, vector_ = kNone;
};

}  // namespace tensorsmith::space
