// Calls a function periodically on a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tensorsmith::tools {

class Ticker {
 public:
  // Calls `tick` every `seconds` until the ticker is destroyed; `tick` must not throw. If the
  // system cannot start a thread, it is never called.
  Ticker(double seconds, std::function<void()> tick);
  ~Ticker();  // waits for a running call
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void run();

  const double seconds_;
  const std::function<void()> tick_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tensorsmith::tools
