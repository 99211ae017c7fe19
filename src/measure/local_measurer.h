// The measurer of this machine with its builder shown, for tests.
#pragma once

#include "measure/builder.h"
#include "measure/measurer.h"

namespace tensorsmith::measure {

Result<std::unique_ptr<Measurer>> make_local_measurer(const target::Device& device,
                                                      const MeasureOptions& options,
                                                      std::vector<std::string> worker_command, LogSink& log,
                                                      std::shared_ptr<const Builder> builder);

// Loops in the order of the definition; the innermost spatial axis vectorized, some rows before it unrolled inside of
// the reduction, the outermost parallel.
// Simple, so that its output can stand for the expected one after a check of sampled points.
sched::Trace reference_trace(const ir::Workload& workload);

}  // namespace tensorsmith::measure
