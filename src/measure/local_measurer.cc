#include "measure/local_measurer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <numeric>
#include <optional>

#include "base/hash.h"
#include "base/memory.h"
#include "base/processors.h"
#include "base/thread_pool.h"
#include "ir/structural.h"
#include "measure/build_pipeline.h"
#include "measure/task_data.h"
#include "measure/worker_process.h"

namespace tensorsmith::measure {
namespace {

using record::MeasureResult;

// Below this many operations the interpreter computes the expected outputs itself.
constexpr double kEvaluateFlops = 2e6;
// Above this it takes minutes: a task whose reference program is wrong cannot be measured.
constexpr double kMaxEvaluateFlops = 5e9;
// Operations spent on the sampled check of a compiled reference.
constexpr double kVerifyFlops = 4e6;
constexpr int64_t kTaskCacheBytes = int64_t{1} << 30;
constexpr double kStartTimeoutSeconds = 30;
constexpr int kStartAttempts = 3;
// How many candidates may be built ahead of the one that runs.
constexpr size_t kBuildAhead = 4;
constexpr size_t kExclusiveChunk = 8;

struct PreparedTask {
  std::string key;
  std::unique_ptr<TaskData> data;
  double reference_timeout_s = 0;
};

// The reference program is simple, so large tasks take it long: it reaches at least half a GFLOP/s even where
// every element of an operand comes from memory.
constexpr double kReferenceSecondsPerFlop = 2e-9;

std::vector<std::string> with_backend(std::vector<std::string> command, const codegen::Backend& backend) {
  command.emplace_back(backend.name());
  return command;
}

class LocalMeasurer final : public Measurer {
 public:
  LocalMeasurer(const target::Device& device, const MeasureOptions& options, std::vector<std::string> command,
                LogSink& log, std::shared_ptr<const Builder> builder)
      : options_(options),
        command_(with_backend(std::move(command), *options.backend)),
        log_(log),
        builder_(std::move(builder)),
        // A kernel that uses every core, or all the time that cgroups give, must not share it with the builds.
        exclusive_(options.settings.threads >= machine_.usable),
        pipeline_(builder_,
                  exclusive_ ? std::max(options.build_threads, machine_.at_once) : options.build_threads,
                  options.build_timeout_s,
                  options.build_memory_bytes > 0 ? options.build_memory_bytes : memory_limit() / 2),
        spawner_(1) {
    flush_bytes_ = std::clamp<int64_t>(device.l3_bytes + device.l2_bytes * device.cores, int64_t{16} << 20,
                                       int64_t{256} << 20);
  }

  Result<std::vector<MeasureResult>> measure(const ir::Workload& workload,
                                             std::span<const Candidate> candidates,
                                             double best_seconds_so_far, const Done& done) override;

  // Some thread builds candidates.
  bool can_build() const { return pipeline_.threads() > 0; }
  // Starts the worker unless there is one.
  Status ensure_worker();

 private:
  Result<PreparedTask*> prepare(const ir::Workload& workload);
  Status make_expected(const ir::Workload& workload, std::span<const lower::Tensor> inputs,
                       PreparedTask& task);
  Status expected_by_program(const ir::Workload& workload, std::span<const lower::Tensor> inputs,
                             const sched::Trace& trace, PreparedTask& task);
  // The worker with this task.
  Status ensure_task(const PreparedTask& task);
  Result<MeasureResult> run(const PreparedTask& task, const BuiltCandidate& built, double best,
                            bool reference);
  void spawn();

