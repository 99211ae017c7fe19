// A second way to compute the features of a schedule, for comparison: the loop program from which
// TVM extracts features, after loops are made and before storage is made compact. Every buffer has
// the whole tensor's shape and every index is global, so that the tile of a temporary is visible in
// its indices; there are no guards.
#pragma once

#include <utility>
#include <vector>

#include "ir/stmt.h"
#include "sched/schedule.h"

namespace tensorsmith::feature::testing {

struct ScheduleView {
  ir::Program program;
  // Elements that are actually allocated for each temporary and output: the region that is computed
  // at a time.
  std::vector<std::pair<ir::Buffer, int64_t>> allocated;
};
// The program cannot be run: iterations beyond an extent that does not divide are not guarded, and
// layouts are ignored. Errors are those of sched::infer_bounds.
Result<ScheduleView> view_schedule(const sched::Schedule& schedule);

}  // namespace tensorsmith::feature::testing
