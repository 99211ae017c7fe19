// Building and timing candidates. The search sees only this interface.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/sinks.h"
#include "codegen/backend.h"
#include "ir/workload.h"
#include "record/record.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::measure {

struct MeasureOptions {
  record::MeasureSettings settings;
  double build_timeout_s = 8;  // processor time; four times as much wall time
  double run_timeout_s = 10;   // for all runs of one candidate
  int64_t memory_limit_bytes = int64_t{8} << 30;
  double target_spread = 0.02;  // relative half-width of the spread at which repeating stops
  int min_repeats = 3;
  int max_repeats = 12;
  double min_repeat_s = 0.001;  // a repeat runs the kernel until this much time has passed
  double hopeless_factor = 3;   // stop after the first repeat if slower than factor * best so far; 0 = never
  double loser_factor =
      1.1;  // stop after min_repeats if all were slower than factor * best so far; 0 = never
  int build_threads = 1;
  // Of this process: while it takes more, one candidate is built at a time; 0 = half of what the machine or its
  // cgroup has.
  int64_t build_memory_bytes = 0;
  // Expected outputs that take this machine more operations are computed on the GPU that is measured, if one is: seconds
  // would pass here. Their points are checked all the same.
  double most_host_flops = 2e10;
  const codegen::Backend* backend =
      &codegen::default_backend();  // never null; its kernels are self-contained
};

struct Candidate {
  sched::Trace trace;
  record::Candidate what;  // for its record; default where it becomes none
};

// A task being measured: workload plus what to compare the outputs with.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // Results in the order of candidates. Building the next overlaps running the current one. Never fails as a
  // whole for a candidate's sake; done(i, result) is called as each result arrives (same thread) and says
  // whether to go on: after false the results end with this one.
  using Done = std::function<bool(size_t, const record::MeasureResult&)>;
  virtual Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                             std::span<const Candidate> candidates,
                                                             double best_seconds_so_far,
                                                             const Done& done) = 0;
  // Seconds that this measurer waited for the machine so far, which no limit of time counts.
  virtual double waited_seconds() const { return 0; }
};

// Measures on this machine in sandboxed worker processes. worker_command: argv of a program that calls
// worker_main(), normally this_program_as_worker(); the backend's name is appended.
Result<std::unique_ptr<Measurer>> make_local_measurer(const target::Device& device,
                                                      const MeasureOptions& options,
                                                      std::vector<std::string> worker_command, LogSink& log);

// Of programs whose main() begins with `if (is_worker(argc, argv)) return worker_main(argc, argv);`.
std::vector<std::string> this_program_as_worker();
// The same of another program with such a main().
std::vector<std::string> as_worker(const std::string& program);
bool is_worker(int argc, char** argv);

// The worker's main loop on the inherited descriptor; the last argument names the backend that loads kernels. Returns
// the exit code.
int worker_main(int argc, char** argv);

}  // namespace tensorsmith::measure
