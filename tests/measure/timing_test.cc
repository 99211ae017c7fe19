#include "measure/timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "base/statistics.h"

namespace tensorsmith::measure::timing_test {
namespace {

// A kernel that runs on a simulated clock, which only the kernel advances.
struct FakeKernel {
  std::vector<double> durations;  // of successive runs; the last one repeats
  double time = 100;
  size_t runs = 0;
  int flushes = 0;

  Timing measure(const TimingOptions& options, double first_run) {
    TimingHooks hooks;
    hooks.run = [this] { time += durations[std::min(runs++, durations.size() - 1)]; };
    hooks.flush = [this] {
      ++flushes;
      time += 0.5;
    };
    hooks.now = [this] { return time; };
    return measure_time(options, hooks, first_run);
  }
};

TEST(Timing, ShortKernelsRunUntilTheRepeatIsLongEnough) {
  FakeKernel kernel{{1e-5}};
  const Timing timing = kernel.measure({}, 5e-5);
  EXPECT_EQ(timing.runs_per_repeat, 100);
  ASSERT_EQ(timing.seconds.size(), 3u);  // there is no spread: the minimum number is enough
  for (const double s : timing.seconds) EXPECT_NEAR(s, 1e-5, 1e-12);
  EXPECT_EQ(kernel.runs, 301u);  // including one to calibrate
  EXPECT_FALSE(timing.stopped_early);
}

// A kernel that uses 30 W while it runs, and nothing between its runs.
TEST(Timing, EnergyIsThatOfARun) {
  FakeKernel kernel{{1e-5}};
  TimingHooks hooks;
  hooks.run = [&] { kernel.time += 1e-5; };
  hooks.now = [&] { return kernel.time; };
  EXPECT_EQ(measure_time({}, hooks, 1e-5).joules, 0);
  hooks.joules = [&] { return 30 * kernel.time; };
  EXPECT_NEAR(measure_time({}, hooks, 1e-5).joules, 30 * 1e-5, 1e-9);
}

TEST(Timing, LongKernelsRunOnceARepeatWithoutWarmUp) {
  FakeKernel kernel{{0.05}};
  const Timing timing = kernel.measure({}, 0.06);
  EXPECT_EQ(timing.runs_per_repeat, 1);
  EXPECT_EQ(kernel.runs, 3u);
}

TEST(Timing, DisturbedCalibrationIsRepeated) {
  FakeKernel kernel{{1e-3, 1e-5}};  // the calibration run was interrupted
  const Timing timing = kernel.measure({}, 1e-5);
  EXPECT_EQ(timing.runs_per_repeat, 100);
  EXPECT_EQ(timing.seconds.size(), 3u);
}

// Another program gets a slice of 4 ms every 5 ms, and the kernel takes 1 ms: half of the repeats
// are too long by a factor of three.
TEST(Timing, RepeatsInWhichAnotherProgramRanAreMadeAgain) {
  for (const bool counted : {true, false}) {
    double time = 0, next_slice = 2e-3;
    int64_t slices = 0;
    TimingHooks hooks;
    hooks.now = [&] { return time; };
    hooks.run = [&] {
      time += 0.9e-3;
      if (time < next_slice) return;
      time += 4e-3;
      next_slice = time + 2e-3;
      ++slices;
    };
    if (counted) hooks.preemptions = [&] { return slices; };
    const Timing timing = measure_time({}, hooks, 0.9e-3);
    EXPECT_EQ(timing.runs_per_repeat, 2);
    ASSERT_GE(timing.seconds.size(), 3u);
    if (counted) {
      for (const double seconds : timing.seconds) EXPECT_NEAR(seconds, 0.9e-3, 1e-9);
    } else {
      EXPECT_GT(*std::max_element(timing.seconds.begin(), timing.seconds.end()), 2.8e-3);
    }
  }
}

// A kernel of 20 ms is always interrupted.
TEST(Timing, ALongKernelOfOneThreadIsTimedOnItsCore) {
  double time = 0, on_core = 0;
  int64_t slices = 0;
  TimingHooks hooks;
  hooks.now = [&] { return time; };
  hooks.on_core = [&] { return on_core; };
  hooks.run = [&] {
    time += 40e-3;
    on_core += 20e-3;
    slices += 5;
  };
  hooks.preemptions = [&] { return slices; };
  TimingOptions options;
  options.budget_s = 1;
  const Timing timing = measure_time(options, hooks, 40e-3);
  ASSERT_EQ(timing.seconds.size(), 3u);
  for (const double seconds : timing.seconds) EXPECT_NEAR(seconds, 20e-3, 1e-9);
}

TEST(Timing, AMachineThatIsAlwaysBusyIsMeasuredAllTheSame) {
  double time = 0;
  int64_t slices = 0;
  TimingHooks hooks;
  hooks.now = [&] { return time; };
  hooks.run = [&] {
    time += 5e-3;
    ++slices;
  };
  hooks.preemptions = [&] { return slices; };
  const Timing timing = measure_time({}, hooks, 5e-3);
  EXPECT_EQ(timing.seconds.size(), 3u);
  EXPECT_LT(time, 0.1) << "a bounded number of repeats is made again";
}

TEST(Timing, NoisyKernelsRepeatUpToTheMaximum) {
  FakeKernel kernel;
  for (int i = 0; i < 100; ++i) kernel.durations.push_back(0.02 + 0.005 * (i % 3));
  TimingOptions options;
  EXPECT_EQ(kernel.measure(options, 0.02).seconds.size(), 12u);
  options.budget_s = 0.1;
  kernel.runs = 0;
  EXPECT_LE(kernel.measure(options, 0.02).seconds.size(), 6u);
}

TEST(Timing, RepeatsUntilTheSpreadMeetsTheTarget) {
  // Durations vary by up to 2 % in turn; the spread falls with the number of repeats.
  FakeKernel kernel;
  for (int i = 0; i < 100; ++i) kernel.durations.push_back(0.02 * (1 + 0.01 * ((i * 7) % 5 - 2)));
  TimingOptions options;
  options.max_repeats = 50;
  const Timing timing = kernel.measure(options, 0.02);
  EXPECT_GT(timing.seconds.size(), 3u);
  EXPECT_LT(timing.seconds.size(), 50u);
  EXPECT_LE(relative_spread(timing.seconds), options.target_spread);
  EXPECT_GT(relative_spread(std::span(timing.seconds).first(timing.seconds.size() - 1)),
            options.target_spread);
}

TEST(Timing, HopelessStopsAfterOneRepeat) {
  TimingOptions options;
  options.best_seconds = 1e-4;
  FakeKernel kernel{{4e-4}};
  Timing timing = kernel.measure(options, 4e-4);
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_EQ(timing.seconds.size(), 1u);
  kernel = FakeKernel{{2.9e-4}};  // less than three times slower
  timing = kernel.measure(options, 4e-4);
  EXPECT_FALSE(timing.stopped_early);
  kernel = FakeKernel{{0.5}};
  timing = kernel.measure(options, 0.5);  // the first run alone decides
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_EQ(timing.seconds, std::vector<double>{0.5});
  EXPECT_EQ(kernel.runs, 0u);
  for (const double best : {0.0, std::numeric_limits<double>::infinity()}) {
    options.best_seconds = best;
    kernel = FakeKernel{{0.5}};
    EXPECT_FALSE(kernel.measure(options, 0.5).stopped_early);
  }
  options.best_seconds = 1e-4;
  options.hopeless_factor = 0;
  kernel = FakeKernel{{0.5}};
  EXPECT_FALSE(kernel.measure(options, 0.5).stopped_early);
}

// Another program lengthens the first reading eightfold.
TEST(Timing, OneReadingUnderLoadDoesNotStop) {
  TimingOptions options;
  options.best_seconds = 1e-4;
  std::vector<double> durations = {1e-4};  // calibrates to ten runs a repeat
  durations.insert(durations.end(), 10, 8e-4);
  durations.push_back(1e-4);
  FakeKernel kernel{durations};
  EXPECT_TRUE(kernel.measure(options, 1e-4).stopped_early);
  options.hopeless_repeats = 2;
  kernel = FakeKernel{durations};
  Timing timing = kernel.measure(options, 1e-4);
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_GE(timing.seconds.size(), 3u);
  EXPECT_NEAR(median(timing.seconds), 1e-4, 1e-12);
  kernel = FakeKernel{{8e-4}};  // it is slow without the other program
  timing = kernel.measure(options, 8e-4);
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_EQ(timing.seconds.size(), 2u);
  // A long first run is one of the two readings, but no repeat.
  options.best_seconds = 0.02;
  kernel = FakeKernel{{0.02}};
  timing = kernel.measure(options, 0.16);
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_NEAR(timing.seconds[0], 0.02, 1e-9);
  kernel = FakeKernel{{0.16}};
  timing = kernel.measure(options, 0.16);
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_EQ(timing.seconds.size(), 1u);
}

// A candidate that cannot win gets the fewest repeats, but in full: its time is a label like
// others.
TEST(Timing, LosersAreNotTimedToTheSpread) {
  TimingOptions options;
  options.best_seconds = 0.02;
  options.loser_factor = 1.1;
  options.target_spread = 0;  // never met
  FakeKernel kernel;
  for (int i = 0; i < 100; ++i) kernel.durations.push_back(0.024 * (1 + 0.01 * ((i * 7) % 5 - 2)));
  FakeKernel close;
  for (int i = 0; i < 100; ++i) close.durations.push_back(0.0215 * (1 + 0.01 * ((i * 7) % 5 - 2)));
  const Timing loser = kernel.measure(options, 0.024);
  EXPECT_EQ(loser.seconds.size(), 3u);
  EXPECT_FALSE(loser.stopped_early);
  EXPECT_EQ(close.measure(options, 0.0215).seconds.size(), 12u);  // the fastest repeat is too close to the
                                                                  // best
  options.loser_factor = 0;
  kernel.runs = 0;
  EXPECT_EQ(kernel.measure(options, 0.024).seconds.size(), 12u);
}

TEST(Timing, FlushesBeforeEveryRunAndDoesNotCountIt) {
  TimingOptions options;
  options.flush_cache = true;
  FakeKernel kernel{{1e-5}};
  const Timing timing = kernel.measure(options, 1e-5);
  EXPECT_EQ(timing.runs_per_repeat, 1);
  EXPECT_EQ(kernel.flushes, static_cast<int>(kernel.runs));
  EXPECT_NEAR(timing.seconds[0], 1e-5, 1e-10);
}

// The interval covers the true median about 95 times out of 100.
TEST(Statistics, SpreadIsAConfidenceInterval) {
  const uint64_t seed = 11;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  int covered = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> values;
    for (int i = 0; i < 25; ++i) values.push_back(1 + 0.05 * rng.normal());
    const double center = median(values);
    covered += std::abs(center - 1) <= relative_spread(values) * center;
  }
  EXPECT_GT(covered, 1800);
  EXPECT_LT(covered, 1990);
  EXPECT_TRUE(std::isinf(relative_spread(std::vector<double>{1})));
  EXPECT_EQ(relative_spread(std::vector<double>{2, 2, 2}), 0);
}

}  // namespace
}  // namespace tensorsmith::measure::timing_test
