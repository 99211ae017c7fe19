// Time as an interface, so that searches can be tested without waiting.
#pragma once

#include <chrono>
#include <cstdint>

namespace tensorsmith {

class Clock {
 public:
  virtual ~Clock() = default;
  // Seconds since an arbitrary start; never decreases.
  virtual double monotonic_seconds() const = 0;
  // Milliseconds since 1970-01-01 UTC.
  virtual int64_t unix_milliseconds() const = 0;
};

class SystemClock final : public Clock {
 public:
  double monotonic_seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  int64_t unix_milliseconds() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace tensorsmith