  MeasureOptions options_;
  std::vector<std::string> command_;
  LogSink& log_;
  std::shared_ptr<const Builder> builder_;
  const Processors machine_ = processors();
  bool exclusive_;
  int64_t flush_bytes_ = 0;
  std::list<PreparedTask> tasks_;  // most recently used first
  BuildPipeline pipeline_;
  std::optional<WorkerProcess> worker_;
  bool worker_is_ready_ = false;
  std::string worker_task_;  // key of the task the worker holds
  Status spawn_status_;
  bool said_not_confined_ = false;
  // A worker lives no longer than the thread that started it; this one lives as long as the measurer.
  ThreadPool spawner_;
};

void LocalMeasurer::spawn() {
  worker_.reset();
  worker_is_ready_ = false;
  worker_task_.clear();
  spawner_
      .submit([this] {
        auto worker = WorkerProcess::start(command_);
        if (worker.ok()) {
          worker_ = std::move(worker).value();
          spawn_status_ = Status();
        } else {
          spawn_status_ = worker.error();
        }
      })
      .get();
}

Status LocalMeasurer::ensure_worker() {
  if (worker_ && worker_is_ready_ && worker_->reusable()) return {};
  Status status;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    if (!worker_ || worker_is_ready_) spawn();
    status = worker_ ? worker_->wait_ready(kStartTimeoutSeconds) : spawn_status_;
    if (status.ok()) {
      worker_is_ready_ = true;
      return {};
    }
    worker_.reset();
    log_.log(LogLevel::kWarning, status.error().message());
  }
  Error error = status.error();
  error.place = command_.front();
  return error;
}

Status LocalMeasurer::ensure_task(const PreparedTask& task) {
  TS_RETURN_IF_ERROR(ensure_worker());
  if (worker_task_ == task.key) return {};
  MeasureResult result;
  for (int attempt = 0; attempt < 2; ++attempt) {
    TS_RETURN_IF_ERROR(ensure_worker());
    result = worker_->set_task(encode(task.data->spec()), task.data->fd(), kStartTimeoutSeconds);
    if (result.ok()) {
      worker_task_ = task.key;
      // The same for every worker: one line.
      if (!result.reason.empty() && !said_not_confined_) {
        log_.log(LogLevel::kWarning, "the kernel refuses a part of the sandbox for candidates: " +
                                         result.reason + "; measuring goes on with what is there");
      }
      said_not_confined_ = said_not_confined_ || !result.reason.empty();
      return {};
    }
  }
  return Error{ErrorCode::kResourceExhausted, "measurement worker",
               "does not take the task's data: " + result.reason};
}

Result<MeasureResult> LocalMeasurer::run(const PreparedTask& task, const BuiltCandidate& built, double best,
                                         bool reference) {
  RunRequest request;
  request.object = built.kernel.object;
  request.symbol = built.kernel.symbol;
  request.shared_workspace_bytes = built.kernel.shared_workspace_bytes;
  request.thread_workspace_bytes = built.kernel.thread_workspace_bytes;
  request.prepared = built.prepared;
  request.flush_bytes = flush_bytes_;
  request.make_reference = reference;
  request.timing.min_repeats = options_.min_repeats;
  request.timing.max_repeats = options_.max_repeats;
  request.timing.target_spread = options_.target_spread;
  request.timing.min_repeat_s = options_.min_repeat_s;
  request.timing.best_seconds = std::isfinite(best) ? best : 0;
  request.timing.hopeless_factor = options_.hopeless_factor;
  request.timing.loser_factor = options_.loser_factor;
  request.timing.budget_s = options_.run_timeout_s / 2;
  request.timing.flush_cache = options_.settings.flush_cache;
  const std::vector<char> message = encode(request);
  const double timeout = reference ? task.reference_timeout_s : options_.run_timeout_s;
  for (int attempt = 0;; ++attempt) {
    TS_RETURN_IF_ERROR(ensure_task(task));
    MeasureResult result = worker_->run(message, timeout);
    const bool from_outside = worker_->ended_from_outside();
    if (!worker_->reusable()) {
      log_.log(LogLevel::kDebug, "measurement worker restarts: " +
                                     std::string(record::to_string(result.outcome)) + " " + result.reason);
      spawn();  // comes up while the next candidate is built
    }
    // Twice is no accident: the candidate may be what takes the memory of all others.
    if (!from_outside || attempt > 0) return result;
    log_.log(LogLevel::kWarning, "the measurement worker was ended from outside (" + result.reason +
                                     "); its candidate is measured once more");
  }
}

Status LocalMeasurer::expected_by_program(const ir::Workload& workload, std::span<const lower::Tensor> inputs,
                                          const sched::Trace& trace, PreparedTask& task) {
  BuildResult build = builder_->build(workload, trace);
  if (const auto* failed = std::get_if<BuildFailure>(&build))
    return Error{ErrorCode::kUnsupported, "reference program", failed->reason};
  task.reference_timeout_s =
      std::max(options_.run_timeout_s, ir::flop_count(workload) * kReferenceSecondsPerFlop);
  TS_ASSIGN_OR_RETURN(const MeasureResult result, run(task, std::get<BuiltCandidate>(build), 0, true));
  if (!result.ok()) {
    return Error{ErrorCode::kMismatch, "reference program",
                 std::string(record::to_string(result.outcome)) + ": " + result.reason};
  }
  task.data->set_tolerances(workload);
  return verify_points(workload, inputs, *task.data, kVerifyFlops, 1);
}

Status LocalMeasurer::make_expected(const ir::Workload& workload, std::span<const lower::Tensor> inputs,
                                    PreparedTask& task) {
  const double flops = ir::flop_count(workload);
  if (flops > kEvaluateFlops) {
    Status status;
    for (const auto& trace : {reference_trace(workload), sched::Trace{}}) {
      status = expected_by_program(workload, inputs, trace, task);
      if (status.ok()) return {};
      log_.log(LogLevel::kWarning, "task " + task.key + ": " + status.error().message());
    }
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

Result<PreparedTask*> LocalMeasurer::prepare(const ir::Workload& workload) {
  const std::string key = ir::structural_key(workload);
  for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
    if (it->key != key) continue;
    tasks_.splice(tasks_.begin(), tasks_, it);
    return &tasks_.front();
  }
  PreparedTask task;
  task.key = key;
  // The contents depend on the task alone: a resumed run compares with the same values.
  const std::vector<lower::Tensor> inputs = random_inputs(workload, Hasher().add(key).digest64());
  TS_ASSIGN_OR_RETURN(
      task.data, TaskData::create(workload, inputs, options_.memory_limit_bytes, options_.settings.threads));
  TS_RETURN_IF_ERROR(make_expected(workload, inputs, task));
  task.data->seal();
  // The worker's copy has the final tolerances and the seal only if it gets the task again.
  worker_task_.clear();
  tasks_.push_front(std::move(task));
  int64_t bytes = 0;
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    bytes += it->data->spec().memory_bytes;
    it = it != tasks_.begin() && bytes > kTaskCacheBytes ? tasks_.erase(it) : std::next(it);
  }
  return &tasks_.front();
}

Result<std::vector<MeasureResult>> LocalMeasurer::measure(const ir::Workload& workload,
                                                          std::span<const Candidate> candidates,
                                                          double best_seconds_so_far, const Done& done) {
  std::vector<MeasureResult> results;
  if (candidates.empty()) return results;
  TS_ASSIGN_OR_RETURN(const PreparedTask* task, prepare(workload));
  TS_RETURN_IF_ERROR(ensure_task(*task));
  std::vector<sched::Trace> traces;
  for (const auto& candidate : candidates) traces.push_back(candidate.trace);
  pipeline_.start(workload, std::move(traces));

  double best = best_seconds_so_far > 0 ? best_seconds_so_far : std::numeric_limits<double>::infinity();
  size_t allowed = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (exclusive_) {
      if (i == allowed) {
        pipeline_.allow(allowed += kExclusiveChunk);
        pipeline_.wait_allowed();
      }
    } else {
      pipeline_.allow(i + 1 + kBuildAhead);
    }
    TimedBuild build = pipeline_.take(i);
    MeasureResult result;
    if (const auto* failed = std::get_if<BuildFailure>(&build.result)) {
      result.outcome = failed->outcome;
      result.reason = failed->reason;
    } else {
      TS_ASSIGN_OR_RETURN(result, run(*task, std::get<BuiltCandidate>(build.result), best, false));
    }
    result.build_seconds = build.seconds;
    best = std::min(best, result.best_estimate());
    results.push_back(std::move(result));
    if (done && !done(i, results.back())) break;
  }
  return results;
}

}  // namespace

