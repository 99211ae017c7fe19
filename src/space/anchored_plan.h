// Plans that compute a reduction (the anchor) in tiles, in the loops of the stage that writes its result.
#pragma once

#include <string>
#include <vector>

#include "space/plan.h"

namespace tensorsmith::space {

class AnchoredPlan : public Plan {
 protected:
  using Lengths = IdVector<AxisId, int64_t>;

  // `output`: the anchor itself, or its elementwise consumer. `pads`: injective stages that only the anchor
  // reads.
  AnchoredPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads);

  int64_t extent(AxisId axis) const { return info_.extent(axis); }
  // Returns `kind` with the names of the plan's stages.
  std::string describe_stages(std::string kind) const;
  // Adds a slot that decides which axis of live_ comes last in the order of outer loops. Returns kNone if
  // live_ has fewer than two axes.
  size_t add_order();
  // Returns live_ in the order that this slot decides: category k moves the axis with k axes behind it to the
  // end.
  std::vector<AxisId> ordered(Decisions decisions, size_t order_slot) const;
  // Returns whether a read stays in place over blocks of spatial axes (the channels of a grouped
  // convolution). Such a read counts as affine, because block_ is updated so that tiles of these axes divide
  // the blocks.
  bool tile_within_blocks(const Read& read);

  StageId output_, anchor_;
  bool self_;  // the anchor is the output
  std::vector<StageId> pads_;
  const StageInfo& info_;            // the anchor's
  AxisMap output_axis_;              // for each spatial axis of the anchor, the axis of the output stage
  AxisId contiguous_;                // the anchor's axis that is contiguous in the output, if any
  std::vector<AxisId> live_;         // spatial axes of extent > 1, in the output's order
  std::vector<AxisId> live_reduce_;  // reduce axes of extent > 1
  Lengths block_;                    // by spatial axis: a length that tiles must divide; 1 = any tile
};

}  // namespace tensorsmith::space
