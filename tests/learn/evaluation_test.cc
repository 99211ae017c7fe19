#include "learn/latency/evaluation.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/rng.h"

namespace tensorsmith::learn::evaluation_test {
namespace {

StoredWorkload workload(const std::string& key, const std::string& name) { return {key, name, "", 1, {}}; }

// Two tasks of one workload on two devices, and a third task; computed by hand.
TEST(Evaluation, ByHand) {
  Evaluation e;
  const StoredWorkload conv = workload("w1", "conv"), pool = workload("w2", "pool");
  // conv on A: the best program is predicted second.
  e.add(conv, "A", 1.0, {1.1, 0.1});
  e.add(conv, "A", 2.0, {1.0, 0.1});
  e.add(conv, "A", 4.0, {4.0, 0.1});
  e.add(conv, "A", INFINITY, {0.001, 0.1});
  // conv on B: a separate task, although the workload is the same.
  e.add(conv, "B", 10.0, {5.0, 1.0});
  // pool on A: in the right order.
  e.add(pool, "A", 3.0, {6.0, 0.5});
  e.add(pool, "A", 6.0, {9.0, 0.5});
  const Scores s = e.total();
  EXPECT_EQ(s.records, 6);
  EXPECT_EQ(s.failed, 1);
  EXPECT_EQ(s.tasks, 3);
  EXPECT_EQ(e.workloads(), 2);
  EXPECT_NEAR(s.mape, 2.6 / 6, 1e-12);
  EXPECT_NEAR(s.mape_median, 0.5, 1e-12);
  EXPECT_NEAR(s.rmse, std::sqrt((0.01 + 1 + 0 + 25 + 9 + 9) / 6), 1e-12);
  double logs = 0;
  for (const double ratio : {1.1, 0.5, 1.0, 0.5, 2.0, 1.5}) logs += std::log(ratio) * std::log(ratio);
  EXPECT_NEAR(s.rmse_log, std::sqrt(logs / 6), 1e-12);
  EXPECT_NEAR(s.top1, (1.0 + 10 + 3) / (2 + 10 + 3), 1e-12);
  EXPECT_NEAR(s.top5, 1, 1e-12);
  EXPECT_NEAR(s.peak1, (0.5 + 1 + 1) / 3, 1e-12);
  EXPECT_NEAR(s.pairwise, (2.0 / 3 + 1) / 2, 1e-12);  // a task of one program has no pairs

  const auto devices = e.by_device();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].first, "A");
  EXPECT_NEAR(devices[0].second.mape, (0.1 + 0.5 + 0 + 1 + 0.5) / 5, 1e-12);
  EXPECT_NEAR(devices[1].second.mape, 0.5, 1e-12);
  const auto operators = e.by_operator();
  ASSERT_EQ(operators.size(), 2u);
  EXPECT_EQ(operators[0].first, "conv");
  EXPECT_EQ(operators[0].second.failed, 1);
  EXPECT_EQ(operators[1].second.records, 2);

  EXPECT_EQ(e.seen_workloads({"w0", "w2"}), 1);
  EXPECT_EQ(e.seen_workloads({}), 0);
  // Within one sigma: log 1.1 and log 1 of 0.1, log 0.5 of 1, log 1.5 of 0.5. Within two: also log
  // 2 of 0.5.
  EXPECT_NEAR(e.coverage().first, 4.0 / 6, 1e-12);
  EXPECT_NEAR(e.coverage().second, 5.0 / 6, 1e-12);
}

// Intervals with their own tails, and predictions without intervals.
TEST(Evaluation, CoverageOfLongTails) {
  Evaluation e;
  const StoredWorkload w = workload("w", "conv");
  for (const double log_error : {0.05, 0.25, 0.35, 0.45}) {
    Prediction p{std::exp(log_error), 0.1};
    p.log_90 = 0.3;
    p.log_95 = 0.4;
    e.add(w, "A", 1, p);
  }
  EXPECT_NEAR(e.coverage().first, 0.25, 1e-12);
  EXPECT_NEAR(e.coverage90(), 0.5, 1e-12);
  EXPECT_NEAR(e.coverage().second, 0.75, 1e-12);
  e.add(w, "A", 1, {5, 0});
  EXPECT_EQ(e.without_interval(), 1);
  EXPECT_NEAR(e.coverage90(), 0.5, 1e-12);
}

TEST(Evaluation, EvenMedianIsTheMeanOfTheTwoInTheMiddle) {
  Evaluation e;
  const StoredWorkload w = workload("w", "conv");
  for (const double error : {0.4, 0.1, 0.3, 0.8}) e.add(w, "A", 1, {1 + error, 0});
  EXPECT_NEAR(e.total().mape_median, 0.35, 1e-12);
}

TEST(Evaluation, NothingMeasured) {
  Evaluation e;
  EXPECT_EQ(e.total().records, 0);
  e.add(workload("w", "conv"), "A", INFINITY, {1, 0});
  EXPECT_EQ(e.total().records, 0);
  EXPECT_EQ(e.total().failed, 1);
  EXPECT_EQ(e.total().tasks, 0);
  EXPECT_EQ(e.total().mape, 0);
  EXPECT_EQ(e.log_sigma(), 0);
}

// The width of normally distributed errors is estimated correctly.
TEST(Evaluation, SigmaOfNormalErrors) {
  Evaluation e;
  Rng rng(17);
  for (int i = 0; i < 20000; ++i)
    e.add(workload("w" + std::to_string(i % 100), "conv"), "A", std::exp(0.3 * rng.normal()), {1, 0.3});
  EXPECT_NEAR(e.log_sigma(), 0.3, 0.01);
  EXPECT_NEAR(e.coverage().first, 0.683, 0.01);
  EXPECT_NEAR(e.coverage().second, 0.954, 0.01);
}

TEST(Evaluation, ModelsThatRankHaveNoErrors) {
  Scores s;
  s.records = 3;
  EXPECT_TRUE(to_json(s, false)["mape"].is_number());
  EXPECT_TRUE(to_json(s, true)["mape"].is_null());
  EXPECT_TRUE(to_json(s, true)["top1"].is_number());
}

}  // namespace
}  // namespace tensorsmith::learn::evaluation_test