namespace {

// Loops of one operation of the reference program: rows outside | reduce | some rows, unrolled | lanes. The
// unrolled rows keep as many sums in flight, without which each waits for the one before.
void add_reference_loops(const ir::Operation& op, int stage, sched::Trace& trace) {
  constexpr int64_t kMostLanes = 16, kLeastLanes = 4, kRows = 4;
  const int spatial = static_cast<int>(op.spatial.size()), reduce = static_cast<int>(op.reduce.size());
  int64_t lanes = kMostLanes;
  while (lanes > op.spatial.back().extent) lanes /= 2;
  const bool vectorized = lanes >= kLeastLanes;
  int rows = -1;  // the axis that is split for the unrolled rows
  for (int a = spatial - 2; a >= 0 && rows < 0 && reduce > 0; --a)
    if (op.spatial[static_cast<size_t>(a)].extent >= kRows) rows = a;

  int loops = spatial;
  const auto split = [&](int axis, int64_t length) {
    sched::Split step;
    step.stage = stage;
    step.iterator = axis;
    step.lengths = {length};
    trace.steps.emplace_back(step);
    ++loops;
  };
  if (vectorized) split(spatial - 1, lanes);
  if (rows >= 0) split(rows, kRows);
  const int inner_rows = rows >= 0 ? rows + 1 : -1, lane = vectorized ? loops - 1 : -1;
  std::vector<int> order;
  for (int loop = 0; loop < loops + reduce; ++loop)
    if (loop != inner_rows && loop != lane) order.push_back(loop);
  int innermost = loops + reduce - 1;
  if (rows >= 0) order.push_back(inner_rows);
  if (vectorized) order.push_back(lane);
  if (reduce > 0 && (rows >= 0 || vectorized)) trace.steps.emplace_back(sched::Reorder{stage, order});
  if (vectorized)
    trace.steps.emplace_back(sched::Annotate{stage, innermost--, sched::Annotation::kVectorize});
  if (rows >= 0) trace.steps.emplace_back(sched::Annotate{stage, innermost, sched::Annotation::kUnroll});
  if (loops > 1) trace.steps.emplace_back(sched::Annotate{stage, 0, sched::Annotation::kParallel});
}

}  // namespace

