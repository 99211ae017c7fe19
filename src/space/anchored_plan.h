// Plans that compute a reduction (the anchor) in tiles, in the loops of the
// stage that writes its result.
#pragma once

#include <string>
#include <vector>

#include "space/plan.h"

namespace tensorsmith::space {

class AnchoredPlan : public Plan {
 protected:
  using Lengths = IdVector<AxisId, int64_t>;

  // `output`: the anchor itself, or its elementwise consumer. `pads`: injective
  // stages that only the anchor reads.
  AnchoredPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads);

  int64_t extent(AxisId axis) const { return info_.extent(axis); }
  // Returns `kind` with the names of the plan's stages.
  std::string describe_stages(std::string kind) const;
  // Appends a slot for which axis of live_ comes last in the order of outer
  // loops, if there are several.
  size_t add_order();
  // Returns live_ in the order of this slot: category k puts the k-th axis from
  // the end last.
  std::vector<AxisId> ordered(Decisions decisions, size_t order_slot) const;
  // Returns whether a read stays in place over blocks of spatial axes (the
  // channels of a grouped convolution), so that it counts as affine if tiles of
  // these axes divide the blocks. Then block_ is updated.
  bool tile_within_blocks(const Read& read);

  StageId output_, anchor_;
  bool self_;  // the anchor is the output
  std::vector<StageId> pads_;
  const StageInfo& info_;            // of the anchor
  AxisMap output_axis_;              // for each spatial axis of the anchor, the axis of the output stage
  AxisId contiguous_;                // the anchor's axis that is contiguous in the output, if any
  std::vector<AxisId> live_;         // spatial axes of extent > 1, in the output's order
  std::vector<AxisId> live_reduce_;  // reduce axes of extent > 1
  Lengths block_;                    // by spatial axis: a length that tiles must divide; 1 = any tile
};

}  // namespace tensorsmith::space
