#include "measure/timing.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/statistics.h"

namespace tensorsmith::measure {

double clock_seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

double raw_seconds() { return clock_seconds(CLOCK_MONOTONIC_RAW); }

double thread_seconds() { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }

int64_t preemptions() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

double relative_spread(std::span<const double> values) {
  if (values.size() < 2) return std::numeric_limits<double>::infinity();
  const double center = median({values.begin(), values.end()});
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - center));
  const double half_width = 1.96 * 1.2533 * 1.4826 * median(deviations) / std::sqrt(values.size());
  return center > 0 ? half_width / center : 0;
}

namespace {

// Most seconds of disturbed repeats that are repeated.
constexpr double kMostDisturbed = 0.05;

}  // namespace

Timing measure_time(const TimingOptions& options, const TimingHooks& hooks, double first_run_seconds) {
  Timing timing;
  const auto& clock = hooks.on_core ? hooks.on_core : hooks.now;
  const double start = hooks.now();
  double estimate = first_run_seconds;
  const bool best_known = options.best_seconds > 0 && std::isfinite(options.best_seconds);
  const bool hopeless_known = options.hopeless_factor > 0 && best_known;
  const double hopeless = options.hopeless_factor * options.best_seconds;
  const bool loser_known = options.loser_factor > 0 && best_known;

  // A first run of many milliseconds is hardly slower than later ones, so it counts as the first
  // repeat of a candidate that it shows to be hopeless.
  const bool first_is_hopeless =
      hopeless_known && first_run_seconds > hopeless && first_run_seconds >= 10 * options.min_repeat_s;
  if (first_is_hopeless && options.hopeless_repeats <= 1) {
    timing.seconds = {first_run_seconds};
    timing.stopped_early = true;
    return timing;
  }
  if (!options.flush_cache) {
    // The first run includes page faults and cold caches, which do not matter if it took long.
    if (first_run_seconds < 10 * options.min_repeat_s) {
      const double before = clock();
      hooks.run();
      estimate = clock() - before;
    }
    const double runs = std::ceil(options.min_repeat_s / std::max(estimate, 1e-9));
    timing.runs_per_repeat = std::clamp(runs, 1.0, 1e6);
  }

  std::vector<double> energies;  // of a run, by repeat
  const auto repeat = [&] {
    double seconds = 0;
    const double joules = hooks.joules ? hooks.joules() : 0;
    if (options.flush_cache) {
      hooks.flush();
      const double before = clock();
      hooks.run();
      seconds = clock() - before;
    } else {
      const double before = clock();
      for (int i = 0; i < timing.runs_per_repeat; ++i) hooks.run();
      seconds = (clock() - before) / timing.runs_per_repeat;
    }
    if (hooks.joules) energies.push_back((hooks.joules() - joules) / timing.runs_per_repeat);
    return seconds;
  };
  double disturbed = 0;  // seconds of repeats that were repeated
  const auto undisturbed_repeat = [&] {
    while (true) {
      const double begin = hooks.now();
      const int64_t before = hooks.preemptions ? hooks.preemptions() : 0;
      const double seconds = repeat();
      if (!hooks.preemptions || hooks.preemptions() == before || disturbed > kMostDisturbed) return seconds;
      disturbed += hooks.now() - begin;
      if (!energies.empty()) energies.pop_back();
    }
  };

  const int max_repeats = std::max(1, options.max_repeats);
  double fastest = std::numeric_limits<double>::infinity();
  while (std::ssize(timing.seconds) < max_repeats) {
    timing.seconds.push_back(undisturbed_repeat());
    const int count = timing.seconds.size();
    const bool enough =
        count >= std::max(1, options.min_repeats) && relative_spread(timing.seconds) <= options.target_spread;
    if (enough || count == max_repeats) break;
    fastest = std::min(fastest, timing.seconds.back());
    if (count >= options.min_repeats && loser_known && fastest > options.loser_factor * options.best_seconds)
      break;
    // One reading does not decide if other programs may have lengthened it.
    const int needed = std::max(options.hopeless_repeats, disturbed > 0 ? 2 : 1);
    if (hopeless_known && fastest > hopeless && count + (first_is_hopeless ? 1 : 0) >= needed) {
      timing.stopped_early = true;
      break;
    }
    if (hooks.now() - start > options.budget_s) break;
    // The warm-up was disturbed and the repeats are too short, so the number of runs is calibrated
    // again.
    if (count == 1 && !options.flush_cache &&
        timing.seconds[0] * timing.runs_per_repeat < 0.5 * options.min_repeat_s) {
      const double runs = std::ceil(options.min_repeat_s / std::max(timing.seconds[0], 1e-9));
      timing.runs_per_repeat = std::clamp(runs, 1.0, 1e6);
      timing.seconds.clear();
      energies.clear();
      fastest = std::numeric_limits<double>::infinity();
    }
  }
  if (!energies.empty()) timing.joules = median(std::move(energies));
  return timing;
}

}  // namespace tensorsmith::measure
