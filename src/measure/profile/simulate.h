// Simulated profiles: runs the kernel's code, instrumented to report its basic blocks and accesses
// (codegen/traced.h), and feeds the accesses to a model of the device's caches. The profile has
// only counts; no counter is a time or derived from one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "ir/workload.h"
#include "sched/step.h"

namespace tensorsmith::measure {

// Name and version of the simulation in records; the number changes when the meaning of a counter
// changes.
inline constexpr const char* kSimulation = "simulation-1";

struct SimulationOptions {
  // Accesses simulated in each of the two runs. For the remaining ones, an instruction is assumed
  // to miss as often as before.
  int64_t most_accesses = int64_t{1} << 25;
  double most_seconds = 60;  // then the program is given up with kTimeout
};

// Returns counters by name: instructions by kind ("fma"), accesses, and misses of each cache
// ("l1.misses") and of each buffer ("buffer.NAME.l2.misses"). They are for one call of the kernel
// that starts with the caches as the preceding call left them. All chunks of parallel loops run on
// one core, one after another. This machine must be able to run the device's code. The kernel runs
// in a child process, so that a crash is only an error. Must not be called while other threads of
// this process are active.
Result<std::map<std::string, double>> simulate(const ir::Workload& workload, const sched::Trace& trace,
                                               const target::Device& device, const codegen::Backend& backend,
                                               const SimulationOptions& options);

}  // namespace tensorsmith::measure
