// How tune() uses a cost model that is right, wrong, slow or broken.
#include <gtest/gtest.h>

#include <cmath>

#include "search/tuner.h"
#include "search_testing.h"
#include "support/standard_workloads.h"

namespace tensorsmith::search::cost_model_test {
namespace {

using namespace tensorsmith::test::standard;
using test::Bench;
using test::FakeClock;
using test::FakeMeasurer;
using test::pseudo;
using test::pseudo_seconds;
using test::task;
using test::took;

// Predicts the seconds that the fake measurer will return, or their opposite. One that only ranks does
// so in another unit.
class Oracle final : public learn::CostModel {
 public:
  explicit Oracle(double sign, bool ranks_only = false) : sign_(sign), ranks_only_(ranks_only) {}
  Result<std::vector<learn::Prediction>> predict(
      std::span<const learn::ProgramQuery> queries) const override {
    std::vector<learn::Prediction> out;
    for (const auto& query : queries)
      out.push_back({(ranks_only_ ? 50 : 1e-3) * std::pow(1e3 * pseudo_seconds(*query.trace), sign_), 0.01});
    return out;
  }
  learn::ModelInputs inputs() const override { return {.trace = true}; }
  bool ranks_only() const override { return ranks_only_; }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string&) const override { return {}; }

 private:
  double sign_;
  bool ranks_only_;
  learn::ModelCard card_;
};

// Seconds are a hash of the trace, which no estimate can know: only the model tells good programs
// from bad ones.
TEST(CostModelInASearch, TheModelSteersTheSearch) {
  const TuneTask t = task("a", matmul(64, 64, 64));
  const auto mean_log = [&](learn::CostModel* model) {
    double sum = 0;
    int count = 0;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      Bench bench;
      bench.options.trials = 60;
      bench.options.seed = seed;
      FakeMeasurer measurer(
          [&](const std::string&, const sched::Trace& trace) {
            sum += std::log(pseudo_seconds(trace));
            ++count;
            return took(pseudo_seconds(trace));
          },
          bench.clock);
      EXPECT_TRUE(tune({t}, test::device(), bench.options,
                       {*bench.database, measurer, model, bench.clock, bench.log, bench.cancel})
                      .ok());
    }
    return sum / count;
  };
  Oracle right(1), wrong(-1), ranks(1, true);
  const double none = mean_log(nullptr), good = mean_log(&right), bad = mean_log(&wrong);
  // log(1 + uniform(0, 10)) has mean 1.64 and standard deviation .6; the mean of 180 programs has a
  // standard deviation of .05.
  EXPECT_LT(good, none - 0.5) << bad;
  EXPECT_GT(bad, none + 0.2) << good;
  EXPECT_LT(mean_log(&ranks), none - 0.5) << good;
}

// Cannot predict; counts its queries.
class BrokenModel final : public learn::CostModel {
 public:
  Result<std::vector<learn::Prediction>> predict(std::span<const learn::ProgramQuery>) const override {
    ++asked;
    return Error{ErrorCode::kInvalidArgument, "query 0", "no such device"};
  }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string&) const override { return {}; }
  mutable std::atomic<int> asked{0};

 private:
  learn::ModelCard card_;
};

class Warnings final : public LogSink {
 public:
  void log(LogLevel level, std::string_view message) override {
    if (level == LogLevel::kWarning) all.emplace_back(message);
  }
  std::vector<std::string> all;
};

