// Groups with the reductions of a row, and reductions along memory.
#include <cmath>

#include "space/plans/rows/rows_plan.h"

namespace tensorsmith::space {

namespace {

// Returns whether the reads of a reduction run along a reduce axis in memory, so that lanes over
// its output axes would gather.
bool reduces_contiguously(const PlanContext& context, StageId s) {
  const auto& info = context.stage(s);
  for (const auto& read : effective_reads(context, s)) {
    if (!read.affine) continue;
    for (const AxisId a : info.reduce_axes())
      if (info.extent(a) > 1 && std::abs(read.stride(a)) == 1) return true;
  }
  return false;
}

void make_rows(const PlanContext& context, const Group& group, Plans& plans) {
  if (group.pattern != nullptr) return;
  std::vector<StageId> attached = group.attached;
  if (attached.empty()) {
    if (!group.anchor.valid() || !group.pads.empty() || !reduces_contiguously(context, group.anchor)) return;
    if (group.anchor != group.root) attached.push_back(group.anchor);
  }
  plans.push_back(std::make_shared<RowsPlan>(context, group.root, std::move(attached)));
}

}  // namespace

extern const PlanKind rows_kind{"rows", make_rows};

}  // namespace tensorsmith::space
