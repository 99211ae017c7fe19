// Cache of tasks with their inputs and expected outputs.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>

#include "measure/builder.h"
#include "measure/measurer.h"
#include "measure/worker_host.h"

namespace tensorsmith::measure {

// Makes the request to measure a built candidate. best_seconds: time of the task's best program (0
// or infinite: not known). disturbance: just before the run.
RunRequest run_request(const MeasureOptions& options, const BuiltCandidate& built, double best_seconds,
                       int64_t flush_bytes, std::optional<double> disturbance = {});

// The expected outputs of small tasks come from the interpreter. Those of larger tasks come from a
// simple compiled program that runs in a worker; sampled points of them are checked against the
// definition.
class PreparedTasks {
 public:
  // Builder and worker of reference programs; both must outlive this object, as must `options` and
  // `log`.
  struct Reference {
    const Builder& builder;
    WorkerHost& worker;
  };
  // threads: threads of the reference programs. gpu: computes outputs that would take the CPU long;
  // sampled points of them are still checked.
  PreparedTasks(const MeasureOptions& options, int threads, InputValues values, Reference reference,
                std::optional<Reference> gpu, LogSink& log)
      : options_(options), threads_(threads), values_(values), reference_(reference), gpu_(gpu), log_(log) {}

  // The result is valid until the next call.
  Result<const PreparedTask*> prepare(const ir::Workload& workload);

 private:
  Status make_expected(const ir::Workload& workload, std::span<const lower::Tensor> inputs,
                       PreparedTask& task);
  Status expected_by_program(const ir::Workload& workload, std::span<const lower::Tensor> inputs,
                             const Reference& reference, const sched::Trace& trace, PreparedTask& task);

  const MeasureOptions& options_;
  int threads_;
  InputValues values_;
  Reference reference_;
  std::optional<Reference> gpu_;
  LogSink& log_;
  std::list<PreparedTask> tasks_;  // most recently used first
};

}  // namespace tensorsmith::measure
