#include "space/plans/spatial/spatial_plan.h"

namespace tensorsmith::space {

SpatialPlan::SpatialPlan(const PlanContext& context, StageId output, bool tiled)
    : Plan(context), output_(output), tiled_(tiled), info_(context.stage(output)) {
  reads_ = effective_reads(context, output);
  const std::string name = context.op(output).name;
  for (const AxisId a : info_.spatial_axes())
    if (info_.extent(a) > 1) live_.push_back(a);
  lanes_ = context.machine.lanes(info_.element_bytes);
  vector_axis_ = info_.arg_reduction ? AxisId() : info_.contiguous_axis;
  flat_ = !tiled && !info_.reduction && live_.size() > 1 && flat_compatible();
  if (flat_) flat_slot_ = add_category(name + ".flat", DecisionRole::kLocation, {1, 0.5, 0.5, 0.5, 0.5});
  if (vector_axis_.valid())
    tile_slot_ = add_tile(name + ".tile." + context.axis_name(output, vector_axis_),
                          info_.extent(vector_axis_), 2, lanes_, 4 * lanes_);
  tile_slots_.assign(info_.num_axes(), kNone);
  if (tiled)
    for (const AxisId a : live_)
      if (a != vector_axis_)
        tile_slots_[a] = add_tile(name + ".tile." + context.axis_name(output, a), info_.extent(a), 1, 1, 64);
  parallel_slot_ = add_parallel(name, live_.size());
  tail_slot_ = add_category(name + ".tail", DecisionRole::kTail, {0.25, 0.75});
}

Status SpatialPlan::check(Decisions d) const {
  if (!vector_axis_.valid()) return {};
  double inner = vector_length(d);
  for (size_t slot : tile_slots_)
    if (slot != kNone) inner *= lengths(d, slot)[0];
  if (inner * info_.element_bytes > 2 * context_.machine.l2_bytes)
    return refuse(output_, "the tile does not fit the cache");
  if (vector_length(d) > 8 * lanes_) return refuse(output_, "the vector is too long");
  return {};
}

bool SpatialPlan::flat_compatible() const {
  const auto strides = context_.op(output_).output()->effective_strides();
  for (const auto& read : reads_) {
    if (!read.affine || read.guarded) return false;
    bool same = true, still = true;
    for (const AxisId a : live_) {
      same = same && read.strides[a] == strides[a.place()];
      still = still && read.strides[a] == 0;
    }
    if (!same && !still) return false;
  }
  return true;
}

}  // namespace tensorsmith::space
