// The timing method: repeat until the spread meets a target, stop early when a candidate cannot win.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tensorsmith::measure {

struct TimingOptions {
  int min_repeats = 3;
  int max_repeats = 12;
  double target_spread = 0.02;
  double min_repeat_s = 0.001;
  double best_seconds = 0;     // of the task so far; 0 or infinite = unknown
  double hopeless_factor = 3;  // 0 = never stop early
  double loser_factor = 0;     // no precision for what is this much slower than the best; 0 = never
  double budget_s = 5;         // start no further repeat after this much time
  bool flush_cache = false;    // flush before every run: a repeat is then one run
};

struct Timing {
  std::vector<double> seconds;  // by repeat, each the mean of runs_per_repeat runs
  int runs_per_repeat = 1;
  bool stopped_early = false;
};

// What a timing needs from its surroundings; doubles in tests.
struct TimingHooks {
  std::function<void()> run;    // the kernel, once
  std::function<void()> flush;  // evicts the caches; used with flush_cache only
  std::function<double()> now;  // seconds
  // Seconds that the kernel was on a core, where that can be told (a kernel of one thread); empty: now.
  std::function<double()> on_core = {};
  // How often the kernel's threads were taken off their cores so far; empty: not known.
  std::function<int64_t()> preemptions = {};
};

// first_run_seconds: of a run before, which warmed up and is the first estimate.
//   warm-up:   one more run, whose time decides how many runs make a repeat of min_repeat_s
//   repeats:   until relative_spread() <= target_spread (at least min_repeats), max_repeats, or the budget
//   hopeless:  after the first repeat, if slower than hopeless_factor * best_seconds; at once, if the first
//              run was slower than that and took at least 10 * min_repeat_s
//   loser:     after min_repeats, if every repeat was slower than loser_factor * best_seconds
// A repeat in which another program took the core is made again while that costs no more than a few times 10 ms: a slice of
// the scheduler is 3 to 4 ms, several times a repeat, so that on a busy machine the median would be one or the other by
// chance. This holds for time on the core, too, since the other program has replaced what the caches held.
Timing measure_time(const TimingOptions& options, const TimingHooks& hooks, double first_run_seconds);

// Half-width of the 95 % confidence interval of the median, relative to the median, from the median absolute
// deviation: 1.96 * 1.2533 * 1.4826 * MAD / sqrt(n) / median (normal errors; Rousseeuw and Croux 1993). +inf
// for fewer than 2 values.
double relative_spread(std::span<const double> values);

// Involuntary context switches of this process's threads so far.
int64_t preemptions();

// CLOCK_MONOTONIC_RAW in seconds: not slewed by time synchronization.
double raw_seconds();

// CLOCK_THREAD_CPUTIME_ID in seconds, of the calling thread.
double thread_seconds();

}  // namespace tensorsmith::measure
