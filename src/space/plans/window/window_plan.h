// Plans of reductions over a small sliding window (depthwise convolutions, pooling). The window is
// unrolled inside each vector of outputs, and so are the rows of a tile. Then loads are shared by
// neighbouring rows, the masks at the border are constants if a tile spans the image, and an output
// goes to memory straight from its accumulator:
//
//   parallel outer tiles / strips of vectors / rows / window / vector
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "space/anchored_plan.h"

namespace tensorsmith::space {

class WindowPlan final : public AnchoredPlan {
 public:
  WindowPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads);

  std::string describe() const override;

  void emit(TraceMaker& maker, Decisions d) const override;

  Status check(Decisions d) const override;

  void sample(Rng& rng, std::span<int64_t> d) const override;

  double estimate(Decisions d, EstimateParts* parts) const override;

 private:
  // Most window points in the code of one tile; compile time grows with them.
  static constexpr double kMaxUnrolled = 320;
  enum class PadLocation : uint8_t { kInline, kTile, kRoot };

  int64_t tile(Decisions d, AxisId axis) const {
    const size_t slot = tile_slot_[axis];
    return slot == kNone ? 1 : lengths(d, slot)[0];
  }
  // Returns whether some index moves both along the axis and along the window.
  bool slides_along(AxisId axis) const;
  int64_t width(Decisions d) const { return std::min(lengths(d, strip_slot_)[1], extent(vector_axis_)); }
  int64_t strip(Decisions d) const { return lengths(d, strip_slot_)[0]; }
  int64_t tile_length(Decisions d, AxisId axis) const {
    return axis == vector_axis_ ? width(d) * strip(d) : tile(d, axis);
  }

  PadLocation location(Decisions d, size_t pad) const {
    return static_cast<PadLocation>(category(d, pad_slots_[pad]));
  }

  size_t parallel(Decisions d) const { return parallel_slot_ == kNone ? 0 : category(d, parallel_slot_); }

  sched::TailPolicy tail_of(Decisions d) const {
    return category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
  }
  // Returns the points of each of the anchor's axes in one tile.
  AxisRanges tile_ranges(Decisions d) const;

  void emit_pads(TraceMaker& maker, Decisions d, LoopId outer_last) const;

  // Returns the number of different loads for the points of the window and the rows of a tile, for
  // a single point of the vector axis.
  double distinct_loads(const Read& read, Decisions d) const;

  double tile_cycles(Decisions d, double vectors) const;

  // Returns the cycles of the data from the cache that holds everything: whole rows stream, and
  // each piece of a row touches one more line.
  double traffic_cycles(Decisions d, double tiles) const;

  double pad_cycles(Decisions d) const;

  std::vector<Read> reads_;  // reads of the anchor, through inlined stages
  int64_t lanes_;
  AxisId vector_axis_;  // contiguous in the output
  IdVector<AxisId, size_t> tile_slot_;
  std::vector<size_t> pad_slots_;
  size_t strip_slot_ = kNone, parallel_slot_ = kNone, tail_slot_ = kNone;
};

}  // namespace tensorsmith::space
