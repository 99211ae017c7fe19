// Calls that take long. They run on a thread of their own. The calling thread releases the GIL
// while it waits for them, checks for signals (Ctrl-C) and runs the callbacks of the call.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/sinks.h"

namespace tensorsmith::python {

class LongCall {
 public:
  // Queues a callback, which runs with the GIL on the calling thread. May be called by any thread
  // at any time.
  void tell(std::function<void()> told);
  // Becomes true when a signal or an exception of a callback requests the end of the call.
  const std::atomic<bool>& cancelled() const { return cancelled_; }

  // Runs the work and returns its result. Throws the work's exception, otherwise the exception that
  // a signal or a callback has raised, after the work has ended. Requires the GIL.
  template <typename Work>
  auto run(Work&& work) {
    std::optional<decltype(work())> result;
    wait_for([&] { result.emplace(work()); });
    return std::move(*result);
  }

 private:
  void wait_for(const std::function<void()>& work);
  void run_told(std::exception_ptr& raised);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> told_;
  bool done_ = false;
  std::atomic<bool> cancelled_{false};
};

// Writes to Python's logger "tensorsmith".
class PythonLog final : public LogSink {
 public:
  explicit PythonLog(LongCall& call) : call_(call) {}
  void log(LogLevel level, std::string_view message) override;

 private:
  LongCall& call_;
};

}  // namespace tensorsmith::python
