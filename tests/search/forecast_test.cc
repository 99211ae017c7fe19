// The expected gain of the rest of a run.
#include "search/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "search_testing.h"
#include "support/standard_workloads.h"

namespace tensorsmith::search::forecast_test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

TaskStatus status(double weight, std::vector<double> history, uint64_t group) {
  TaskStatus t;
  t.weight = weight;
  t.flops = 1;
  t.best_seconds = history.empty() ? kNever : history.back();
  t.history = std::move(history);
  t.group = group;
  return t;
}

TEST(Forecast, TheNextRoundBringsItsGain) {
  const std::vector<TaskStatus> tasks{status(3, {8, 6, 5, 4}, 1)};
  const double gain = expected_gain(tasks, 0, {});
  EXPECT_EQ(expected_decrease(tasks, 0, {}), 0);
  EXPECT_DOUBLE_EQ(expected_decrease(tasks, 0.5, {}), 0.5 * gain);
  EXPECT_DOUBLE_EQ(expected_decrease(tasks, 1, {}), gain);
}

TEST(Forecast, LaterRoundsBringLessAndNoneGetsBelowTheBound) {
  std::vector<TaskStatus> tasks{status(3, {8, 6, 5, 4}, 1)};
  const double one = expected_decrease(tasks, 1, {}), two = expected_decrease(tasks, 2, {});
  EXPECT_GT(two, one);
  EXPECT_LT(two, 2 * one);
  tasks[0].bound_seconds = 3;
  EXPECT_LE(expected_decrease(tasks, 1e9, {}), 3 * (4 - 3) + 1e-9);
  tasks[0].bound_seconds = 5;
  EXPECT_EQ(expected_decrease(tasks, 1e9, {}), 0);
}

TEST(Forecast, RoundsGoWhereTheyBringMost) {
  const std::vector<TaskStatus> tasks{status(1, {4, 4}, 1), status(1, {8, 8}, 2)};
  EXPECT_DOUBLE_EQ(expected_decrease(tasks, 1, {}), expected_gain(tasks, 1, {}));
  EXPECT_GT(expected_decrease(tasks, 50, {}), 8);  // for both tasks together
}

TEST(Forecast, WhatCannotGainBringsNothing) {
  std::vector<TaskStatus> tasks{status(1, {}, 1), status(1, {kNever}, 2), status(1, {4, 4}, 3)};
  tasks[2].exhausted = true;
  EXPECT_EQ(expected_decrease(tasks, 100, {}), 0);
  EXPECT_EQ(expected_decrease({}, 100, {}), 0);
}

TEST(Forecast, TheShareIsOfAllRoundsThatCount) {
  Forecast forecast;
  forecast.add_round(kNever, 1);
  forecast.add_round(1, kNever);
  forecast.add_round(4, 2);
  forecast.add_round(3, 0);
  EXPECT_EQ(forecast.share_come_true(), std::nullopt);
  forecast.add_round(1, 0);
  EXPECT_EQ(forecast.share_come_true(), 0.25);
  forecast.add_round(0, 100);
  EXPECT_EQ(forecast.share_come_true(), 1);
}

TEST(Forecast, ARunSaysWhatItExpectsWhileItSearches) {
  using namespace tensorsmith::test::standard;
  test::Bench bench;
  bench.options.trials = 50;
  bench.options.confirm = false;
  std::map<std::string, int> measured;  // by task
  test::FakeMeasurer measurer(
      [&](const std::string& key, const sched::Trace& trace) {
        return ++measured[key] % 5 == 0 ? test::failed(record::Outcome::kCrash, "crashes")
                                        : test::took(test::pseudo_seconds(trace));
      },
      bench.clock);
  const std::vector<TuneTask> tasks{test::task("a", matmul(32, 32, 32)), test::task("b", matmul(16, 48, 8)),
                                    test::task("c", softmax(4, 32))};
  const auto report = bench.run(tasks, measurer);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(bench.progress.front().expected_model_seconds, 0);
  int known = 0;
  for (const TuneProgress& p : bench.progress) {
    int64_t failures = 0;
    for (const TaskProgress& task : p.tasks) failures += task.failures;
    EXPECT_EQ(p.failures, failures);
    if (p.expected_model_seconds == 0) continue;
    ++known;
    EXPECT_GT(p.expected_model_seconds, 0);
    EXPECT_LE(p.expected_model_seconds, p.model_best_seconds());
  }
  EXPECT_GT(known, 10);
  EXPECT_EQ(report->final.expected_model_seconds, 0);
}

}  // namespace
}  // namespace tensorsmith::search::forecast_test
