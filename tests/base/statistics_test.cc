#include "base/statistics.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace tensorsmith::statistics_test {
namespace {

TEST(Statistics, Median) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_THROW(median({}), InternalError);
}

TEST(Statistics, QuantilesAreValuesOfTheSample) {
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0), 1);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.5), 3);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.74), 3);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.75), 4);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 1), 5);
}

TEST(Statistics, SampleDeviation) {
  EXPECT_DOUBLE_EQ(sample_deviation({1, 2, 3, 4, 5}), 1.5811388300841898);  // sqrt(10 / 4)
  EXPECT_EQ(sample_deviation({7}), 0);
  EXPECT_EQ(sample_deviation({}), 0);
}

}  // namespace
}  // namespace tensorsmith::statistics_test
