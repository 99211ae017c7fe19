// Groups of a reduction, with or without the elementwise stage that reads it.
#include "space/plan_kind.h"
#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

namespace {

void make_tiled(const PlanContext& context, const Group& group, Plans& plans) {
  if (!group.anchor.valid() || group.pattern != nullptr || !group.attached.empty()) return;
  plans.push_back(std::make_shared<TiledPlan>(context, group.root, group.anchor, group.pads, false));
  if (context.stage(group.anchor).data_reuse)
    plans.push_back(std::make_shared<TiledPlan>(context, group.root, group.anchor, group.pads, true));
}

}  // namespace

extern const PlanKind tiled_kind{"tiled", make_tiled};

}  // namespace tensorsmith::space
