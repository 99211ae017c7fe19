// A simulated profile: the kernel's code with reports of its blocks and accesses (codegen/traced.h) runs here, and a
// model of the device's caches follows what it touches. Counts only: nothing in it is a time, or made of one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "ir/workload.h"
#include "sched/step.h"

namespace tensorsmith::measure {

// Of the simulation, as records name it; another meaning of a counter needs another number.
inline constexpr const char* kSimulation = "simulation-1";

struct SimulationOptions {
  // Accesses that go through the caches, in each of the two runs; of the rest an instruction's misses are taken to be
  // as frequent as before.
  int64_t most_accesses = int64_t{1} << 25;
  double most_seconds = 60;  // then the program is given up (kTimeout)
};

// Counters by name: instructions by kind ("fma"), accesses, and misses of each cache ("l1.misses"), one call of the
// kernel with the caches as the call before left them; and of each buffer ("buffer.NAME.l2.misses"). All chunks of
// parallel loops run on one core, one after the other. The device must be one whose code runs here. The kernel runs in
// a process of its own: one that crashes is an error and no more. Not for processes that have other threads at work.
Result<std::map<std::string, double>> simulate(const ir::Workload& workload, const sched::Trace& trace,
                                               const target::Device& device, const codegen::Backend& backend,
                                               const SimulationOptions& options);

}  // namespace tensorsmith::measure
