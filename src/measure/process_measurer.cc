#include "measure/process_measurer.h"

#include <algorithm>
#include <limits>

#include "base/memory.h"
#include "record/disturbance.h"

namespace tensorsmith::measure {
namespace {

using record::MeasureResult;

// Least number of candidates that may be built ahead of the running one.
constexpr size_t kBuildAhead = 4;
constexpr size_t kExclusiveChunk = 8;

}  // namespace

ProcessMeasurer::ProcessMeasurer(const MeasureOptions& options, ProcessMeasurerOptions how,
                                 std::shared_ptr<const Builder> builder, LogSink& log)
    : options_(options),
      how_(std::move(how)),
      worker_(how_.worker, how_.keep_spare, log),
      reference_worker_(how_.reference_worker.empty()
                            ? nullptr
                            : std::make_unique<WorkerHost>(how_.reference_worker, false, log)),
      device_builder_(reference_worker_ ? builder : nullptr),
      tasks_(
          options_, how_.task_threads, how_.values,
          {how_.reference_builder ? *how_.reference_builder : *builder,
           reference_worker_ ? *reference_worker_ : worker_},
          device_builder_ ? std::optional(PreparedTasks::Reference{*device_builder_, worker_}) : std::nullopt,
          log),
      pipeline_(builder, how_.build_threads, options.build_timeout_s,
                options.build_memory_bytes > 0 ? options.build_memory_bytes : memory_limit() / 2),
      meter_(how_.load, [this] {
        return own_seconds() + worker_.processor_seconds() +
               (reference_worker_ ? reference_worker_->processor_seconds() : 0);
      }) {}

Status ProcessMeasurer::ensure_ready() {
  if (pipeline_.threads() == 0) {
    return Error{ErrorCode::kResourceExhausted, "measuring",
                 "could not start a thread to compile candidates (see the limit of processes, ulimit -u)"};
  }
  return worker_.ensure_worker();
}

Result<MeasureResult> ProcessMeasurer::run(const PreparedTask& task, const BuiltCandidate& built,
                                           double best) {
  for (int attempt = 0;; ++attempt) {
    const RunRequest request = run_request(options_, built, best, how_.flush_bytes, meter_.begin());
    TS_ASSIGN_OR_RETURN(MeasureResult result, worker_.run(task, encode(request), options_.run_timeout_s));
    result.disturbance = meter_.end();
    const bool may_be_wrong = result.stopped_early && request.timing.hopeless_repeats == 1 &&
                              record::is_doubtful(result.disturbance);
    if (!may_be_wrong || attempt > 0) return result;
  }
}

Result<std::vector<MeasureResult>> ProcessMeasurer::measure(const ir::Workload& workload,
                                                            std::span<const MeasureRequest> candidates,
                                                            double best_seconds_so_far, const Done& done) {
  std::vector<MeasureResult> results;
  if (candidates.empty()) return results;
  meter_.restart();
  TS_ASSIGN_OR_RETURN(const PreparedTask* task, tasks_.prepare(workload));
  TS_RETURN_IF_ERROR(worker_.ensure_task(*task));
  std::vector<sched::Trace> traces;
  for (const auto& candidate : candidates) traces.push_back(candidate.trace);
  pipeline_.start(workload, std::move(traces));

  double best = best_seconds_so_far > 0 ? best_seconds_so_far : std::numeric_limits<double>::infinity();
  const size_t ahead = std::max(kBuildAhead, 2 * static_cast<size_t>(pipeline_.threads()));
  size_t allowed = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (how_.exclusive) {
      if (i == allowed) {
        pipeline_.allow(allowed += kExclusiveChunk);
        pipeline_.wait_allowed();
      }
    } else {
      pipeline_.allow(i + 1 + ahead);
    }
    TimedBuild build = pipeline_.take(i);
    MeasureResult result;
    if (const auto* failed = std::get_if<BuildFailure>(&build.result)) {
      result.outcome = failed->outcome;
      result.reason = failed->reason;
    } else {
      TS_ASSIGN_OR_RETURN(result, run(*task, std::get<BuiltCandidate>(build.result), best));
    }
    result.build_seconds = build.seconds;
    best = std::min(best, result.best_estimate());
    results.push_back(std::move(result));
    if (done && !done(i, results.back())) break;
  }
  return results;
}

Status check_options(const MeasureOptions& options, const std::vector<std::string>& worker_command) {
  const auto invalid = [](const char* option, const char* reason) {
    return Error{ErrorCode::kInvalidArgument, option, reason};
  };
  if (worker_command.empty()) return invalid("worker_command", "is empty");
  if (options.build_threads < 1) return invalid("build_threads", "must be at least 1");
  if (options.max_repeats < 1) return invalid("max_repeats", "must be at least 1");
  return {};
}

}  // namespace tensorsmith::measure
