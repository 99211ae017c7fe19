// Profiles recorded programs: runs each under a profiler and stores its counters beside the record.
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

namespace tensorsmith::lab {

struct ProfileOptions {
  // This machine, a weaker variant of it, or its GPU, since the programs run here.
  target::Device device;
  std::string
      profiler;  // measure::kSimulation, kPerfEvents or kTiming; record::kNcuProfiler for NVIDIA's GPUs
  std::string database_path;                   // the child process of Nsight Compute opens the database again
  std::optional<std::set<std::string>> tasks;  // by key; nullopt: all
  int64_t per_task = 0;                        // most programs per task, the fastest first; 0: all
  bool again = false;  // also profiles programs that have such a profile; of times, the least is kept
  measure::SimulationOptions simulation;
};

struct ProfileReport {
  int64_t profiled = 0, known = 0, failed = 0;
  std::vector<std::string> problems;  // "TASK: reason", at most 20
  double seconds = 0;
};

// Called after each program.
using ProfileProgress = std::function<void(const ProfileReport&, int64_t programs)>;

// Profiles programs whose record succeeded on the device. A program that cannot be profiled is
// counted and reported. Errors: those of the database, and of a profiler that does not work on this
// machine at all.
Result<ProfileReport> profile_programs(record::Database& database, const ProfileOptions& options,
                                       const Clock& clock, const ProfileProgress& progress,
                                       const std::atomic<bool>& cancel);

}  // namespace tensorsmith::lab
