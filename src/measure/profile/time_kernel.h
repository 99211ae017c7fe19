// Times a profiled program again: searches stop the timing of slow programs after one reading,
// which other programs on the machine may have disturbed.
#pragma once

#include <map>
#include <string>

#include "codegen/backend.h"
#include "ir/workload.h"
#include "sched/step.h"

namespace tensorsmith::measure {

inline constexpr const char* kTiming = "timing-1";

// Returns the counter "seconds": the least processor time of several runs with warm caches on one
// thread. No model uses it as a feature. Errors as for simulate().
Result<std::map<std::string, double>> time_kernel(const ir::Workload& workload, const sched::Trace& trace,
                                                  const target::Device& device,
                                                  const codegen::Backend& backend, double most_seconds);

}  // namespace tensorsmith::measure
