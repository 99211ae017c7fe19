#include "measure/worker_host.h"

namespace tensorsmith::measure {
namespace {

using record::MeasureResult;

constexpr double kStartTimeoutSeconds = 30;
constexpr int kStartAttempts = 3;

}  // namespace

WorkerHost::WorkerHost(std::vector<std::string> command, bool keep_spare, LogSink& log)
    : command_(std::move(command)), keep_spare_(keep_spare), log_(log), spawner_(1) {}

WorkerHost::Started WorkerHost::start() {
  Started started;
  spawner_
      .submit([&] {
        auto process = WorkerProcess::start(command_);
        if (process.ok()) {
          started.process = std::move(process).value();
        } else {
          started.status = process.error();
        }
      })
      .get();
  return started;
}

void WorkerHost::replace() {
  worker_ = Started();  // the process must end before another one uses its resources
  task_.clear();
  if (spare_.process) {
    worker_ = std::move(spare_);
    spare_ = Started();
  } else {
    worker_ = start();
  }
  if (keep_spare_) spare_ = start();
}

Status WorkerHost::ensure_worker() {
  if (worker_.process && worker_.is_ready && worker_.process->reusable()) return {};
  Status status;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    if (!worker_.process || worker_.is_ready) replace();
    status = worker_.process ? worker_.process->wait_ready(kStartTimeoutSeconds) : worker_.status;
    if (status.ok()) {
      worker_.is_ready = true;
      return {};
    }
    worker_ = Started();
    log_.log(LogLevel::kWarning, status.error().message());
  }
  Error error = status.error();
  error.place = command_.front();
  return error;
}

Status WorkerHost::hand_over(const PreparedTask& task) {
  MeasureResult result;
  for (int attempt = 0; attempt < 2; ++attempt) {
    TS_RETURN_IF_ERROR(ensure_worker());
    result = worker_.process->set_task(encode(task.data->spec()), task.data->fd(), kStartTimeoutSeconds);
    if (!result.ok()) continue;
    task_ = task.key;
    // Equal for every worker, so it is reported once.
    if (!result.reason.empty() && !said_not_confined_) {
      log_.log(LogLevel::kWarning,
               "the operating system does not support a part of the sandbox for candidates: " +
                   result.reason + "; measuring continues with the other parts");
    }
    said_not_confined_ = said_not_confined_ || !result.reason.empty();
    return {};
  }
  return Error{ErrorCode::kResourceExhausted, "measurement worker",
               "could not load the task's data: " + result.reason};
}

double WorkerHost::processor_seconds() const {
  double sum = 0;
  for (const Started* started : {&worker_, &spare_})
    if (started->process) sum += started->process->processor_seconds();
  return sum;
}

Status WorkerHost::ensure_task(const PreparedTask& task) {
  TS_RETURN_IF_ERROR(ensure_worker());
  return task_ == task.key ? Status() : hand_over(task);
}

Result<MeasureResult> WorkerHost::run(const PreparedTask& task, const std::vector<char>& request,
                                      double timeout_s) {
  for (int attempt = 0;; ++attempt) {
    TS_RETURN_IF_ERROR(ensure_task(task));
    MeasureResult result = worker_.process->run(request, timeout_s);
    const bool from_outside = worker_.process->ended_from_outside();
    if (!worker_.process->reusable()) {
      log_.log(LogLevel::kDebug, "measurement worker restarts: " +
                                     std::string(record::to_string(result.outcome)) + " " + result.reason);
      replace();  // starts while the next candidate is built
    }
    // If it happens twice, the candidate may be what exhausts the memory.
    if (!from_outside || attempt > 0) return result;
    log_.log(LogLevel::kWarning, "another process ended the measurement worker (" + result.reason +
                                     "); its candidate is measured again");
  }
}

}  // namespace tensorsmith::measure
