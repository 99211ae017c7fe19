#include "tools/ticker.h"

#include <chrono>
#include <system_error>
#include <utility>

namespace tensorsmith::tools {

Ticker::Ticker(double seconds, std::function<void()> tick) : seconds_(seconds), tick_(std::move(tick)) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // The process limit was reached; handled as for the threads of base/thread_pool.h.
  }
}

Ticker::~Ticker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Ticker::run() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, std::chrono::duration<double>(seconds_), [this] { return stopping_; })) {
    lock.unlock();
    tick_();
    lock.lock();
  }
}

}  // namespace tensorsmith::tools
