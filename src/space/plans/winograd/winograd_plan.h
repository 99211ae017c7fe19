// A 3x3 convolution by Winograd's minimal filtering (sched::Winograd), with the elementwise stage that writes
// its result:
//
//   strips:  for each strip of tile rows: its tiles of the data, their products with the weights, its outputs
//   stages:  all tiles of the data, then all products, then all outputs
//
// Strips keep the intermediate results of these steps in the cache and read the weights once per
// strip. Stages read the weights once. In both, the transform of the data processes one block of
// channels of one row of tiles at a time, and so does that of the outputs. The rows and columns
// between the two passes of a transform therefore never leave L1.
#pragma once

#include <vector>

#include "space/plan_kind.h"

namespace tensorsmith::space {

// The stages of a convolution that sched::Winograd has rewritten. The anchor is the result, the
// stage that was the convolution.
struct WinogradStages final : Pattern {
  int64_t m = 4;  // outputs of a tile per dimension
  StageId weights, data, rows, input, product, columns;
  StageId result;
};

// Axes of the result.
inline constexpr AxisId kBatch(0), kChannel(1), kHeight(2), kWidth(3);

class WinogradPlan final : public Plan {
 public:
  // `output`: the stage that reads stages.result element by element, or that stage itself.
  WinogradPlan(const PlanContext& context, StageId output, const WinogradStages& stages);

  std::string describe() const override;
  void emit(TraceMaker& maker, Decisions decisions) const override;
  Status check(Decisions decisions) const override;
  double estimate(Decisions decisions, EstimateParts* parts) const override;
  void sample(Rng& rng, std::span<int64_t> decisions) const override;

 private:
  // Where the data is brought into the order with channels innermost: all of it, that of a strip,
  // or that of a block of channels of a row of tiles. The last two repeat the data that two strips
  // or rows share.
  enum class DataLocation : uint8_t { kRoot, kStrip, kBlock };

  struct Choice {
    bool strips = true;
    int64_t strip = 1;                           // rows of tiles in a strip; all rows without strips
    int64_t tile_h = 1, tile_w = 1, tile_c = 1;  // register tile of the products
    int64_t lanes = 1;                           // lanes of the products' vectors
    int64_t unroll = 1;                          // unrolled input channels
    DataLocation data = DataLocation::kRoot;
    bool parallel = false;
  };

  Choice decode(Decisions decisions) const;
  int64_t channel_lanes(int64_t channels) const;
  // Returns whether the last register tile of a row is shifted over its neighbour. Little is then
  // computed twice, and the tile has the same code as the others.
  bool shifts_tiles(const Choice& c) const;
  int64_t code_copies(const Choice& c) const;  // of the products' register tile, including tails

  // Loops of the output stage: the one around a strip, and the one around a block of channels of a
  // row of tiles.
  struct OutputLoops {
    LoopId strip, block;
  };
  OutputLoops emit_output(TraceMaker& maker, const Choice& c) const;
  void emit_inverse_transform(TraceMaker& maker, StageId anchor, LoopId block) const;
  void emit_product(TraceMaker& maker, const Choice& c, StageId local) const;
  void emit_data_transform(TraceMaker& maker, const Choice& c, LoopId strip) const;
  sched::Layout packed_weights(const Choice& c) const;

  double product_cycles(const Choice& c, EstimateParts* parts) const;
  double weights_cycles(const Choice& c) const;
  double data_cycles(const Choice& c) const;
  double output_cycles(const Choice& c) const;
  double strip_bytes(const Choice& c) const;

  StageId output_;
  bool self_;  // the result is the output: cache_write makes the copy
  const WinogradStages& stages_;
  AxisMap output_axis_;  // for each axis of the result, the axis of the output stage
  int64_t batch_, height_, width_, in_channels_, out_channels_;
  int64_t tiles_h_, tiles_w_;

  size_t strip_slot_ = 0, placement_slot_ = 0, data_slot_ = 0, h_slot_ = 0, w_slot_ = 0, c_slot_ = 0,
         unroll_slot_ = 0, parallel_slot_ = 0;
};

}  // namespace tensorsmith::space
