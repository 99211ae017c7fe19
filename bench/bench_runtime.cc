// Cost of handing a loop to the kernel pool: of an empty parallel_for when the workers spin (back to back)
// and when they sleep (after a pause), beside a pool that sleeps at once and std::thread.
//
//   bench_runtime [THREADS=processors]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/kernel_pool.h"

namespace {

using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

// Microseconds of single calls, after `pause` each: median and 90th percentile.
void report(const char* name, std::chrono::microseconds pause, int calls, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto start = Clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%-44s median %7.2f us   90 %% below %7.2f us\n", name, times[times.size() / 2],
              times[times.size() * 9 / 10]);
}

void nothing(void*, int64_t, int64_t, int32_t) {}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : runtime::available_processors();
  std::printf("%d threads, %d processors\n", threads, runtime::available_processors());
  runtime::KernelPool pool(threads);
  ThreadPool plain(threads);
  const std::chrono::microseconds none(0), pause(500);
  // Rounds interleave the variants: the machine's state is the same for all.
  for (int round = 0; round < 3; ++round) {
    report("KernelPool, back to back", none, 20000, [&] { pool.parallel_for(threads, nothing, nullptr); });
    report("KernelPool, workers asleep", pause, 1000, [&] { pool.parallel_for(threads, nothing, nullptr); });
    report("queue with a condition variable", none, 2000,
           [&] { plain.parallel_for(threads, 1, [](int64_t, int64_t) {}); });
    report("starting and joining threads", none, 300, [&] {
      std::vector<std::thread> team;
      for (int t = 1; t < threads; ++t) team.emplace_back([] {});
      for (auto& thread : team) thread.join();
    });
  }
  return 0;
}
