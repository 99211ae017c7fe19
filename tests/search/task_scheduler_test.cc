#include "search/task_scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tensorsmith::search::task_scheduler_test {
namespace {

TaskStatus task(double weight, double flops, std::vector<double> history, uint64_t group) {
  TaskStatus t;
  t.weight = weight;
  t.flops = flops;
  t.best_seconds = history.empty() ? std::numeric_limits<double>::infinity() : history.back();
  t.history = std::move(history);
  t.group = group;
  return t;
}

TEST(TaskScheduler, GainFollowsTheGradientFormula) {
  // One task in its group: throughput = flops / g, so beta * flops / throughput = 2 g never binds,
  // and the forward term is g / t.
  const std::vector<TaskStatus> tasks{task(3, 100, {8, 6, 5, 4}, 1)};
  const double backward = (8.0 - 4.0) / 3;
  const double forward = 4.0 / 4;
  EXPECT_NEAR(expected_gain(tasks, 0, {}), 3 * (0.2 * backward + 0.8 * forward), 1e-12);
}

TEST(TaskScheduler, SimilarTasksBoundWhatIsReachable) {
  // The other task of the group runs at 1000 flop/s. At that throughput this task needs 100 / 1000
  // s, and twice that time is considered reachable although the task has had many rounds.
  const std::vector<TaskStatus> tasks{task(1, 100, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 7),
                                      task(1, 1000, {1, 1, 1, 1, 1}, 7)};
  EXPECT_NEAR(expected_gain(tasks, 0, {}), 0.8 * (1 - 2 * 0.1), 1e-12);
  auto alone = tasks;
  alone[1].group = 8;
  EXPECT_NEAR(expected_gain(alone, 0, {}), 0.8 * 0.1, 1e-12);
}

TEST(TaskScheduler, GainIsForTheTimeThatARoundTakes) {
  std::vector<TaskStatus> tasks{task(1, 1, {1e-3, 1e-3}, 1), task(1, 1, {1e-3, 1e-3}, 2)};
  tasks[1].round_cost = 4;
  EXPECT_DOUBLE_EQ(expected_gain(tasks, 0, {}), 4 * expected_gain(tasks, 1, {}));
}

TEST(TaskScheduler, NothingIsGainedBelowTheBound) {
  std::vector<TaskStatus> tasks{task(1, 100, {8, 8}, 1)};
  tasks[0].bound_seconds = 6;
  EXPECT_NEAR(expected_gain(tasks, 0, {}), 0.8 * (8 - 6) / 2, 1e-12);
  tasks[0].bound_seconds = 9;
  EXPECT_EQ(expected_gain(tasks, 0, {}), 0);
  // This holds even if others of its kind are much faster.
  tasks.push_back(task(1, 10000, {8, 8}, 1));
  EXPECT_EQ(expected_gain(tasks, 0, {}), 0);
}

TEST(TaskScheduler, WhatTakesNoTimeWaits) {
  std::vector<TaskStatus> tasks{task(1, 1, {1e-3, 1e-3}, 1), task(2, 1, {1e-7, 1e-7}, 2), task(1, 1, {}, 3),
                                task(1, 1, {}, 4)};
  tasks[2].expected_seconds = 1e-7;
  EXPECT_EQ(worth_tuning(tasks, {}), (std::vector<bool>{true, false, false, true}));
  tasks[3].history = tasks[0].history;
  tasks[3].best_seconds = 1e-5;
  SchedulerOptions options;
  options.epsilon = 1;  // random choices do not select them either
  Rng rng(1);
  for (int i = 0; i < 50; ++i) {
    const auto [chosen, reason] = choose_task(tasks, options, rng);
    EXPECT_EQ(reason, RoundReason::kRandom);
    EXPECT_TRUE(chosen == 0 || chosen == 3) << chosen;
  }
  tasks[0].exhausted = tasks[3].exhausted = true;
  const size_t chosen = choose_task(tasks, options, rng).task;
  EXPECT_TRUE(chosen == 1 || chosen == 2) << chosen;
}

TEST(TaskScheduler, PicksTheBottleneck) {
  std::vector<TaskStatus> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(task(1, 1, {1e-5, 1e-5}, static_cast<uint64_t>(i)));
  tasks[6] = task(4, 1, {1e-3, 1e-3}, 6);
  SchedulerOptions options;
  options.epsilon = 0;
  Rng rng(1);
  EXPECT_EQ(choose_task(tasks, options, rng).task, 6U);
  EXPECT_EQ(choose_task(tasks, options, rng).reason, RoundReason::kGain);
  tasks[6].exhausted = true;
  EXPECT_NE(choose_task(tasks, options, rng).task, 6U);
}

TEST(TaskScheduler, NewTasksComeFirstAndFailingOnesLast) {
  std::vector<TaskStatus> tasks{task(1, 1, {1e-3}, 1), task(1, 1, {}, 2), task(1, 1, {1e-3}, 3)};
  SchedulerOptions options;
  options.epsilon = 0;
  Rng rng(1);
  EXPECT_EQ(choose_task(tasks, options, rng).task, 1U);
  tasks[1].history = {std::numeric_limits<double>::infinity()};
  EXPECT_NE(choose_task(tasks, options, rng).task, 1U);
}

TEST(TaskScheduler, AllExhausted) {
  std::vector<TaskStatus> tasks{task(1, 1, {1e-3}, 1)};
  tasks[0].exhausted = true;
  Rng rng(1);
  EXPECT_EQ(choose_task(tasks, {}, rng).task, tasks.size());
}

}  // namespace
}  // namespace tensorsmith::search::task_scheduler_test
