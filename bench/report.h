// Times one step of a benchmark and prints a line of output for it.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/clock.h"

namespace tensorsmith::bench {

// Prints the time per item, the best of seven rounds; run() processes `count` items.
inline void report(const char* what, size_t count, const std::function<void()>& run) {
  const SystemClock clock;
  double best = 1e9;
  for (int round = 0; round < 7; ++round) {
    const double start = clock.monotonic_seconds();
    run();
    best = std::min(best, clock.monotonic_seconds() - start);
  }
  std::printf("%-36s %9.2f us each %10.0f /s\n", what, best / static_cast<double>(count) * 1e6,
              static_cast<double>(count) / best);
}

}  // namespace tensorsmith::bench
