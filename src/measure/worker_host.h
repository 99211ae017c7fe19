// Keeps a worker process available: starts it ahead of time and replaces it after a candidate made
// it unusable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/sinks.h"
#include "base/thread_pool.h"
#include "measure/task_data.h"
#include "measure/worker_process.h"

namespace tensorsmith::measure {

// A task with its expected outputs.
struct PreparedTask {
  std::string key;  // ir::structural_key of the workload
  std::unique_ptr<TaskData> data;
  double reference_timeout_s = 0;
};

class WorkerHost {
 public:
  // keep_spare: keeps a second process started and ready to replace the first, for workers that
  // take long to start.
  WorkerHost(std::vector<std::string> command, bool keep_spare, LogSink& log);

  // Starts the worker unless it is running. The error names the command.
  Status ensure_worker();
  // Ensures that the worker runs and has this task.
  Status ensure_task(const PreparedTask& task);
  // Makes the worker receive the task again, because its data have changed.
  void forget_task() { task_.clear(); }
  // Processor seconds that the living processes have used so far.
  double processor_seconds() const;
  // Runs one encoded RunRequest. A run that was ended by another program is repeated once.
  Result<record::MeasureResult> run(const PreparedTask& task, const std::vector<char>& request,
                                    double timeout_s);

 private:
  // A process, and whether it has reported that it is ready.
  struct Started {
    std::optional<WorkerProcess> process;
    bool is_ready = false;
    Status status;  // of starting it
  };
  Started start();
  void replace();
  Status hand_over(const PreparedTask& task);

  std::vector<std::string> command_;
  bool keep_spare_;
  LogSink& log_;
  Started worker_, spare_;
  std::string task_;  // key of the task that the worker holds
  bool said_not_confined_ = false;
  // A worker does not outlive the thread that started it; this thread lives as long as the host.
  ThreadPool spawner_;
};

}  // namespace tensorsmith::measure
