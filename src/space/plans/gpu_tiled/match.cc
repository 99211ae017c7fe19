// Groups of a reduction with data reuse, with or without the elementwise stage that reads it.
#include "space/plan_kind.h"
#include "space/plans/gpu_tiled/gpu_tiled_plan.h"

namespace tensorsmith::space {

namespace {

void make_gpu_tiled(const PlanContext& context, const Group& group, Plans& plans) {
  if (!group.anchor.valid() || group.pattern != nullptr || !group.attached.empty()) return;
  // Without reuse, a tile gains nothing over the threads of gpu_rows and gpu_spatial.
  const auto& info = context.stage(group.anchor);
  if (!info.data_reuse || info.num_axes() == info.num_spatial) return;
  plans.push_back(std::make_shared<GpuTiledPlan>(context, group.root, group.anchor, group.pads));
}

}  // namespace

extern const PlanKind gpu_tiled_kind{"gpu_tiled", make_gpu_tiled, nullptr, target::DeviceKind::kGpu};

}  // namespace tensorsmith::space
