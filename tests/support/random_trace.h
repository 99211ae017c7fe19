// Random legal traces: every primitive, with arguments that are often but not always legal; steps
// that the schedule refuses are left out.
#pragma once

#include "base/rng.h"
#include "sched/step.h"

namespace tensorsmith::test {

struct RandomTraceOptions {
  int proposals = 24;        // how many steps are tried
  bool thread_axes = false;  // also bind loops to GPU axes
  bool layouts = true;       // also pack_layout and storage_align
  double tiled = 0.3;        // probability to start with multi-level tiles like those of a tuner's sketch
  bool odd_factors = true;   // also factors that do not divide, or exceed, the extent
};

// Draws a step for the schedule that is legal, or at least looks legal.
sched::Step propose_step(const sched::Schedule& schedule, const sched::Trace& trace, Rng& rng,
                         const RandomTraceOptions& options = {});

// Applies proposals to a fresh schedule; the result's trace() is legal by construction.
sched::ScheduleBuilder random_schedule(const ir::Workload& workload, Rng& rng,
                                       const RandomTraceOptions& options = {});
sched::Trace random_trace(const ir::Workload& workload, Rng& rng, const RandomTraceOptions& options = {});

}  // namespace tensorsmith::test
