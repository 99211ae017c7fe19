// The loops around the blocks of a schedule, to compare them with those of TVM.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sched/schedule.h"

namespace tensorsmith::record::testing {

using StageLoops = std::vector<std::pair<int64_t, std::string>>;  // extent and annotation, outer to inner

// Adds the leaves of the stage up to `last`, or all of them, after those of the stages around it. Loops that run
// once are left out.
inline void add_stage_loops(const sched::Schedule& schedule, const sched::Bounds& bounds, sched::StageId s,
                            std::optional<sched::IteratorId> last, StageLoops& out) {
  const sched::Stage& stage = schedule.stages[s];
  if (stage.attach == sched::AttachKind::kAt)
    add_stage_loops(schedule, bounds, stage.attach_stage, stage.attach_iterator, out);
  for (const sched::IteratorId leaf : stage.leaves) {
    const int64_t extent = bounds.stages[s].extents[leaf];
    if (extent != 1) out.emplace_back(extent, sched::to_string(stage.iterators[leaf].annotation));
    if (last == leaf) return;
  }
}

}  // namespace tensorsmith::record::testing
