// The kinds of plans. A kind is a folder of plans/ and a line of the table in plans/table.cc; nothing else
// names it.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "space/plan.h"
#include "target/target.h"

namespace tensorsmith::space {

// Stages that are scheduled together: a root and what can be computed inside its loops.
struct Group {
  StageId root;
  StageId anchor;                 // reduction computed in tiles; may be the root, or none
  std::vector<StageId> pads;      // injective stages that only the anchor reads, ascending
  std::vector<StageId> attached;  // stages of a row, ascending
  const Pattern* pattern = nullptr;
};

using Patterns = std::vector<std::unique_ptr<const Pattern>>;
using Plans = std::vector<std::shared_ptr<const Plan>>;  // sketches share them

struct PlanKind {
  std::string_view name;  // of its folder
  // Appends the plans of this kind for the group, the usual one first; nothing if there is none.
  void (*make)(const PlanContext& context, const Group& group, Plans& plans);
  // Appends the patterns of this kind in the workload. Null: it has none.
  void (*match)(const PlanContext& context, Patterns& patterns) = nullptr;
  target::DeviceKind device = target::DeviceKind::kCpu;  // plans of other devices are not offered
};

// In the order in which their plans are a group's alternatives. The last one of a kind of device makes a legal
// plan of any single stage and is no alternative of others: fallback_kind().
std::span<const PlanKind* const> plan_kinds();
const PlanKind& fallback_kind(target::DeviceKind device);

}  // namespace tensorsmith::space