// A failing model is reported once, and the search continues as without a model.
TEST(CostModelInASearch, AModelThatFailsIsLeftOut) {
  const std::vector<TuneTask> tasks{task("a", matmul(64, 64, 64)), task("b", matmul(16, 48, 8))};
  const auto measured = [&](learn::CostModel* model, Warnings& warnings) {
    Bench bench;
    bench.options.trials = 60;
    FakeMeasurer measurer(pseudo(), bench.clock);
    EXPECT_TRUE(tune(tasks, test::device(), bench.options,
                     {*bench.database, measurer, model, bench.clock, warnings, bench.cancel})
                    .ok());
    return measurer.counts.size();
  };
  BrokenModel broken;
  Warnings warnings;
  EXPECT_EQ(measured(&broken, warnings), 60U);
  ASSERT_EQ(warnings.all.size(), 1U);
  EXPECT_NE(warnings.all[0].find("no such device"), std::string::npos) << warnings.all[0];
  EXPECT_GT(broken.asked, 0);
}

// A model that a user has given must work.
class RequiredModel final : public learn::CostModel {
 public:
  explicit RequiredModel(bool learns) : learns_(learns) {}
  Result<std::vector<learn::Prediction>> predict(
      std::span<const learn::ProgramQuery> queries) const override {
    largest = std::max(largest, queries.size());
    if (queries.size() > 1 && !learns_) return Error{ErrorCode::kMismatch, "cost model mine", "returned NaN"};
    return std::vector<learn::Prediction>(queries.size(), {1e-3, 0.5});
  }
  Status update(std::span<const learn::MeasuredProgram>) override {
    return Error{ErrorCode::kIo, "cost model mine", "ended"};
  }
  bool learns() const override { return learns_; }
  bool required() const override { return true; }
  bool takes_large_batches() const override { return true; }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string&) const override { return {}; }
  mutable size_t largest = 0;

 private:
  bool learns_;
  learn::ModelCard card_;
};

TEST(CostModelInASearch, AModelThatIsRequiredEndsTheSearch) {
  for (const bool learns : {false, true}) {
    Bench bench;
    bench.options.trials = 60;
    FakeMeasurer measurer(pseudo(), bench.clock);
    RequiredModel model(learns);
    const auto report = tune({task("a", matmul(64, 64, 64))}, test::device(), bench.options,
                             {*bench.database, measurer, &model, bench.clock, bench.log, bench.cancel});
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().message(), learns ? "cost model mine: ended" : "cost model mine: returned NaN");
    EXPECT_LT(measurer.total, 60);
    // All candidates of a generation are in one call.
    if (!learns) {
      EXPECT_GT(model.largest, 16U);
    }
  }
}

// Takes a tenth of a second of the fake clock for each program.
class SlowModel final : public learn::CostModel {
 public:
  explicit SlowModel(FakeClock& clock) : clock_(clock) {}
  Result<std::vector<learn::Prediction>> predict(
      std::span<const learn::ProgramQuery> queries) const override {
    clock_.now += 0.1 * static_cast<double>(queries.size());
    asked += queries.size();
    return std::vector<learn::Prediction>(queries.size(), {1e-3, 0.5});
  }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string&) const override { return {}; }
  mutable size_t asked = 0;

 private:
  FakeClock& clock_;
  learn::ModelCard card_;
};

// A proposal that runs out of time leaves the rest to the drafts.
TEST(CostModelInASearch, ASlowModelKeepsToItsShareOfTheTime) {
  Bench bench;
  SlowModel model(bench.clock);
  bench.options.seconds = 20;
  FakeMeasurer measurer(pseudo(), bench.clock);
  const double start = bench.clock.now;
  ASSERT_TRUE(tune({task("a", matmul(64, 64, 64)), task("b", matmul(16, 48, 8))}, test::device(),
                   bench.options, {*bench.database, measurer, &model, bench.clock, bench.log, bench.cancel})
                  .ok());
  // The model is queried about 16 programs at a time.
  EXPECT_LE(bench.clock.now - start, bench.options.seconds + 1.6);
  // The fewest programs that a proposal scores, 96, would take 9.6 s, and the search would make
  // three trials; it makes some fifty.
  EXPECT_GE(measurer.total, 25);
  EXPECT_GT(model.asked, 0U);
}

}  // namespace
}  // namespace tensorsmith::search::cost_model_test
