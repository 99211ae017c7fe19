// Clocks used by the probes. Internal to src/target.
#pragma once

#include <chrono>
#include <ctime>

namespace tensorsmith::target {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Processor time of the calling thread in seconds; the time that other programs take does not
// count.
inline double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

}  // namespace tensorsmith::target
