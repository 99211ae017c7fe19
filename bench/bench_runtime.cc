// Measures the overhead of an empty parallel_for of the kernel pool, with spinning workers (calls back
// to back) and with sleeping workers (calls after a pause). A pool whose workers sleep at once and
// std::thread are measured for comparison.
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

// Prints the median and the 90th percentile of the microseconds of single calls, each after `pause`.
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
  // The variants are interleaved, so that changes of the machine's speed affect all of them.
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
