// Which task gets the next trials: where the whole model gains most.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/rng.h"

namespace tensorsmith::search {

// What the scheduler knows of a task.
struct TaskStatus {
  double weight = 1;
  double flops = 0;
  double best_seconds = 0;      // +inf: nothing has run
  double expected_seconds = 0;  // where nothing has run: what one call seems to take, 0 = unknown
  double bound_seconds = 0;     // hardly any program is faster than this
  double round_cost = 1;        // seconds of tuning that a round takes
  std::vector<double> history;  // best seconds after each round, first round first
  uint64_t group = 0;           // similarity group
  bool exhausted = false;       // nothing left to measure
};

struct SchedulerOptions {
  double alpha = 0.2;     // share of the backward difference
  double beta = 2;        // how much slower than its group's best throughput a task may stay
  int window = 3;         // rounds of the backward difference
  double epsilon = 0.05;  // random choices
  // Tasks with less than this share of sum(weight * seconds) wait until all others are exhausted.
  double min_share = 0.001;
};

// Expected decrease of sum(weight * seconds) for each second of tuning spent on one more round, >= 0 (Ansor,
// OSDI 2020, section 6.2 and appendix A: gradient of the objective sum w_i g_i):
//   w * [alpha * (g(t - window) - g(t)) / window
//        + (1 - alpha) * (g - min(g - (g - bound) / t, beta * flops / best throughput of the group))] / cost
// with the second term bounded below by 0 and above by g - bound. Ansor has no bound and counts rounds: it
// spends as much on a copy that already runs at the bandwidth of the memory as on a convolution far from
// its peak. Infinite where nothing has been measured yet.
double expected_gain(std::span<const TaskStatus> tasks, size_t task, const SchedulerOptions& options);

// By task: whether its share of sum(weight * seconds) is at least options.min_share. A task of which nothing
// is known counts as large enough.
std::vector<bool> worth_tuning(std::span<const TaskStatus> tasks, const SchedulerOptions& options);

// The task with the largest gain of those worth tuning, or of all, when these are exhausted; nullopt-like:
// tasks.size() if all are exhausted.
size_t choose_task(std::span<const TaskStatus> tasks, const SchedulerOptions& options, Rng& rng);

}  // namespace tensorsmith::search
