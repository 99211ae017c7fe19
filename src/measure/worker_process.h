// The parent's handle to a worker process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/protocol.h"
#include "measure/wire.h"

namespace tensorsmith::measure {

// Started by start(), ended by the destructor. The system also kills the worker when the thread
// that called start() ends or its process is killed, so no worker outlives its measurer.
class WorkerProcess {
 public:
  // kIo if the system refuses to start a process. wait_ready() reports a program that cannot be
  // executed or is not a worker.
  static Result<WorkerProcess> start(const std::vector<std::string>& command);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  ~WorkerProcess();

  // Must be called once, before anything else. The error says how the worker ended and what it
  // printed.
  Status wait_ready(double timeout_s);
  // Sends a task; the caller keeps memory_fd.
  record::MeasureResult set_task(const std::vector<char>& encoded_task, int memory_fd, double timeout_s);
  // Every failure is an outcome. Unless reusable() is true afterwards, the worker must be
  // discarded.
  record::MeasureResult run(const std::vector<char>& encoded_request, double timeout_s);
  bool reusable() const { return reusable_; }
  // Processor seconds that the process has used so far; 0 if it has ended.
  double processor_seconds() const;
  // Whether another program killed or stopped the worker during the last set_task() or run(): a
  // user, or the system for lack of memory. The result then says little about the candidate.
  bool ended_from_outside() const { return ended_from_outside_; }

 private:
  WorkerProcess() = default;
  record::MeasureResult exchange(MessageType type, const std::vector<char>& payload, int fd,
                                 MessageType answer, double timeout_s);
  // Waits for the end of the process, and kills it after patience_s; returns waitpid's status.
  int reap(double patience_s);
  bool memory_used_up() const;
  bool is_stopped() const;
  std::string printed() const;
  record::MeasureResult died(int status);

  pid_t pid_ = -1;
  int socket_ = -1;
  int stderr_ = -1;
  int64_t memory_limit_ = 0;
  bool reusable_ = false;
  bool ended_from_outside_ = false;
};

}  // namespace tensorsmith::measure
