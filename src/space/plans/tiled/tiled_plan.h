// Multi-level tiling of a reduction with the elementwise consumer that writes its result:
//
//   one level (SRS):       parallel outer tiles / reduction / register tile
//   two levels (SSRSRS):   outer tiles / tiles / reduction / tiles / reduction / register tile
//
// The anchor (reduction) accumulates one tile of the output stage in local memory; the output stage may be
// the elementwise consumer, or a copy made by cache_write. The innermost length of each spatial axis is its
// side of the register tile.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "space/anchored_plan.h"

namespace tensorsmith::space {

class TiledPlan final : public AnchoredPlan {
 public:
  TiledPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads,
            bool two_level);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions decisions) const override;
  Status check(Decisions decisions) const override;
  double estimate(Decisions decisions, EstimateParts* parts) const override;
  void sample(Rng& rng, std::span<int64_t> decisions) const override;

 private:
  enum class PadLocation : uint8_t { kInline, kRoot, kTile, kReduceTile };

  // The decisions, by axis of the anchor. Lengths are 1 where an axis has no slot.
  struct Choice {
    Lengths t1, t2, t3;  // of spatial axes: tile counts and register tile
    Lengths r1;          // of reduce axes: inner length of two levels
    Lengths region;      // of spatial axes: extents of what the anchor computes at its attach point
    std::vector<AxisId> outer_order;  // spatial axes of extent > 1, outermost tile loops in this order
    std::vector<AxisId> reduce_order;
    AxisId vector_axis;  // none: no vectors
    int64_t lanes = 1;   // lanes of the anchor's innermost loop
    bool pack = false, cache_write = true;
    uint32_t copied = 0;        // bit i: the i-th operand is copied
    bool attach_outer = false;  // two levels: attach at the outer tile loops
    size_t parallel = 0;        // number of outer loops that are fused and parallel
    int64_t unroll = 1;         // unrolled points of the reduction
    sched::TailPolicy tail = sched::TailPolicy::kPredicate;
    std::vector<PadLocation> pads;

    // Points of a spatial axis in an outer tile, and in the register tile.
    int64_t tile(AxisId a) const { return t1[a] * t2[a] * t3[a]; }
    int64_t register_length(AxisId a) const { return std::min(t3[a], region[a]); }
  };

  // A read of the anchor, through inlined stages, and the changes that decisions can make to it.
  struct Operand {
    Read read;
    bool direct = false;    // read by the anchor itself
    bool packable = false;  // constant whose dimensions are whole axes
    bool copyable = false;  // the same for an input that is no constant
    size_t pad = kNone;     // index into pads_
    uint32_t bit = 0;       // bit in Choice::copied
    size_t copy_slot = kNone;
  };

  // Returns the steps of a reduce axis in the loop inside the tiles.
  int64_t inner_steps(const Choice& c, AxisId axis) const { return two_level_ ? c.r1[axis] : extent(axis); }
  Choice decode(Decisions decisions) const;
  void collect_operands();
  void make_slots();

  void emit_attached(TraceMaker& maker, const Choice& c, StageId output, StageId anchor) const;
  // Loops of the output stage to which other stages are attached; kNoLoop if there is none.
  struct OutputLoops {
    LoopId outer_last;  // the last loop of the outer tiles, for pads
    LoopId attach;      // for the anchor
  };
  OutputLoops emit_output(TraceMaker& maker, const Choice& c, StageId output) const;
  // Returns the last loop of the outer level of the reduction, or kNoLoop.
  LoopId emit_anchor(TraceMaker& maker, const Choice& c, StageId anchor) const;
  void emit_direct(TraceMaker& maker, const Choice& c, StageId stage) const;
  void emit_register_tile(TraceMaker& maker, const Choice& c, StageId stage, const std::vector<LoopId>& outer,
                          const std::vector<LoopId>& reduce, const IdVector<AxisId, LoopId>& inner) const;
  void emit_pads(TraceMaker& maker, const Choice& c, StageId output, LoopId output_loop, StageId anchor,
                 LoopId reduce_loop) const;
  // Returns whether the operand is read from a copy or packed constant of the schedule's own, in
  // the order of its loops.
  static bool rearranged(const Choice& c, const Operand& operand) {
    return (operand.packable && c.pack) || (c.copied & operand.bit) != 0;
  }
  // Returns whether a copied operand whose elements are broadcast keeps pieces of its rows
  // together. The copy then moves whole vectors instead of transposing.
  bool keeps_rows(const Choice& c, const Operand& operand) const;
  sched::Layout packed_layout(const Choice& c, const Operand& operand) const;

  // Returns the bytes that an operand occupies in a cache with ways of way_bytes: more than its
  // size if its rows fall into the same sets.
  double occupied(const Operand& operand, const AxisRanges& touched, double bytes, double way_bytes) const;
  // Return the bytes of the whole operand, and the bytes from one of its rows to the next.
  double bytes_of(const Operand& operand) const;
  double row_distance(const Operand& operand) const;
  double conflicting_rows(const Choice& c, const Operand& operand, const AxisRanges& touched,
                          double way_bytes, double cache_bytes) const;
  double copy_cycles(const Choice& c) const;
  double line_crossings(const Choice& c, const Operand& operand) const;
  double loop_exit_cycles(const Choice& c) const;
  bool aliased_rows(const Choice& c) const;
  double steps_of_a_sum(const Choice& c) const;
  double micro_kernel_cycles(const Choice& c, EstimateParts* parts) const;
  // Fills the facts of the choice.
  void set_choice_parts(const Choice& c, double tail, EstimateParts& parts) const;
  // Cycles of the data that comes from L2, and from L3 and memory, while products are computed, and
  // cycles that products wait for.
  struct Traffic {
    double from_l2 = 0, from_beyond = 0, waited = 0;
  };
  Traffic traffic_cycles(const Choice& c) const;
  class CacheWalk;
  double broadcast_streams(const Choice& c) const;
  double register_tiles(const Choice& c, AxisId axis, double micro_cycles) const;
  // Returns the slowdown by a tile that does not divide the extent.
  double tail_cost(const Choice& c, AxisId axis, int64_t tile) const;
  double pad_cycles(const Choice& c) const;
  double write_cycles(const Choice& c) const;
  // A register tile that matrix units compute (codegen/matrix_nest.h): the numbers of tiles that
  // its rows and columns have.
  struct MatrixTile {
    AxisId rows;
    int64_t row_tiles = 1, column_tiles = 1;
    int64_t depth = 1;  // steps of the reduction in one product of tiles
  };
  std::optional<MatrixTile> matrix_tile(const Choice& c) const;
  // Returns false if the decisions are no register tile of matrix units, and another one must be
  // sampled.
  bool sample_matrix_tile(Rng& rng, std::span<int64_t> decisions) const;
  double accumulators(const Choice& c) const;
  int64_t unrolled_steps(const Choice& c) const;
  double unrolled_instructions(const Choice& c) const;
  double peeled_bodies(const Choice& c) const;

  bool two_level_;
  std::vector<Operand> operands_;
  std::vector<AxisId> vector_axes_;  // categories of the vector slot

  IdVector<AxisId, size_t> tile_slot_;
  size_t vector_slot_ = kNone, order_slot_ = kNone, reduce_order_slot_ = kNone, pack_slot_ = kNone,
         cache_slot_ = kNone, attach_slot_ = kNone, parallel_slot_ = kNone, unroll_slot_ = kNone,
         tail_slot_ = kNone;
  std::vector<size_t> pad_slots_;
};

}  // namespace tensorsmith::space
