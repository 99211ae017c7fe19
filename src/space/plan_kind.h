// The kinds of plans. A kind is a folder of plans/ and a line of the table in plans/table.cc; no
// other code names it.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "space/plan.h"
#include "target/target.h"

namespace tensorsmith::space {

// Stages that are scheduled together: a root and stages that can be computed inside its loops.
struct Group {
  StageId root;
  StageId anchor;                 // reduction that is computed in tiles; may be the root, or none
  std::vector<StageId> pads;      // injective stages that only the anchor reads, ascending
  std::vector<StageId> attached;  // stages of a row, ascending
  const Pattern* pattern = nullptr;
};

using Patterns = std::vector<std::unique_ptr<const Pattern>>;
using Plans = std::vector<std::shared_ptr<const Plan>>;  // shared by sketches

struct PlanKind {
  std::string_view name;  // name of its folder
  // Appends the plans of this kind for the group, if there are any, the usual one first.
  void (*make)(const PlanContext& context, const Group& group, Plans& plans);
  // Appends the patterns of this kind in the workload. Null if the kind has none.
  void (*match)(const PlanContext& context, Patterns& patterns) = nullptr;
  target::DeviceKind device = target::DeviceKind::kCpu;  // kind of devices that these plans are offered for
};

// All kinds, in the order in which their plans become the alternatives of a group. The last one for
// each kind of device is fallback_kind(): it makes a legal plan of any single stage and is not
// offered as an alternative.
std::span<const PlanKind* const> plan_kinds();
const PlanKind& fallback_kind(target::DeviceKind device);

}  // namespace tensorsmith::space
