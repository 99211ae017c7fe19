// Plans of stages without data reuse: elementwise chains, transposes, gathers, argmax. Rows are
// outside, and the contiguous axis is vectorized; optionally all axes are tiled.
#pragma once

#include <string>
#include <vector>

#include "space/plan_kind.h"

namespace tensorsmith::space {

class SpatialPlan final : public Plan {
 public:
  SpatialPlan(const PlanContext& context, StageId output, bool tiled);

  std::string describe() const override { return (tiled_ ? "tiles " : "rows ") + context_.op(output_).name; }

  void emit(TraceMaker& maker, Decisions d) const override;

  Status check(Decisions d) const override;

  double estimate(Decisions d, EstimateParts* parts) const override;

 private:
  // Categories of the flat slot: 0 = rows, else combinations of vector length and vectors per
  // chunk.
  bool is_flat(Decisions d) const { return flat_ && category(d, flat_slot_) > 0; }
  size_t parallel(Decisions d) const { return parallel_slot_ == kNone ? 0 : category(d, parallel_slot_); }
  int64_t flat_length(Decisions d) const { return category(d, flat_slot_) >= 3 ? 2 * lanes_ : lanes_; }
  int64_t flat_chunk(Decisions d) const { return category(d, flat_slot_) % 2 == 1 ? 16 : 128; }
  int64_t vector_length(Decisions d) const { return lengths(d, tile_slot_)[1]; }
  int64_t unrolled(Decisions d) const { return vector_axis_.valid() ? lengths(d, tile_slot_)[0] : 1; }

  // Length of a tile along an axis of live_: 1 if the axis is not tiled. Not for flat rows.
  double tile_length(Decisions d, AxisId axis) const;
  // Returns how many cache lines a strided read fetches from beyond L1, per element.
  double fetched_lines(Decisions d, const Read& read) const;
  // Returns whether every read runs through memory like the output, or does not move.
  bool flat_compatible() const;

  StageId output_;
  bool tiled_;
  const StageInfo& info_;
  std::vector<Read> reads_;
  std::vector<AxisId> live_;  // spatial axes of extent > 1
  int64_t lanes_ = 1;
  AxisId vector_axis_;  // none: no vectors
  bool flat_ = false;
  size_t flat_slot_ = kNone, tile_slot_ = kNone, parallel_slot_ = kNone, tail_slot_ = kNone;
  IdVector<AxisId, size_t> tile_slots_;
};

}  // namespace tensorsmith::space
