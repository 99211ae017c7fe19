// Calls that take long: they run on a thread of their own, while the thread that called waits for them without Python's
// lock, looks for signals (Ctrl-C) and runs what the call tells Python.
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
  // Of any thread, at any time: `told` runs with Python's lock on the thread that called.
  void tell(std::function<void()> told);
  // True once a signal or an error of what was told wants the call to end.
  const std::atomic<bool>& cancelled() const { return cancelled_; }

  // The work's result. Throws what the work throws; else what a signal or what was told raised, after the work ended.
  // With Python's lock.
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

// Tells Python's logger "tensorsmith".
class PythonLog final : public LogSink {
 public:
  explicit PythonLog(LongCall& call) : call_(call) {}
  void log(LogLevel level, std::string_view message) override;

 private:
  LongCall& call_;
};

}  // namespace tensorsmith::python
