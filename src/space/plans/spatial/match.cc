// Groups without an anchor and without attached stages.
#include "space/plans/spatial/spatial_plan.h"

namespace tensorsmith::space {

namespace {

void make_spatial(const PlanContext& context, const Group& group, Plans& plans) {
  if (group.anchor.valid() || !group.attached.empty()) return;
  const auto& info = context.stage(group.root);
  plans.push_back(std::make_shared<SpatialPlan>(context, group.root, false));
  if (info.reduction) return;
  int live = 0;
  for (int64_t extent : info.extents) live += extent > 1 ? 1 : 0;
  if (live > 1) plans.push_back(std::make_shared<SpatialPlan>(context, group.root, true));
}

}  // namespace

extern const PlanKind spatial_kind{"spatial", make_spatial};

}  // namespace tensorsmith::space
