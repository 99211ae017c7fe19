// Another way to the features of a schedule, for comparison: the loop program that TVM looks at when it
// extracts features: after loops are made, before storage is made compact. Every buffer has the whole
// tensor's shape and every index is global, so that a temporary computed tile by tile still shows which tile;
// there are no guards.
#pragma once

#include <utility>
#include <vector>

#include "ir/stmt.h"
#include "sched/schedule.h"

namespace tensorsmith::feature::testing {

struct ScheduleView {
  ir::Program program;
  // Elements that are really allocated for each temporary and output: the region computed at a time.
  std::vector<std::pair<ir::Buffer, int64_t>> allocated;
};
// Not for running: iterations beyond an extent that does not divide are not guarded, layouts are ignored.
// Errors are those of sched::infer_bounds.
Result<ScheduleView> view_schedule(const sched::Schedule& schedule);

}  // namespace tensorsmith::feature::testing
