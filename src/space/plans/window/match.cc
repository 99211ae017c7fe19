// Groups whose reduction is a small sliding window.
#include "space/plan_kind.h"
#include "space/plans/window/window_plan.h"

namespace tensorsmith::space {

namespace {

// Larger windows are left to plans that keep their loops.
constexpr double kMaxWindow = 128;

// Returns whether every reduce axis moves some read along an output axis. Then no channels are
// summed, and only the window's weights are used by several outputs as a whole.
bool slides(const PlanContext& context, StageId anchor) {
  const auto& info = context.stage(anchor);
  IdVector<AxisId, bool> sliding(info.num_axes(), false);
  for (const auto& read : effective_reads(context, anchor))
    for (const auto& index : read.indices) {
      if (!index.affine) continue;
      const auto moves = [&](AxisId a) { return index.coefficients[a] != 0 && info.extent(a) > 1; };
      bool spatial = false;
      for (const AxisId a : info.spatial_axes()) spatial = spatial || moves(a);
      for (const AxisId a : info.reduce_axes())
        if (spatial && moves(a)) sliding[a] = true;
    }
  bool any = false;
  for (const AxisId a : info.reduce_axes()) {
    if (info.extent(a) <= 1) continue;
    if (!sliding[a]) return false;
    any = true;
  }
  return any;
}

// Makes no plan if the anchor does not reduce over a small sliding window or its output has no
// contiguous axis.
void make_window(const PlanContext& context, const Group& group, Plans& plans) {
  const StageId output = group.root, anchor = group.anchor;
  if (!anchor.valid() || group.pattern != nullptr || !group.attached.empty()) return;
  const auto& info = context.stage(anchor);
  // A window plan computes the anchor's operands in place; packed elements would be packed many
  // times.
  if (info.dot) return;
  if (info.arg_reduction || info.reduce_points() > kMaxWindow || !slides(context, anchor)) return;
  const AxisMap output_axis = axes_in(context, output, anchor);
  bool lanes = false;
  for (const AxisId a : info.spatial_axes())
    lanes = lanes || (info.extent(a) > 1 && output_axis[a] == context.stage(output).contiguous_axis);
  if (!lanes) return;
  plans.push_back(std::make_shared<WindowPlan>(context, output, anchor, group.pads));
}

}  // namespace

extern const PlanKind window_kind{"window", make_window};

}  // namespace tensorsmith::space
