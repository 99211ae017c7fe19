// The compiled program whose output stands for the expected one where the interpreter would take too long.
#pragma once

#include "ir/workload.h"
#include "sched/step.h"

namespace tensorsmith::measure {

// Loops in the order of the definition; the innermost spatial axis vectorized, some rows before it unrolled inside of
// the reduction, the outermost parallel.
// Simple, so that its output can stand for the expected one after a check of sampled points.
sched::Trace reference_trace(const ir::Workload& workload);
// The same for GPUs: a thread for each element.
sched::Trace gpu_reference_trace(const ir::Workload& workload);

}  // namespace tensorsmith::measure
