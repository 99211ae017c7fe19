// Interface for building and timing candidates, as the search sees it.
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
  bool flush_cache = false;    // empty the caches before each timed run
  double build_timeout_s = 8;  // processor time; the limit on wall time is four times as much
  double run_timeout_s = 10;   // for all runs of one candidate
  int64_t memory_limit_bytes = int64_t{8} << 30;
  double target_spread = 0.02;  // repeating stops at this relative half-width of the spread
  int min_repeats = 3;
  int max_repeats = 12;
  double min_repeat_s = 0.001;  // a repeat runs the kernel until this much time has passed
  // Stop after the first repeat if slower than factor * best so far; 0 = never. While others use the machine,
  // the factor is divided by record::trust(), and two readings must agree.
  double hopeless_factor = 3;
  double loser_factor =
      1.1;  // stop after min_repeats if all were slower than factor * best so far; 0 = never
  // Also measure the energy of each candidate (energy.h), on CPUs and without flush_cache only.
  bool measure_energy = false;
  int build_threads = 1;
  // While this process uses more memory, candidates are built one at a time; 0 = half of the memory
  // of the machine or cgroup.
  int64_t build_memory_bytes = 0;
  // Expected outputs that need more operations on this machine are computed on the GPU if a GPU is
  // measured, since they would take seconds on the CPU. Sampled points of them are still checked.
  double most_host_flops = 2e10;
  const codegen::Backend* backend =
      &codegen::default_backend();  // never null; its kernels are self-contained
};

struct MeasureRequest {
  sched::Trace trace;
  record::CandidateOrigin what;  // stored with its record; default if it makes no record
};

// Measures candidates of workloads and checks their outputs.
class Measurer {
 public:
  virtual ~Measurer() = default;
  // Returns results in the order of the candidates. The next candidate is built while the current
  // one runs. A failing candidate never makes the call fail. done(i, result) is called on the
  // calling thread as each result arrives; if it returns false, the results end with this one.
  using Done = std::function<bool(size_t, const record::MeasureResult&)>;
  virtual Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                             std::span<const MeasureRequest> candidates,
                                                             double best_seconds_so_far,
                                                             const Done& done) = 0;
  // Seconds that this measurer has waited for the machine so far; time limits do not count them.
  virtual double waited_seconds() const { return 0; }
};

// Measures on this machine in sandboxed worker processes. worker_command: argv of a program that
// calls worker_main(), normally this_program_as_worker(); the backend's name is appended.
Result<std::unique_ptr<Measurer>> make_local_measurer(const target::Device& device,
                                                      const MeasureOptions& options,
                                                      std::vector<std::string> worker_command, LogSink& log);

// Worker command of this program, whose main() must begin with `if (is_worker(argc, argv)) return
// worker_main(argc, argv);`.
std::vector<std::string> this_program_as_worker();
// Worker command of another program with such a main().
std::vector<std::string> as_worker(const std::string& program);
bool is_worker(int argc, char** argv);

// Main loop of a worker on the inherited descriptor; the last argument names the backend that loads
// kernels. Returns the exit code.
int worker_main(int argc, char** argv);

}  // namespace tensorsmith::measure
