// Chooses the task for the next trials: the one from which the whole model gains most.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/rng.h"

namespace tensorsmith::search {

// The state of a task that the scheduler uses.
struct TaskStatus {
  double weight = 1;
  double flops = 0;
  double best_seconds = 0;      // +inf: no program has run
  double expected_seconds = 0;  // assumed seconds of one call while nothing has run, 0 = not known
  double bound_seconds = 0;     // hardly any program is faster
  double round_cost = 1;        // tuning seconds per round
  std::vector<double> history;  // best seconds after each round, in order of the rounds
  uint64_t group = 0;           // similarity group
  bool exhausted = false;       // there is nothing left to measure
};

struct SchedulerOptions {
  double alpha = 0.2;     // weight of the backward difference
  double beta = 2;        // limit on the slowdown relative to the group's best throughput
  int window = 3;         // rounds that the backward difference covers
  double epsilon = 0.05;  // probability of a random choice
  // Tasks below this share of sum(weight * seconds) wait until all others are exhausted.
  double min_share = 0.001;
};

// Returns the expected decrease of sum(weight * seconds) per second of tuning, for one more round,
// >= 0 (Ansor, OSDI 2020, section 6.2 and appendix A: gradient of the objective sum w_i g_i):
//   w * [alpha * (g(t - window) - g(t)) / window
//        + (1 - alpha) * (g - min(g - (g - bound) / t, beta * flops / best throughput of the group))] / cost
// where the second term is limited to [0, g - bound]. Ansor has no bound and counts rounds instead
// of seconds; it therefore spends as much on a copy that already runs at memory bandwidth as on a
// convolution far from its peak. Infinite if nothing has been measured yet.
double expected_gain(std::span<const TaskStatus> tasks, size_t task, const SchedulerOptions& options);

// Returns, for each task, whether its share of sum(weight * seconds) is at least options.min_share.
// A task with unknown time counts as large enough.
std::vector<bool> worth_tuning(std::span<const TaskStatus> tasks, const SchedulerOptions& options);

// Why a task got a round of the search.
enum class RoundReason : uint8_t {
  kFirst,   // each task that matters gets one round before the scheduler chooses
  kGain,    // the task promised the largest gain for its time
  kRandom,  // the scheduler chose at random
};
inline constexpr std::array kRoundReasons{RoundReason::kFirst, RoundReason::kGain, RoundReason::kRandom};
std::string_view to_string(RoundReason reason);  // "first", "gain", "random"

struct ChosenTask {
  size_t task = 0;
  RoundReason reason = RoundReason::kGain;
};
// Returns the task with the largest gain among those worth tuning, or among all if these are
// exhausted; tasks.size() if all are exhausted.
ChosenTask choose_task(std::span<const TaskStatus> tasks, const SchedulerOptions& options, Rng& rng);

}  // namespace tensorsmith::search
