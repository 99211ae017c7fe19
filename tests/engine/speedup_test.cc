// Definition of the speed-up and the estimate, and their storage in files.
#include "engine/report/speedup.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/report/report_json.h"
#include "graph/tasks.h"
#include "runtime/model_format.h"

namespace tensorsmith::engine::speedup_test {
namespace {

using ::testing::HasSubstr;

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(Speedup, WarnsWhereRunsDifferByMoreThanTheThreshold) {
  const Speedup steady{3e-3, 2e-3, kBusySpread}, busy{3e-3, 2e-3, 1.455};
  EXPECT_FALSE(steady.busy());
  EXPECT_EQ(warning_of(steady), "");
  EXPECT_TRUE(busy.busy());
  EXPECT_THAT(warning_of(busy), HasSubstr("differ by 145.5 %"));
  EXPECT_EQ(ratio_text(busy.ratio()), "1.50x");
  EXPECT_EQ(ratio_text(kNever), "-");
  const nlohmann::json json = to_json(busy);
  EXPECT_EQ(json["speedup"], busy.ratio());
  EXPECT_EQ(json["warning"], warning_of(busy));
  EXPECT_TRUE(to_json(steady)["warning"].is_null());
}

TEST(Estimate, IsTheSumOverTheCallsOfAllTasks) {
  const Estimate sum = estimate_of(std::vector<TaskTimes>{{2, 4e-3, 1e-3},
                                                          {1, kNever, 3e-3},  // the untuned program failed
                                                          {3, 1e-3, 0},       // no other program ran
                                                          {5, kNever, kNever}});
  EXPECT_DOUBLE_EQ(sum.untuned_seconds, 8e-3 + 3e-3 + 3e-3);
  EXPECT_DOUBLE_EQ(sum.tuned_seconds, 2e-3 + 3e-3 + 3e-3);
  EXPECT_FALSE(estimate_of(std::vector<TaskTimes>()).known());
  EXPECT_TRUE(to_json(Estimate()).is_null());
  EXPECT_FALSE(to_json(sum).contains("speedup")) << "an estimate is never called a speed-up";
}

TEST(Estimate, OfASearchWaitsForAllTasks) {
  search::TuneProgress p;
  p.tasks = {{"a", 2, 5, 0, 4e-3, 1e-3, 0, "key a"}, {"b", 1, 0, 0, kNever, kNever, 0, "key b"}};
  EXPECT_FALSE(estimate_of(p).known());
  p.tasks[1].hint_seconds = 2e-3;  // timed in the untuned model
  EXPECT_DOUBLE_EQ(estimate_of(p).untuned_seconds, 8e-3 + 2e-3);
  EXPECT_DOUBLE_EQ(estimate_of(p).tuned_seconds, 2e-3 + 2e-3);
  // When one of several models is tuned, the model has its own numbers of calls.
  graph::Partition model;
  model.tasks.resize(1);
  model.tasks[0].key = "key a";
  model.tasks[0].calls = 7;
  EXPECT_DOUBLE_EQ(estimate_of(p, model).tuned_seconds, 7e-3);
  model.tasks[0].key = "another";
  EXPECT_FALSE(estimate_of(p, model).known());
}

TEST(Speedup, CompiledModelsKeepIt) {
  runtime::ModelDescription model;
  EXPECT_FALSE(speedup_of(model));
  EXPECT_FALSE(estimate_of(model).known());
  const Speedup speedup{3e-3, 2e-3, 0.25};
  const Estimate estimate{5e-3, 4e-3};
  model.end_to_end = stored(speedup);
  model.estimate = stored(estimate);
  ASSERT_TRUE(speedup_of(model));
  EXPECT_EQ(to_json(*speedup_of(model)), to_json(speedup));
  EXPECT_EQ(to_json(estimate_of(model)), to_json(estimate));
  EXPECT_FALSE(stored(Estimate()));
  EXPECT_FALSE(stored(Speedup{kNever, 1, 0}));
}

}  // namespace
}  // namespace tensorsmith::engine::speedup_test
