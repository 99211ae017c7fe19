// Profiles of recorded programs: each is run under a profiler, and what it counted is stored beside the record.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "measure/profile/simulate.h"
#include "record/database.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct ProfileOptions {
  target::Device device;  // this machine, a weaker variant of it or its GPU: the programs' code runs here
  std::string
      profiler;  // measure::kSimulation, kPerfEvents or kTiming; of NVIDIA's GPUs record::kNcuProfiler
  std::string database_path;                   // of the database, which Nsight Compute's child opens again
  std::optional<std::set<std::string>> tasks;  // by key; none: all
  int64_t per_task = 0;                        // programs of a task, the fastest first; 0: all
  bool again = false;  // those too that have such a profile; of times the least is kept
  measure::SimulationOptions simulation;
};

struct ProfileReport {
  int64_t profiled = 0, known = 0, failed = 0;
  std::vector<std::string> problems;  // "TASK: reason", at most 20
  double seconds = 0;
};

// Called after each program.
using ProfileProgress = std::function<void(const ProfileReport&, int64_t programs)>;

// Programs whose record succeeded on the device. One that cannot be profiled is counted and named; errors are those of
// the database and of a profiler that does not work here at all.
Result<ProfileReport> profile_programs(record::Database& database, const ProfileOptions& options,
                                       const Clock& clock, const ProfileProgress& progress,
                                       const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
