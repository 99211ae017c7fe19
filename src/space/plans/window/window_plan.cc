#include "space/plans/window/window_plan.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::space {

WindowPlan::WindowPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads)
    : AnchoredPlan(context, output, anchor, std::move(pads)),
      reads_(effective_reads(context, anchor)),
      lanes_(context.machine.lanes(info_.element_bytes)),
      vector_axis_(contiguous_) {
  const std::string name = context.op(anchor).name;
  // Only axes that windows slide along are tiled, because only there neighbours have loads in
  // common.
  tile_slot_.assign(info_.num_spatial, kNone);
  for (const AxisId a : live_)
    if (a != vector_axis_ && slides_along(a))
      tile_slot_[a] = add_tile(name + ".tile." + context.axis_name(anchor, a), extent(a), 1, 1, 64);
  strip_slot_ = add_tile(name + ".strip." + context.axis_name(anchor, vector_axis_), extent(vector_axis_), 2,
                         lanes_, lanes_);
  for (const StageId pad : pads_)
    pad_slots_.push_back(
        add_category(context.op(pad).name + ".location", DecisionRole::kLocation, {3, 1, 1}));
  parallel_slot_ = add_parallel(name, live_.size());
  tail_slot_ = add_category(name + ".tail", DecisionRole::kTail, {0.5, 0.5});
}

std::string WindowPlan::describe() const { return describe_stages("window"); }

Status WindowPlan::check(Decisions d) const {
  double points = info_.reduce_points() * strip(d), padded = 1;
  for (const AxisId a : live_) {
    const double e = extent(a), t = tile_length(d, a);
    if (a != vector_axis_) points *= t;
    padded *= t * std::ceil(e / t) / e;
  }
  if (points > kMaxUnrolled) return refuse(anchor_, "too much unrolled code");
  if (padded > 2) return refuse(anchor_, "more than half of the tiles would be tail");
  return {};
}

bool WindowPlan::slides_along(AxisId axis) const {
  for (const auto& read : reads_)
    for (const auto& index : read.indices) {
      if (!index.affine || index.coefficients[axis] == 0) continue;
      for (const AxisId r : info_.reduce_axes())
        if (extent(r) > 1 && index.coefficients[r] != 0) return true;
    }
  return false;
}

AxisRanges WindowPlan::tile_ranges(Decisions d) const {
  AxisRanges ranges(info_.num_axes());
  for (const AxisId a : info_.axes()) ranges[a] = extent(a);
  for (const AxisId a : live_) ranges[a] = std::min(extent(a), tile_length(d, a));
  return ranges;
}

}  // namespace tensorsmith::space
