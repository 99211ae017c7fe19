// Groups whose reduction is a small sliding window.
#include "space/plans/window/window_plan.h"

namespace tensorsmith::space {

namespace {

// Larger windows are left to loops.
constexpr double kMaxWindow = 128;

// Every reduce axis moves some read along an output axis: no channels are summed, so that no operand but the
// window's weights is used by several outputs as a whole.
bool slides(const PlanContext& context, StageId anchor) {
  const auto& info = context.stage(anchor);
  std::vector<bool> sliding(info.extents.size(), false);
  for (const auto& read : effective_reads(context, anchor))
    for (const auto& index : read.indices) {
      if (!index.affine) continue;
      const auto moves = [&](int axis) {
        const auto a = static_cast<size_t>(axis);
        return index.coefficients[a] != 0 && info.extents[a] > 1;
      };
      bool spatial = false;
      for (int a = 0; a < info.num_spatial; ++a) spatial = spatial || moves(a);
      for (int a = info.num_spatial; spatial && a < info.num_axes(); ++a)
        if (moves(a)) sliding[static_cast<size_t>(a)] = true;
    }
  bool any = false;
  for (int a = info.num_spatial; a < info.num_axes(); ++a) {
    if (info.extent(a) <= 1) continue;
    if (!sliding[static_cast<size_t>(a)]) return false;
    any = true;
  }
  return any;
}

// None where the anchor reduces over no small sliding window or its output has no contiguous axis.
void make(const PlanContext& context, const Group& group, Plans& plans) {
  const StageId output = group.root, anchor = group.anchor;
  if (!anchor.valid() || group.pattern != nullptr || !group.attached.empty()) return;
  const auto& info = context.stage(anchor);
  // A window plan computes what its anchor reads in place: packed elements would be packed many times.
  if (info.dot) return;
  if (info.arg_reduction || info.reduce_points() > kMaxWindow || !slides(context, anchor)) return;
  std::vector<int> output_axis(static_cast<size_t>(info.num_spatial), -1);
  if (output == anchor) {
    for (int a = 0; a < info.num_spatial; ++a) output_axis[static_cast<size_t>(a)] = a;
  } else {
    for (const auto& read : effective_reads(context, output))
      if (read.producer == anchor) output_axis = context.analysis->axis_map(read);
  }
  bool lanes = false;
  for (int a = 0; a < info.num_spatial; ++a)
    lanes = lanes || (info.extent(a) > 1 &&
                      output_axis[static_cast<size_t>(a)] == context.stage(output).contiguous_axis);
  if (!lanes) return;
  plans.push_back(std::make_shared<WindowPlan>(context, output, anchor, group.pads, std::move(output_axis)));
}

}  // namespace

extern const PlanKind window_kind{"window", make};

}  // namespace tensorsmith::space
