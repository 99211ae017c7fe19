#include "space/plans/window/window_plan.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::space {

WindowPlan::WindowPlan(const PlanContext& context, StageId output, StageId anchor, std::vector<StageId> pads,
                       AxisMap output_axis)
    : Plan(context),
      output_(output),
      anchor_(anchor),
      pads_(std::move(pads)),
      info_(context.stage(anchor)),
      output_axis_(std::move(output_axis)),
      reads_(effective_reads(context, anchor)),
      lanes_(context.machine.lanes(info_.element_bytes)) {
  const std::string name = context.op(anchor).name;
  const auto& out = context.stage(output);
  for (const AxisId a : info_.spatial_axes()) {
    if (extent(a) <= 1) continue;
    live_.push_back(a);
    if (output_axis_[a] == out.contiguous_axis) vector_axis_ = a;
  }
  std::sort(live_.begin(), live_.end(),
            [&](AxisId x, AxisId y) { return output_axis_[x] < output_axis_[y]; });
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
  if (context.threads > 1) {
    std::vector<double> weights(live_.size() + 1, 1.0);
    weights[0] = 0.1;
    parallel_slot_ = add_category(name + ".parallel", DecisionRole::kParallel, weights);
  }
  tail_slot_ = add_category(name + ".tail", DecisionRole::kTail, {0.5, 0.5});
}

std::string WindowPlan::describe() const {
  std::string text = "window " + context_.op(anchor_).name;
  if (anchor_ != output_) text += " into " + context_.op(output_).name;
  for (const StageId p : pads_) text += " with " + context_.op(p).name;
  return text;
}

Status WindowPlan::check(Decisions d) const {
  const auto refuse = [&](std::string reason) {
    return Error{ErrorCode::kResourceExhausted, context_.op(anchor_).name, std::move(reason)};
  };
  double points = info_.reduce_points() * strip(d), padded = 1;
  for (const AxisId a : live_) {
    const double e = extent(a), t = tile_length(d, a);
    if (a != vector_axis_) points *= t;
    padded *= t * std::ceil(e / t) / e;
  }
  if (points > kMaxUnrolled) return refuse("too much unrolled code");
  if (padded > 2) return refuse("more than half of the tiles would be tail");
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
