// Reads hardware counters of this processor through Linux's perf_event_open.
#pragma once

#include <map>
#include <string>

#include "codegen/backend.h"
#include "ir/workload.h"
#include "sched/step.h"

namespace tensorsmith::measure {

inline constexpr const char* kPerfEvents = "perf-1";

// kUnsupported if the machine or its administrator provides no counters; the reason is one line
// that suggests a remedy.
Status check_perf_events();

// Returns counters of one call of the kernel, after a warm-up call, by the Linux kernel's names
// ("instructions", "L1-dcache-load-misses"). "cycles" is a time, and no model is trained on it.
// Errors as for simulate().
Result<std::map<std::string, double>> count_events(const ir::Workload& workload, const sched::Trace& trace,
                                                   const target::Device& device,
                                                   const codegen::Backend& backend, double most_seconds);

}  // namespace tensorsmith::measure
