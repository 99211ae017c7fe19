// Tasks with inputs and expected outputs, made once and kept while they are used.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>

#include "measure/builder.h"
#include "measure/measurer.h"
#include "measure/worker_host.h"

namespace tensorsmith::measure {

// The request to measure a built candidate of a task whose best program takes best_seconds (0 or infinite: not known).
RunRequest run_request(const MeasureOptions& options, const BuiltCandidate& built, double best_seconds,
                       int64_t flush_bytes);

// The expected outputs of small tasks are the interpreter's. Of others they are a simple compiled program's, which runs
// in a worker; sampled points of them are checked against the definition.
class PreparedTasks {
 public:
  // Who computes reference programs: they outlive this object, as options and log do.
  struct Reference {
    const Builder& builder;
    WorkerHost& worker;
  };
  // threads: of the reference programs. gpu: computes those that would take this machine long; their points are checked all
  // the same.
  PreparedTasks(const MeasureOptions& options, int threads, InputValues values, Reference reference,
                std::optional<Reference> gpu, LogSink& log)
      : options_(options), threads_(threads), values_(values), reference_(reference), gpu_(gpu), log_(log) {}

  // Valid until the next call.
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
