// The timing method: repeats until the spread meets a target, and stops early if a candidate cannot
// win.
#pragma once

#include <time.h>

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
  int hopeless_repeats = 1;    // readings that must all be hopeless before the timing stops
  double loser_factor = 0;     // stops after min_repeats if this much slower than the best; 0 = never
  double budget_s = 5;         // start no further repeat after this much time
  bool flush_cache = false;    // flush before every run; a repeat is then a single run
};

struct Timing {
  std::vector<double> seconds;  // by repeat, each the mean of runs_per_repeat runs
  int runs_per_repeat = 1;
  bool stopped_early = false;
  // Median over the repeats of the energy of a run; 0 without TimingHooks::joules or without a whole repeat.
  double joules = 0;
};

// Functions that a timing needs from its environment; tests replace them.
struct TimingHooks {
  std::function<void()> run;    // the kernel, once
  std::function<void()> flush;  // evicts the caches; used with flush_cache only
  std::function<double()> now;  // seconds
  // Processor time of the kernel in seconds if it can be measured (a kernel of one thread); empty:
  // uses `now`.
  std::function<double()> on_core = {};
  // Number of times that the kernel's threads were preempted so far; empty: not known.
  std::function<int64_t()> preemptions = {};
  // Energy used so far; empty: not measured.
  std::function<double()> joules = {};
};

// first_run_seconds: time of a preceding run, which warmed up and is the first estimate.
//   warm-up:   one more run, whose time decides how many runs make a repeat of min_repeat_s
//   repeats:   until relative_spread() <= target_spread (at least min_repeats), max_repeats, or the budget
//   hopeless:  when hopeless_repeats readings were all slower than hopeless_factor * best_seconds; two at
//              least if another program took the core. A first run of 10 * min_repeat_s or more is a
//              reading, too; if one is enough, nothing else is run.
//   loser:     after min_repeats, if every repeat was slower than loser_factor * best_seconds
// A repeat during which another program took the core is repeated as long as that costs at most a
// few times 10 ms. A scheduler time slice is 3 to 4 ms, several times a repeat, so on a busy
// machine chance would decide whether the median is a disturbed repeat. This also applies to
// processor time, since the other program has replaced the contents of the caches.
Timing measure_time(const TimingOptions& options, const TimingHooks& hooks, double first_run_seconds);

// Half-width of the 95 % confidence interval of the median, relative to the median, from the median absolute
// deviation: 1.96 * 1.2533 * 1.4826 * MAD / sqrt(n) / median (normal errors; Rousseeuw and Croux 1993). +inf
// for fewer than 2 values.
double relative_spread(std::span<const double> values);

// Involuntary context switches of this process's threads so far.
int64_t preemptions();

double clock_seconds(clockid_t clock);

// CLOCK_MONOTONIC_RAW in seconds: not slewed by time synchronization.
double raw_seconds();

// CLOCK_THREAD_CPUTIME_ID in seconds, of the calling thread.
double thread_seconds();

}  // namespace tensorsmith::measure
