// Programs that are timed again in alternation, each turn in its own process.
#include "lab/time_again.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sched/step.h"
#include "support/standard_workloads.h"

namespace tensorsmith::lab::time_again_test {
namespace {

// Returns predefined times without measuring.
class ToldMeasurer final : public measure::Measurer {
 public:
  explicit ToldMeasurer(std::vector<double> seconds) : seconds_(std::move(seconds)) {}

  Result<std::vector<record::MeasureResult>> measure(const ir::Workload&,
                                                     std::span<const measure::MeasureRequest> candidates,
                                                     double, const Done& done) override {
    std::vector<record::MeasureResult> results;
    for (size_t i = 0; i < std::min(candidates.size(), seconds_.size()); ++i) {
      auto& result = results.emplace_back();
      if (std::isfinite(seconds_[i]))
        result.seconds = {seconds_[i]};
      else
        result.outcome = record::Outcome::kBuildError;
      done(i, result);
    }
    return results;
  }

 private:
  std::vector<double> seconds_;
};

std::string trace_of(int64_t factor) {
  return sched::print(sched::Trace{{sched::Split{.lengths = {factor}}}});
}

TEST(TimeAgain, TakesTheMedianOverProcesses) {
  const std::string a = trace_of(2), b = trace_of(4), c = trace_of(8);
  std::vector<Winner> winners{{0, a, 0}, {3, b, 0}, {4, a, 0}, {9, c, 0}};
  std::vector<Winner*> all;
  for (Winner& winner : winners) all.push_back(&winner);
  int made = 0;
  const MakeMeasurer make = [&]() -> Result<std::unique_ptr<measure::Measurer>> {
    ++made;
    // The first program is slow in the second process.
    const double of_first = made == 2 ? 30 : 10 + 0.1 * made;
    return std::unique_ptr<measure::Measurer>(
        new ToldMeasurer({of_first, 11, std::numeric_limits<double>::infinity()}));
  };
  ASSERT_TRUE(time_again(test::standard::matmul(8, 8, 8), make, all).ok());
  EXPECT_GE(made, 5);
  EXPECT_GT(winners[0].again, 10);
  EXPECT_LT(winners[0].again, 11);
  EXPECT_EQ(winners[1].again, 11);
  EXPECT_EQ(winners[2].again, winners[0].again) << "the same program";
  EXPECT_TRUE(std::isinf(winners[3].again)) << "failed";
}

TEST(TimeAgain, SaysNothingOfWhatWasCutOff) {
  Winner winner{1, trace_of(2), 0}, other{2, trace_of(4), 0};
  const MakeMeasurer make = []() -> Result<std::unique_ptr<measure::Measurer>> {
    return std::unique_ptr<measure::Measurer>(new ToldMeasurer({1}));
  };
  ASSERT_TRUE(time_again(test::standard::matmul(8, 8, 8), make, {&winner, &other}).ok());
  EXPECT_EQ(winner.again, 0);
  EXPECT_EQ(other.again, 0);
}

}  // namespace
}  // namespace tensorsmith::lab::time_again_test
