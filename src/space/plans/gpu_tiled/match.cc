// Groups of a reduction, with or without the elementwise stage that reads it.
#include "space/plans/gpu_tiled/gpu_tiled_plan.h"

namespace tensorsmith::space {

namespace {

void make(const PlanContext& context, const Group& group, Plans& plans) {
  if (!group.anchor.valid() || group.pattern != nullptr || !group.attached.empty()) return;
  plans.push_back(std::make_shared<GpuTiledPlan>(context, group.root, group.anchor, group.pads));
}

}  // namespace

extern const PlanKind gpu_tiled_kind{"gpu_tiled", make, nullptr, target::DeviceKind::kGpu};

}  // namespace tensorsmith::space
