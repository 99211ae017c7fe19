#include "measure/prepared_tasks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/memory.h"
#include "ir/structural.h"
#include "measure/reference_program.h"
#include "record/disturbance.h"

namespace tensorsmith::measure {
namespace {

using record::MeasureResult;

// Tasks with fewer operations get their expected outputs from the interpreter.
constexpr double kEvaluateFlops = 2e6;
// Above this the interpreter takes minutes, so a task whose reference program is wrong cannot be
// measured.
constexpr double kMaxEvaluateFlops = 5e9;
// Operations for checking sampled points of a compiled reference.
constexpr double kVerifyFlops = 4e6;
// Least bytes of cached task data; the cache may also use this share of the machine's memory. It
// should hold the largest tasks of a model that are measured in turns, since making a task again
// takes seconds.
constexpr int64_t kLeastTaskCacheBytes = int64_t{1} << 30;
constexpr int64_t kTaskCacheShare = 16;
// The reference program is simple, so large tasks take long. It reaches at least half a GFLOP/s
// even if every element of an operand comes from memory.
constexpr double kReferenceSecondsPerFlop = 2e-9;

// Least length of a repeat whose energy is measured: the counters change about once a millisecond.
constexpr double kEnergyRepeatSeconds = 0.05;

int64_t task_cache_bytes() { return std::max(memory_limit() / kTaskCacheShare, kLeastTaskCacheBytes); }

}  // namespace

RunRequest run_request(const MeasureOptions& options, const BuiltCandidate& built, double best_seconds,
                       int64_t flush_bytes, std::optional<double> disturbance) {
  RunRequest request;
  request.object = built.kernel.object;
  request.symbol = built.kernel.symbol;
  request.launches = built.kernel.launches;
  request.shared_workspace_bytes = built.kernel.shared_workspace_bytes;
  request.thread_workspace_bytes = built.kernel.thread_workspace_bytes;
  request.prepared = built.prepared;
  request.flush_bytes = flush_bytes;
  request.timing.min_repeats = options.min_repeats;
  request.timing.max_repeats = options.max_repeats;
  request.timing.target_spread = options.target_spread;
  request.timing.min_repeat_s =
      options.measure_energy ? std::max(options.min_repeat_s, kEnergyRepeatSeconds) : options.min_repeat_s;
  request.timing.best_seconds = std::isfinite(best_seconds) ? best_seconds : 0;
  // Others may lengthen a reading by 1 / trust, and a single one may be lengthened by more.
  request.timing.hopeless_factor = options.hopeless_factor / record::trust(disturbance);
  request.timing.hopeless_repeats = record::is_doubtful(disturbance) ? 2 : 1;
  request.timing.loser_factor = options.loser_factor;
  request.timing.budget_s = options.run_timeout_s / 2;
  request.timing.flush_cache = options.flush_cache;
  return request;
}

Status PreparedTasks::expected_by_program(const ir::Workload& workload, std::span<const lower::Tensor> inputs,
                                          const Reference& reference, const sched::Trace& trace,
                                          PreparedTask& task) {
  BuildResult build = reference.builder.build(workload, trace);
  if (const auto* failed = std::get_if<BuildFailure>(&build))
    return Error{ErrorCode::kUnsupported, "reference program", failed->reason};
  task.reference_timeout_s =
      std::max(options_.run_timeout_s, ir::flop_count(workload) * kReferenceSecondsPerFlop);
  RunRequest request = run_request(options_, std::get<BuiltCandidate>(build), 0, 0);
  request.make_reference = true;
  TS_ASSIGN_OR_RETURN(const MeasureResult result,
                      reference.worker.run(task, encode(request), task.reference_timeout_s));
  if (!result.ok()) {
    return Error{ErrorCode::kMismatch, "reference program",
                 std::string(record::to_string(result.outcome)) + ": " + result.reason};
  }
  task.data->set_tolerances(workload);
  return verify_points(workload, inputs, *task.data, kVerifyFlops, 1);
}

Status PreparedTasks::make_expected(const ir::Workload& workload, std::span<const lower::Tensor> inputs,
                                    PreparedTask& task) {
  const double flops = ir::flop_count(workload);
  if (flops > kEvaluateFlops) {
    Status status;
    const auto try_program = [&](const Reference& reference, const sched::Trace& trace) {
      status = expected_by_program(workload, inputs, reference, trace, task);
      if (!status.ok()) log_.log(LogLevel::kWarning, "task " + task.key + ": " + status.error().message());
      return status.ok();
    };
    if (gpu_ && flops > options_.most_host_flops && try_program(*gpu_, gpu_reference_trace(workload)))
      return {};
    for (const auto& trace : {reference_trace(workload), sched::Trace{}})
      if (try_program(reference_, trace)) return {};
    if (flops > kMaxEvaluateFlops) return status;
  }
  TS_ASSIGN_OR_RETURN(const auto outputs, lower::evaluate(workload, inputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].data.empty())
      std::memcpy(task.data->output(i), outputs[i].data.data(), outputs[i].data.size());
  }
  task.data->set_tolerances(workload);
  return {};
}

Result<const PreparedTask*> PreparedTasks::prepare(const ir::Workload& workload) {
  const std::string key = ir::structural_key(workload);
  for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
    if (it->key != key) continue;
    tasks_.splice(tasks_.begin(), tasks_, it);
    return &tasks_.front();
  }
  PreparedTask task;
  task.key = key;
  // The seed depends only on the task, so a resumed run compares with the same values.
  const std::vector<lower::Tensor> inputs = random_inputs(workload, Hasher().add(key).digest64(), values_);
  TS_ASSIGN_OR_RETURN(task.data, TaskData::create(workload, inputs, options_.memory_limit_bytes, threads_,
                                                  options_.measure_energy));
  TS_RETURN_IF_ERROR(make_expected(workload, inputs, task));
  task.data->seal();
  // The worker must receive the task again, to see the final tolerances and the seal.
  reference_.worker.forget_task();
  if (gpu_) gpu_->worker.forget_task();
  tasks_.push_front(std::move(task));
  const int64_t most = task_cache_bytes();
  int64_t bytes = 0;
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    bytes += it->data->spec().memory_bytes;
    it = it != tasks_.begin() && bytes > most ? tasks_.erase(it) : std::next(it);
  }
  return &tasks_.front();
}

}  // namespace tensorsmith::measure
