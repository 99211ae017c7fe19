// How many candidates a proposal may score.
#include "search/pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "search_testing.h"

namespace tensorsmith::search::pace_test {
namespace {

class PaceTest : public ::testing::Test {
 protected:
  TuneOptions options_;
  test::FakeClock clock_;
  std::atomic<bool> cancel_{false};
  test::FakeMeasurer measurer_{test::pseudo(), clock_};
  Limits limits_{options_, clock_, cancel_, measurer_};
  Pace pace_{3, options_, limits_};
};

TEST_F(PaceTest, ProposalsKeepToTheirShareOfTheTime) {
  EXPECT_EQ(pace_.score_budget(0), 1024U);  // no measurement is known
  pace_.measured(0, 10);
  pace_.proposed(0, 256, 0.01);
  EXPECT_EQ(pace_.score_budget(0), 2048U);
  pace_.proposed(0, 2048, 5);  // twice the share of 10 s
  EXPECT_LT(pace_.score_budget(0), 512U);
  EXPECT_GE(pace_.score_budget(0), 96U);
}

// A slow model on one large program does not make its next proposal exceed the time for all, and
// another task that was not scored yet may be as slow.
TEST_F(PaceTest, OneSlowTaskDoesNotTakeTheTimeOfAll) {
  pace_.measured(0, 10);
  pace_.proposed(0, 256, 0.01);
  pace_.proposed(1, 256, 1.28);  // 5 ms a candidate
  for (const size_t task : {1, 2}) {
    EXPECT_LE(0.005 * static_cast<double>(pace_.score_budget(task)), 0.25 * 10) << task;
    EXPECT_GE(pace_.score_budget(task), 96U) << task;
  }
  EXPECT_GT(pace_.score_budget(0), pace_.score_budget(1));
}

// The first batches of a task are small; later ones have the size that the user wants.
TEST_F(PaceTest, BatchesGrow) {
  options_.batch = 16;
  std::vector<size_t> sizes;
  for (int trials = 0; trials < 64;) {
    sizes.push_back(pace_.batch_size(0, 0));
    for (size_t i = 0; i < sizes.back(); ++i, ++trials) pace_.count_trial(0);
  }
  EXPECT_LE(sizes.front(), 4U);
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
  EXPECT_EQ(sizes.back(), 16U);
  EXPECT_LE(pace_.batch_size(1, 0), 4U);  // another task
  EXPECT_EQ(pace_.batch_size(1, 6), 6U);  // seeds are measured together
  options_.batch = 2;
  EXPECT_EQ(pace_.batch_size(0, 0), 2U);
  EXPECT_EQ(pace_.batch_size(1, 6), 2U);
}

TEST_F(PaceTest, TheTimeLeftForMeasuringIsThatOfTheTighterLimit) {
  EXPECT_TRUE(std::isinf(pace_.measuring_seconds_left()));
  options_.seconds = 100;
  options_.confirm = false;
  clock_.now += 20;
  EXPECT_DOUBLE_EQ(pace_.measuring_seconds_left(), 80);
  pace_.measured(0, 15);
  pace_.proposed(0, 100, 5);
  EXPECT_DOUBLE_EQ(pace_.measuring_seconds_left(), 60);
  options_.trials = 40;
  for (int i = 0; i < 30; ++i) limits_.count_trial();
  EXPECT_DOUBLE_EQ(pace_.measuring_seconds_left(), 5);
  clock_.now += 100;
  EXPECT_EQ(pace_.measuring_seconds_left(), 0);
}

}  // namespace
}  // namespace tensorsmith::search::pace_test
