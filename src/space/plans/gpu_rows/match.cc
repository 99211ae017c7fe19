// Groups with the reductions of a row, and single reductions of more than a few points.
#include "space/plans/gpu_rows/gpu_rows_plan.h"

namespace tensorsmith::space {

namespace {

constexpr double kFewPoints = 16;

void make_gpu_rows(const PlanContext& context, const Group& group, Plans& plans) {
  if (group.pattern != nullptr) return;
  if (group.attached.empty() &&
      (!group.anchor.valid() || context.stage(group.anchor).reduce_points() < kFewPoints))
    return;
  if (context.stage(group.root).arg_reduction) return;
  plans.push_back(std::make_shared<GpuRowsPlan>(context, group));
}

}  // namespace

extern const PlanKind gpu_rows_kind{"gpu_rows", make_gpu_rows, nullptr, target::DeviceKind::kGpu};

}  // namespace tensorsmith::space
