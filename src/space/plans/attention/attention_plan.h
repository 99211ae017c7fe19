// Attention as one loop nest: softmax(scores) * values, where the division by the sums comes last:
//
//   for each block of rows (queries):  their scores, by register tiles
//                                      for each row: the maximum, the exponentials
//                                      sums; contraction with the values, by register tiles; division
//
// The scores of a block and their exponentials are in L2, whatever the length of the rows. Keys and
// values are read once per block.
#pragma once

#include <vector>

#include "space/plan_kind.h"

namespace tensorsmith::space {

// The stages of an attention: product = sum over keys of exponential(masked - maximum) * values.
// The anchor is the product. Elementwise stages between the scores and the masked scores must be
// inlined for the plan.
struct AttentionStages final : Pattern {
  StageId scores, masked;  // the same if nothing is done to the scores
  StageId maximum, exponential, sum, product;
};

class AttentionPlan final : public Plan {
 public:
  // `output`: the stage that divides the contraction, element by element.
  AttentionPlan(const PlanContext& context, StageId output, const AttentionStages& stages);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions decisions) const override;
  Status check(Decisions decisions) const override;
  double estimate(Decisions decisions, EstimateParts* parts) const override;
  void sample(Rng& rng, std::span<int64_t> decisions) const override;

 private:
  // The register tile of a contraction: rows and columns of its result, lanes of its vectors, and
  // unrolled points of the sum.
  struct Tile {
    int64_t rows = 1, columns = 1, lanes = 1, unroll = 1;
  };
  struct Choice {
    int64_t rows = 1;  // rows of a block
    Tile scores, product;
    // Which loops of the output are parallel: 0 = none, 1 = those of the batch, 2 = also those over
    // blocks.
    size_t parallel = 0;
  };
  // A constant with all rows and columns that the masked scores read, and its dimensions for these.
  struct Mask {
    StageId constant;
    AxisId row, column;
  };
  struct TileSlots {
    size_t rows = 0, columns = 0, unroll = 0;
  };

  Choice decode(Decisions decisions) const;
  TileSlots add_tile_slots(const std::string& name, int64_t columns);
  Tile decode_tile(Decisions d, const TileSlots& slots, int64_t rows, int64_t columns, int64_t depth) const;
  int64_t vectors(const Tile& tile) const;
  // Returns the last reduce axis of extent > 1, else the first reduce axis.
  static AxisId summed_axis(const StageInfo& info);

  void find_masks();
  // Masks are packed so that the register tiles of the scores read them from front to back. Tiles
  // must divide for that: a shifted tile does not begin where a tile of the packed mask does.
  bool packs_masks(const Choice& c) const { return queries_ % c.rows == 0 && keys_ % c.scores.columns == 0; }
  sched::Layout packed_mask(const Choice& c, const Mask& mask) const;

  // Loops of the output: the one around a block, and the one around a register tile of the product.
  struct OutputLoops {
    LoopId block, tile;
  };
  OutputLoops emit_output(TraceMaker& maker, const Choice& c) const;
  void emit_scores(TraceMaker& maker, const Choice& c, LoopId block) const;
  // Orders the loops of a register tile's accumulators, given the axes of its rows, columns and
  // sum.
  void emit_accumulators(TraceMaker& maker, const Tile& tile, StageId stage, AxisId row_axis,
                         AxisId column_axis, AxisId reduce_axis) const;
  // Reduces along rows, first to lanes, which are then added up. Returns the additional stages that
  // this takes, readers first.
  std::vector<StageId> emit_row_reduction(TraceMaker& maker, StageId stage) const;
  // Makes the rows of the scores or exponentials begin in separate cache lines, and not in the same
  // set of a cache.
  void spread_rows(TraceMaker& maker, StageId stage) const;
  LoopId emit_exponentials(TraceMaker& maker) const;  // returns the loop over rows

  double contraction_cycles(const Tile& tile, double rows, double columns, double depth, bool from_l2) const;
  double mask_cycles(const Choice& c) const;
  double softmax_cycles(const Choice& c) const;
  double traffic_cycles(const Choice& c) const;

  StageId output_;
  const AttentionStages& stages_;
  double batch_ = 1;
  int64_t queries_ = 1, keys_ = 1, depth_ = 1,
          width_ = 1;                // depth: length of the scores' sums, width: columns of the values
  AxisId score_row_, score_column_;  // of the scores and the exponentials
  AxisId score_reduce_;
  AxisId product_row_, product_column_, product_reduce_;
  AxisId sum_row_;
  AxisId output_row_, output_column_;

  std::vector<Mask> masks_;

  size_t rows_slot_ = 0, parallel_slot_ = 0;
  TileSlots score_slots_, product_slots_;
};

}  // namespace tensorsmith::space