sched::Trace reference_trace(const ir::Workload& workload) {
  sched::Trace trace;
  int stage = -1;
  for (const auto& op : workload.operations) {
    ++stage;
    if (!op->is_placeholder() && !op->spatial.empty()) add_reference_loops(*op, stage, trace);
  }
  return trace;
}

Result<std::unique_ptr<Measurer>> make_local_measurer(const target::Device& device,
                                                      const MeasureOptions& options,
                                                      std::vector<std::string> worker_command, LogSink& log,
                                                      std::shared_ptr<const Builder> builder) {
  const auto invalid = [](const char* option, const char* reason) {
    return Error{ErrorCode::kInvalidArgument, option, reason};
  };
  if (worker_command.empty()) return invalid("worker_command", "is empty");
  if (!options.backend->traits().self_contained) {
    return Error{ErrorCode::kUnsupported, "measuring",
                 "kernels of backend '" + std::string(options.backend->name()) +
                     "' cannot be loaded by a confined worker; measure with backend 'llvm'"};
  }
  if (options.settings.threads < 1) return invalid("threads", "must be at least 1");
  if (options.build_threads < 1) return invalid("build_threads", "must be at least 1");
  if (options.max_repeats < 1) return invalid("max_repeats", "must be at least 1");
  auto measurer =
      std::make_unique<LocalMeasurer>(device, options, std::move(worker_command), log, std::move(builder));
  if (!measurer->can_build()) {
    return Error{ErrorCode::kResourceExhausted, "measuring",
                 "the system gives no thread to build candidates on (see the limit of processes, ulimit -u)"};
  }
  TS_RETURN_IF_ERROR(measurer->ensure_worker());
  return std::unique_ptr<Measurer>(std::move(measurer));
}

Result<std::unique_ptr<Measurer>> make_local_measurer(const target::Device& device,
                                                      const MeasureOptions& options,
                                                      std::vector<std::string> worker_command, LogSink& log) {
  return make_local_measurer(device, options, std::move(worker_command), log,
                             make_builder(device, *options.backend));
}

}  // namespace tensorsmith::measure
