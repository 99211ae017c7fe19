// Tiles of a reduction on a GPU, with the elementwise consumer that writes its result (SSSRRSRS):
//
//   blocks / virtual threads / threads / reduction outside / reduction inside / register tile
//
// A block computes a tile of the output. A thread accumulates its part of the tile in registers:
// one register tile for each virtual thread; the elements of different ones are apart. Before each
// chunk of the reduction, the threads of the block together load the parts of the operands that it
// needs into shared memory.
#pragma once

#include <algorithm>
#include <vector>

#include "space/anchored_plan.h"
#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_kernel.h"

namespace tensorsmith::space {

class GpuTiledPlan final : public AnchoredPlan {
 public:
  GpuTiledPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions decisions) const override;
  Status check(Decisions decisions) const override;
  double estimate(Decisions decisions, EstimateParts*) const override;
  void sample(Rng& rng, std::span<int64_t> decisions) const override;

 private:
  // The decisions, by axis of the anchor. Lengths are 1 where an axis has no slot.
  struct Choice {
    Lengths vthreads, threads;        // of spatial axes
    Lengths outer, inner;             // of spatial axes: both levels of the register tile
    Lengths chunk;                    // of reduce axes: steps of a chunk
    Lengths step;                     // of reduce axes: points of a step
    std::vector<AxisId> block_order;  // spatial axes; blocks are numbered with the last one fastest
    int64_t unroll = 1;               // points of the reduction that are unrolled
    int64_t stages = 1;               // chunks of the operands in shared memory at a time

    int64_t registers(AxisId a) const { return outer[a] * inner[a]; }
    int64_t thread_tile(AxisId a) const { return vthreads[a] * registers(a); }
    int64_t tile(AxisId a) const { return threads[a] * thread_tile(a); }
  };

  // The read of one producer by the anchor, through inlined stages.
  struct Operand {
    Read read;
    size_t pad = kNone;      // index into pads_
    bool cacheable = false;  // the region that a tile reads is known
    size_t cache_slot = kNone, vector_slot = kNone, align_slot = kNone;
  };

  // The layout of an operand's tile in shared memory.
  struct Copy {
    bool made = false;
    int64_t vector = 1;  // elements that a thread loads at once
    Lengths extents;     // by axis of the producer
    AxisId aligned;      // axis whose stride is padded, or none
    int64_t align_factor = 1, align_offset = 0;
    int64_t row_stride = 1;  // stride of the axis before the contiguous one
    int64_t bytes = 0;
  };

  Choice decode(Decisions decisions) const;
  // Returns the extents of the region that is read, by axis of the producer.
  Lengths region(const Read& read, const AxisRanges& ranges) const;
  Copy copy_of(Decisions decisions, const Choice& c, const Operand& operand) const;
  void collect_operands();
  void make_slots();

  std::vector<LoopId> emit_output(TraceMaker& maker, const Choice& c) const;
  LoopId emit_anchor(TraceMaker& maker, const Choice& c, StageId anchor) const;

  int64_t threads(const Choice& c) const;
  GpuBlock block(Decisions decisions, const Choice& c) const;
  // Returns the points of an operand that a thread's register tiles need per point of the
  // reduction. `vthreads`: of all virtual threads, else of one.
  double values(const Choice& c, const Operand& operand, bool vthreads) const;
  int64_t store_vector(const Choice& c) const;
  double chunks(const Choice& c) const;  // number of chunks of the whole reduction
  // Returns how many values of a thread the products of the unrolled steps need at the same time.
  double live_values(const Choice& c) const;
  double run(const Operand& operand, const Copy& copy) const;
  void add_reads(const Operand& operand, const WarpAddresses& at, int64_t together, double reads,
                 GpuKernel& kernel) const;
  void add_copy(const Operand& operand, const Copy& copy, const Choice& c, GpuKernel& kernel) const;
  double waits(const Choice& c, const GpuKernel& kernel) const;
  void add_bytes(const Choice& c, GpuKernel& kernel) const;
  double computed_by(const Operand& operand) const;
  WarpAddresses lanes(const Choice& c, const Operand& operand, const Copy& copy) const;
  WarpAddresses output_lanes(const Choice& c) const;
  // Returns the addresses of a warp's lanes. Threads are numbered with the last axis fastest.
  WarpAddresses lanes_with(const Choice& c, const Lengths& strides) const;
  int64_t loaded_together(const Choice& c, const Operand& operand, const Copy& copy) const;
  // Returns the columns of a thread's sums if code generation keeps the sums in pairs of registers
  // (codegen/gpu/register_tile.h), else 0. `copies`: by operand.
  int64_t pair_columns(const Choice& c, const std::vector<Copy>& copies) const;
  int64_t steps_together(const Choice& c, const Operand& operand) const;
  // Returns the points of the reduction that are unrolled.
  int64_t unrolled_points(const Choice& c) const;
  double unrolled(const Choice& c) const;  // products that are unrolled
  bool guards_products(Decisions decisions, const Choice& c) const;

  std::vector<Operand> operands_;
  IdVector<AxisId, size_t> tile_slot_;
  size_t order_slot_ = kNone, unroll_slot_ = kNone, stages_slot_ = kNone;
};

}  // namespace tensorsmith::space
