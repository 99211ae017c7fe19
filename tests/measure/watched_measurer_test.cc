// A watched measurer on a fake measurer, canary and clock.
#include "measure/watched_measurer.h"

#include <gtest/gtest.h>

#include "support/standard_workloads.h"

namespace tensorsmith::measure::watched_measurer_test {
namespace {

using record::Outcome;

class FakeClock final : public Clock {
 public:
  double monotonic_seconds() const override { return now; }
  int64_t unix_milliseconds() const override { return 0; }
  double now = 1000;
};

record::MeasureResult took(double seconds) {
  record::MeasureResult result;
  result.seconds = {seconds};
  result.runs_per_repeat = 1;
  return result;
}

record::MeasureResult failed(Outcome outcome, std::string reason) {
  record::MeasureResult result;
  result.outcome = outcome;
  result.reason = std::move(reason);
  return result;
}

class Lines final : public LogSink {
 public:
  void log(LogLevel, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

// Returns the answers of a list in order, then repeats the last one.
class Scripted final : public Measurer {
 public:
  explicit Scripted(std::vector<record::MeasureResult> answers) : answers_(std::move(answers)) {}
  Result<std::vector<record::MeasureResult>> measure(const ir::Workload&,
                                                     std::span<const MeasureRequest> candidates, double,
                                                     const Done& done) override {
    std::vector<record::MeasureResult> results;
    for (size_t i = 0; i < candidates.size(); ++i) {
      results.push_back(answers_[std::min(next_++, answers_.size() - 1)]);
      if (done && !done(i, results.back())) break;
    }
    return results;
  }

 private:
  std::vector<record::MeasureResult> answers_;
  size_t next_ = 0;
};

class WatchedMeasurerTest : public ::testing::Test {
 protected:
  std::unique_ptr<WatchedMeasurer> watch(std::vector<record::MeasureResult> answers) {
    return std::make_unique<WatchedMeasurer>(
        std::make_unique<Scripted>(std::move(answers)),
        [this]() -> Result<double> {
          ++canaries_;
          return canary_;
        },
        options_, clock_,
        [this](double seconds) {
          clock_.now += seconds;
          ++pauses_;
          if (recovers_after_ > 0 && pauses_ == recovers_after_) canary_ = 1e-3;
        },
        log_, cancel_);
  }
  // Measures `count` candidates; returns the outcomes that became results.
  Result<std::vector<Outcome>> measure(Measurer& measurer, size_t count) {
    std::vector<Outcome> seen;
    std::vector<size_t> places;
    const std::vector<MeasureRequest> candidates(count);
    const auto results = measurer.measure(test::standard::matmul(4, 4, 4), candidates, 0,
                                          [&](size_t i, const record::MeasureResult& r) {
                                            places.push_back(i);
                                            seen.push_back(r.outcome);
                                            return true;
                                          });
    for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(places[i], i) << "out of order";
    last_seen_ = seen.size();
    if (!results.ok()) return results.error();
    EXPECT_EQ(results->size(), seen.size());
    return seen;
  }

  WatchOptions options_;
  FakeClock clock_;
  Lines log_;
  std::atomic<bool> cancel_{false};
  Result<double> canary_ = 1e-3;
  int canaries_ = 0, pauses_ = 0, recovers_after_ = 0;
  size_t last_seen_ = 0;
};

TEST_F(WatchedMeasurerTest, PassesEverythingOnInOrder) {
  const auto crash = failed(Outcome::kCrash, "signal 11");
  const auto watched = watch({took(1), crash, crash, took(1), failed(Outcome::kInvalidSchedule, "x"), crash});
  const auto seen = measure(*watched, 6);
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(*seen, (std::vector{Outcome::kOk, Outcome::kCrash, Outcome::kCrash, Outcome::kOk,
                                Outcome::kInvalidSchedule, Outcome::kCrash}));
  EXPECT_EQ(canaries_, 1);  // the initial run of the canary
  EXPECT_EQ(watched->waited_seconds(), 0);
}

// A space full of bad programs does not end the run: the canary succeeds.
TEST_F(WatchedMeasurerTest, FailuresInARowCountWhereTheCanaryRuns) {
  const auto watched = watch({failed(Outcome::kCrash, "signal 11")});
  const auto seen = measure(*watched, 10);
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->size(), 10U);
  EXPECT_EQ(canaries_, 1 + 10 / options_.failures);
}

TEST_F(WatchedMeasurerTest, FailuresAreNoResultsWhereTheCanaryFailsToo) {
  const auto crash = failed(Outcome::kCrash, "signal 11");
  const auto watched = watch({took(1), crash, took(1), crash});
  ASSERT_TRUE(measure(*watched, 2).ok());
  canary_ = Error{ErrorCode::kIo, "", "crash: signal 7"};
  const auto seen = measure(*watched, 10);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(last_seen_, 1U);  // the candidate that succeeded
  EXPECT_NE(seen.error().message().find("signal 7"), std::string::npos) << seen.error().message();
  EXPECT_NE(seen.error().message().find("this machine"), std::string::npos);
}

// Failures that only the candidate can be blamed for do not run the canary.
TEST_F(WatchedMeasurerTest, WrongSchedulesDoNotAskTheCanary) {
  const auto watched = watch({failed(Outcome::kInvalidSchedule, "x")});
  ASSERT_TRUE(measure(*watched, 20).ok());
  EXPECT_EQ(canaries_, 1);
}

TEST_F(WatchedMeasurerTest, AFailureRowGoesOnFromCallToCall) {
  const auto watched = watch({failed(Outcome::kRunTimeout, "10 s")});
  for (int i = 0; i < options_.failures - 1; ++i) ASSERT_TRUE(measure(*watched, 1).ok());
  EXPECT_EQ(canaries_, 1);
  ASSERT_TRUE(measure(*watched, 1).ok());
  EXPECT_EQ(canaries_, 2);
}

TEST_F(WatchedMeasurerTest, ASlowMachineIsWaitedForAndTheWaitDoesNotCount) {
  const auto watched = watch({took(1)});
  ASSERT_TRUE(measure(*watched, 1).ok());
  canary_ = 1.3e-3;
  ASSERT_TRUE(measure(*watched, 1).ok());
  EXPECT_EQ(pauses_, 0);  // the canary was not due yet
  clock_.now += options_.interval_s;
  recovers_after_ = 3;
  ASSERT_TRUE(measure(*watched, 1).ok());
  EXPECT_EQ(pauses_, 3);
  EXPECT_DOUBLE_EQ(watched->waited_seconds(), 3 * options_.pause_s);
  ASSERT_EQ(log_.lines.size(), 2U);
  EXPECT_NE(log_.lines[0].find("1.30 times slower"), std::string::npos) << log_.lines[0];
}

TEST_F(WatchedMeasurerTest, AMachineThatStaysSlowIsSaidAndUsed) {
  const auto watched = watch({took(1)});
  ASSERT_TRUE(measure(*watched, 1).ok());
  canary_ = 2e-3;
  clock_.now += options_.interval_s;
  ASSERT_TRUE(measure(*watched, 1).ok());
  EXPECT_EQ(pauses_, static_cast<int>(options_.longest_pause_s / options_.pause_s));
  ASSERT_EQ(log_.lines.size(), 2U);
  // The new speed becomes the usual one.
  clock_.now += options_.interval_s;
  const int before = pauses_;
  ASSERT_TRUE(measure(*watched, 1).ok());
  EXPECT_EQ(pauses_, before);
}

TEST_F(WatchedMeasurerTest, CancellingEndsAPause) {
  const auto watched = watch({took(1)});
  ASSERT_TRUE(measure(*watched, 1).ok());
  canary_ = 2e-3;
  clock_.now += options_.interval_s;
  cancel_ = true;
  ASSERT_TRUE(measure(*watched, 1).ok());
  EXPECT_EQ(pauses_, 0);
}

}  // namespace
}  // namespace tensorsmith::measure::watched_measurer_test
