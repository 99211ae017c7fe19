// Schedules as text, for golden tests and messages, and as workloads.
#pragma once

#include <string>

#include "sched/schedule.h"

namespace tensorsmith::test {

// Prints the loop nest, with attached stages inside their loops, and with extents if bounds can be
// inferred:
//   for i.0 (4) parallel
//     for j.0 (8)
//       C.local = ...
std::string print_schedule(const sched::Schedule& schedule);

// Returns the rewritten workload, whose operations are those of the schedule's stages.
ir::Workload workload_of(const sched::Schedule& schedule);

}  // namespace tensorsmith::test
