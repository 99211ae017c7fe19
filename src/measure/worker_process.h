// The parent's handle of a worker process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/protocol.h"
#include "measure/wire.h"

namespace tensorsmith::measure {

// Started by start(), ended by the destructor. When the thread that called start() ends, or its process is
// killed, the system kills the worker too: no worker outlives its measurer.
class WorkerProcess {
 public:
  // Errors: kIo if the system refuses a process. A program that cannot be executed or that is no worker shows
  // in wait_ready().
  static Result<WorkerProcess> start(const std::vector<std::string>& command);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  ~WorkerProcess();

  // Once, before anything else. The error says how the worker ended and what it printed.
  Status wait_ready(double timeout_s);
  // Hands a task over; memory_fd stays the caller's.
  record::MeasureResult set_task(const std::vector<char>& encoded_task, int memory_fd, double timeout_s);
  // Every way to fail is an outcome. The worker is to be thrown away if !reusable() afterwards.
  record::MeasureResult run(const std::vector<char>& encoded_request, double timeout_s);
  bool reusable() const { return reusable_; }
  // Whether somebody else killed or stopped it during the last set_task() or run(): a user, or the system
  // when memory ran out. The result then says little about the candidate.
  bool ended_from_outside() const { return ended_from_outside_; }

 private:
  WorkerProcess() = default;
  record::MeasureResult exchange(MessageType type, const std::vector<char>& payload, int fd,
                                 MessageType answer, double timeout_s);
  // Waits for the end of the process, which is killed after patience_s; waitpid's status.
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
