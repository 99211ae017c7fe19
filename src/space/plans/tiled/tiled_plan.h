// Multi-level tiling of a reduction with the elementwise consumer that writes its result:
//
//   one level (SRS):       parallel outer tiles / reduction / register tile
//   two levels (SSRSRS):   outer tiles / tiles / reduction / tiles / reduction / register tile
//
// The anchor (reduction) accumulates one tile of the output stage in local memory; the output stage may be
// the elementwise consumer, or a copy made by cache_write. The innermost length of each spatial axis is its
// side of the register tile.
#pragma once

#include <vector>

#include "space/plan_kind.h"

namespace tensorsmith::space {

class TiledPlan final : public Plan {
 public:
  TiledPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads,
            bool two_level);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions decisions) const override;
  Status check(Decisions decisions) const override;
  double estimate(Decisions decisions) const override;
  void sample(Rng& rng, std::span<int64_t> decisions) const override;

 private:
  enum class PadLocation : uint8_t { kInline, kRoot, kTile, kReduceTile };

  // The decisions by axis of the anchor (spatial, then reduce). Lengths are 1 where an axis has no slot.
  struct Choice {
    std::vector<int64_t> t1, t2, t3;  // spatial: tile counts and register tile
    std::vector<int64_t> r1;          // by reduce axis: inner length; the full extent with one level
    std::vector<int64_t> region;      // by spatial axis: what the anchor computes at its attach point
    std::vector<int> outer_order;     // spatial axes of extent > 1, outermost tile loops in this order
    std::vector<int> reduce_order;
    int vector_axis = -1;
    int64_t lanes = 1;  // of the anchor's innermost loop
    bool pack = false, cache_write = true;
    uint32_t copied = 0;        // bit i: the i-th operand is copied
    bool attach_outer = false;  // two levels: at the outer tile loops
    size_t parallel = 0;        // how many outer loops are fused and parallel
    int64_t unroll = 1;         // reduction points unrolled
    sched::TailPolicy tail = sched::TailPolicy::kPredicate;
    std::vector<PadLocation> pads;
  };

  // A read of the anchor, through inlined stages, with what the decisions can do to it.
  struct Operand {
    Read read;
    bool direct = false;    // read by the anchor itself
    bool packable = false;  // constant whose dimensions are whole axes
    bool copyable = false;  // the same for an intermediate or input
    int pad = -1;           // index into pads_
    uint32_t bit = 0;       // in Choice::copied
    size_t copy_slot = kNone;
  };

  size_t axes() const { return static_cast<size_t>(spatial_ + reduce_); }
  int64_t extent(size_t axis) const { return info_.extents[axis]; }
  Choice decode(Decisions decisions) const;
  // Reads that stay in place over a block of a spatial axis (the channels of a grouped convolution) count as
  // affine: tiles of such an axis divide the block, so that none straddles two.
  void collect_operands();
  bool tile_within_blocks(const Read& read);  // and records the blocks
  void make_slots();

  void emit_attached(TraceMaker& maker, const Choice& c, StageId output, StageId anchor) const;
  void emit_direct(TraceMaker& maker, const Choice& c, StageId stage) const;
  void emit_register_tile(TraceMaker& maker, const Choice& c, StageId stage, const std::vector<LoopId>& outer,
                          const std::vector<LoopId>& reduce, const std::vector<LoopId>& inner) const;
  void emit_pads(TraceMaker& maker, const Choice& c, StageId output, LoopId output_loop, StageId anchor,
                 LoopId reduce_loop) const;
  // The operand is read from a place of the schedule's own, in the order of its loops.
  static bool rearranged(const Choice& c, const Operand& operand) {
    return (operand.packable && c.pack) || (c.copied & operand.bit) != 0;
  }
  // A copied operand whose elements are broadcast keeps pieces of its rows together, so that the copy moves
  // whole vectors instead of transposing.
  bool keeps_rows(const Choice& c, const Operand& operand) const;
  sched::Layout packed_layout(const Choice& c, const Operand& operand) const;

  // Bytes of a cache with a way of way_bytes that an operand takes: more than it has where its rows fall into
  // the same sets.
  double occupied(const Operand& operand, std::span<const double> touched, double bytes,
                  double way_bytes) const;
  // Of the whole operand, and from one of its rows to the next.
  double bytes_of(const Operand& operand) const;
  double row_distance(const Operand& operand) const;
  double conflicting_rows(const Choice& c, const Operand& operand, std::span<const double> touched,
                          double way_bytes, double cache_bytes) const;
  double copy_cycles(const Choice& c) const;
  double line_crossings(const Choice& c, const Operand& operand) const;
  double loop_exit_cycles(const Choice& c) const;
  bool aliased_rows(const Choice& c) const;
  double micro_kernel_cycles(const Choice& c) const;
  // Cycles of what comes from L2, L3 and memory while products are computed, and of what they wait for.
  struct Traffic {
    double streamed = 0, waited = 0;
  };
  Traffic traffic_cycles(const Choice& c) const;
  double broadcast_streams(const Choice& c) const;
  double register_tiles(const Choice& c, int axis, double micro_cycles) const;
  double tail_cost(const Choice& c, int axis, int64_t tile) const;  // factor of a tile that does not divide
  double pad_cycles(const Choice& c) const;
  double write_cycles(const Choice& c) const;
  double accumulators(const Choice& c) const;
  double unrolled_instructions(const Choice& c) const;
  double peeled_bodies(const Choice& c) const;

  StageId output_, anchor_;
  bool self_;  // the anchor is the output: cache_write makes the copy
  std::vector<StageId> pads_;
  bool two_level_;
  const StageInfo& info_;  // of the anchor
  int spatial_, reduce_;
  std::vector<int> output_axis_;  // by the anchor's spatial axis: axis of the output stage
  int contiguous_ = -1;           // the anchor's axis that is contiguous in the output
  std::vector<Operand> operands_;
  std::vector<int64_t> block_;    // by spatial axis: tiles divide it (see collect_operands); 1 = any tile
  std::vector<int> live_;         // spatial axes of extent > 1
  std::vector<int> live_reduce_;  // reduce axes of extent > 1 (axis numbers)
  std::vector<int> vector_axes_;  // categories of the vector slot

  std::vector<size_t> spatial_slot_, reduce_slot_;
  size_t vector_slot_ = kNone, order_slot_ = kNone, reduce_order_slot_ = kNone, pack_slot_ = kNone,
         cache_slot_ = kNone, attach_slot_ = kNone, parallel_slot_ = kNone, unroll_slot_ = kNone,
         tail_slot_ = kNone;
  std::vector<size_t> pad_slots_;
};

}  // namespace tensorsmith::space
