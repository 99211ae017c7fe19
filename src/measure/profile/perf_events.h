// Hardware counters of this processor, through Linux's perf_event_open.
#pragma once

#include <map>
#include <string>

#include "codegen/backend.h"
#include "ir/workload.h"
#include "sched/step.h"

namespace tensorsmith::measure {

inline constexpr const char* kPerfEvents = "perf-1";

// kUnsupported where the machine or its administrator gives no counters; the reason is one line with what would help.
Status check_perf_events();

// Counters by the kernel's names for them ("instructions", "L1-dcache-load-misses"), a call of the kernel, after one
// that warmed the caches. "cycles" is a time and no model is trained on it. Errors as of simulate().
Result<std::map<std::string, double>> count_events(const ir::Workload& workload, const sched::Trace& trace,
                                                   const target::Device& device,
                                                   const codegen::Backend& backend, double most_seconds);

}  // namespace tensorsmith::measure
