#include "target/probe_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "target/probe_time.h"

namespace tensorsmith::target {
namespace {

// A step takes eight cycles, because its eight additions to one register depend on each other. They add
// another register: Golden Cove and later cores of Intel execute the addition of a small constant while they
// rename registers, several in a cycle. The step also has four vector instructions (two on AArch64). Any
// core can start more than these in eight cycles, and each depends at most on the same instruction of the
// previous step.
constexpr double kCyclesPerStep = 8;

#if defined(__x86_64__)
// clear(i) and work(i) are instructions on vector register i; `finish` is the cleanup after the
// loop.
#define TENSORSMITH_STEPS(name, clear, work, finish)                                        \
  void name(uint64_t count) {                                                               \
    uint64_t x = 0;                                                                         \
    const uint64_t one = 1;                                                                 \
    __asm__ volatile(clear("0") clear("1") clear("2") clear("3") clear("4")               \
                     "1:\n"                                                               \
                     "add %2, %0\n" work("1") "add %2, %0\n"                              \
                     "add %2, %0\n" work("2") "add %2, %0\n"                              \
                     "add %2, %0\n" work("3") "add %2, %0\n"                              \
                     "add %2, %0\n" work("4") "add %2, %0\n"                              \
                     "dec %1\n"                                                           \
                     "jnz 1b\n" finish                                                    \
                     : "+r"(x), "+r"(count)                                               \
                     : "r"(one)                                                           \
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "cc"); \
  }
#define TENSORSMITH_CLEAR_VEX(i) "vpxor %%xmm" i ", %%xmm" i ", %%xmm" i "\n"
#define TENSORSMITH_CLEAR_SSE(i) "pxor %%xmm" i ", %%xmm" i "\n"
#define TENSORSMITH_WORK_512(i) "vfmadd231ps %%zmm0, %%zmm0, %%zmm" i "\n"
#define TENSORSMITH_WORK_256(i) "vfmadd231ps %%ymm0, %%ymm0, %%ymm" i "\n"
#define TENSORSMITH_WORK_128(i) "mulps %%xmm0, %%xmm" i "\n"
TENSORSMITH_STEPS(steps_512, TENSORSMITH_CLEAR_VEX, TENSORSMITH_WORK_512, "vzeroupper\n")
TENSORSMITH_STEPS(steps_256, TENSORSMITH_CLEAR_VEX, TENSORSMITH_WORK_256, "vzeroupper\n")
TENSORSMITH_STEPS(steps_128, TENSORSMITH_CLEAR_SSE, TENSORSMITH_WORK_128, "")

// Also checks the features of this processor, because the device file of another machine may name
// its device "local".
void run_steps(const Device& device, uint64_t count) {
  if (device.cpu().vector_bytes >= 64 && device.has_feature("avx512f") && __builtin_cpu_supports("avx512f"))
    return steps_512(count);
  if (device.cpu().vector_bytes >= 32 && device.has_feature("fma") && __builtin_cpu_supports("fma"))
    return steps_256(count);
  steps_128(count);
}
#elif defined(__aarch64__)
void run_steps(const Device&, uint64_t count) {
  uint64_t x = 0;
  const uint64_t one = 1;
  __asm__ volatile(
      "movi v0.4s, #0\nmovi v1.4s, #0\nmovi v2.4s, #0\n"
      "1:\n"
      "add %0, %0, %2\nfmla v1.4s, v0.4s, v0.4s\nadd %0, %0, %2\n"
      "add %0, %0, %2\nadd %0, %0, %2\n"
      "add %0, %0, %2\nfmla v2.4s, v0.4s, v0.4s\nadd %0, %0, %2\n"
      "add %0, %0, %2\nadd %0, %0, %2\n"
      "subs %1, %1, #1\n"
      "b.ne 1b\n"
      : "+r"(x), "+r"(count)
      : "r"(one)
      : "v0", "v1", "v2", "cc");
}
#else
void run_steps(const Device&, uint64_t) {}
#endif

#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kHasSteps = true;
#else
constexpr bool kHasSteps = false;
#endif

constexpr uint64_t kStepsPerPass = 400'000;  // about a millisecond, so that some passes are not interrupted
constexpr double kClockSeconds = 0.2;        // cores take some milliseconds to reach their sustained clock

// Returns the clock of the fastest pass in the second half of the time, when the clock has settled.
double clock_of_this_thread(const Device& device) {
  const double begin = seconds_now();
  double least = 0;
  for (double spent = 0; spent < kClockSeconds; spent = seconds_now() - begin) {
    const double start = thread_seconds();
    run_steps(device, kStepsPerPass);
    const double seconds = thread_seconds() - start;
    if (spent > kClockSeconds / 2 && seconds > 0) least = least > 0 ? std::min(least, seconds) : seconds;
  }
  return least > 0 ? kCyclesPerStep * kStepsPerPass / least : 0;
}

}  // namespace

double measure_clock_ghz(const Device& device) {
  if (!kHasSteps) return 0;
  std::vector<double> clocks(std::max(device.cpu().cores, 1), 0);
  std::vector<std::thread> threads;
  for (size_t t = 1; t < clocks.size(); ++t) {
    try {
      threads.emplace_back([&, t] { clocks[t] = clock_of_this_thread(device); });
    } catch (const std::system_error&) {
      clocks[t] = std::numeric_limits<double>::infinity();  // no more threads: the others decide
    }
  }
  clocks[0] = clock_of_this_thread(device);
  for (std::thread& thread : threads) thread.join();
  double slowest = clocks[0];
  for (const double clock : clocks) slowest = std::min(slowest, clock);
  return std::round(slowest * 1e-8) / 10;
}

Device with_measured_clock(Device device) {
  if (device.base_clock_ghz > 0 || device.clock_ghz <= 0) return device;
  const double measured = std::max(measure_clock_ghz(device), device.clock_ghz);
  device.base_clock_ghz = device.clock_ghz;
  device.peak_f32_gflops *= measured / device.clock_ghz;
  device.clock_ghz = measured;
  return device;
}

}  // namespace tensorsmith::target
