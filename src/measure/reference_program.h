// Compiled program that computes the expected output if the interpreter would take too long.
#pragma once

#include "ir/workload.h"
#include "sched/step.h"

namespace tensorsmith::measure {

// Returns a schedule with loops in the order of the definition; the innermost spatial axis is
// vectorized, some rows before it are unrolled inside the reduction, and the outermost axis is
// parallel. The program is simple, so its output can be trusted after a check of sampled points.
sched::Trace reference_trace(const ir::Workload& workload);
// As above for GPUs: one thread per element.
sched::Trace gpu_reference_trace(const ir::Workload& workload);

}  // namespace tensorsmith::measure
