// A worker process that is there when it is needed: started ahead of time, replaced when a candidate has used it up.
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
  // keep_spare: a second process waits, started and ready, for the one at work to be used up, where starting takes long.
  WorkerHost(std::vector<std::string> command, bool keep_spare, LogSink& log);

  // Starts the worker unless there is one. The error names the command.
  Status ensure_worker();
  // The worker with this task.
  Status ensure_task(const PreparedTask& task);
  // The worker gets the task again: its data have changed.
  void forget_task() { task_.clear(); }
  // One encoded RunRequest. A run that somebody else ended is made once more.
  Result<record::MeasureResult> run(const PreparedTask& task, const std::vector<char>& request,
                                    double timeout_s);

 private:
  // A process and whether it has said that it is ready.
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
  // A worker lives no longer than the thread that started it; this one lives as long as the host.
  ThreadPool spawner_;
};

}  // namespace tensorsmith::measure
