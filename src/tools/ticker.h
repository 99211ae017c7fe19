// Calls a function again and again on a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tensorsmith::tools {

class Ticker {
 public:
  // tick: called every `seconds` until the ticker is destroyed; must not throw. Where the system refuses to start a
  // thread, it is never called.
  Ticker(double seconds, std::function<void()> tick);
  ~Ticker();  // waits for a call that is under way
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
