// Learning curves, with models whose predictions are known, so that all scores follow by hand.
#include "lab/learning_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "lab/kinds/kinds.h"
#include "learn/latency_testing.h"

namespace tensorsmith::lab::learning_curve_test {
namespace {

using learn::testing::MadeStore;

// Seconds of all programs by their features, which identify a program in these stores.
using Times = std::map<std::vector<float>, double>;

// Predicts factor * seconds^power.
class KnownModel final : public learn::CostModel {
 public:
  KnownModel(const Times& times, double factor, double power, bool only_ranks)
      : times_(times), factor_(factor), power_(power), only_ranks_(only_ranks) {
    card_.workloads = {"workload1"};
  }
  Result<std::vector<learn::Prediction>> predict(
      std::span<const learn::ProgramQuery> queries) const override {
    std::vector<learn::Prediction> out;
    for (const learn::ProgramQuery& query : queries)
      out.push_back({factor_ * std::pow(times_.at(query.leaves->vectors.values), power_)});
    return out;
  }
  bool ranks_only() const override { return only_ranks_; }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string&) const override { return {}; }

 private:
  const Times& times_;
  double factor_, power_;
  bool only_ranks_;
  learn::ModelCard card_;
};

struct Training {
  bool from_base = false;
  uint64_t seed = 0;
  std::vector<int64_t> records;
};

struct Behaviour {
  double scratch_factor = 1, scratch_power = 1, tuned_factor = 1, tuned_power = 1;
  bool only_ranks = false;
};

class KnownTrainer final : public learn::CostModelTrainer {
 public:
  KnownTrainer(const Times& times, const Behaviour& behaviour, std::vector<Training>& trainings)
      : times_(times), behaviour_(behaviour), trainings_(trainings) {}
  Result<std::unique_ptr<learn::CostModel>> train(const learn::TrainingData& data,
                                                  const learn::TrainingControl& control) const override {
    keep(false, data, control);
    return std::unique_ptr<learn::CostModel>(std::make_unique<KnownModel>(
        times_, behaviour_.scratch_factor, behaviour_.scratch_power, behaviour_.only_ranks));
  }
  Result<std::unique_ptr<learn::CostModel>> fine_tune(const learn::CostModel& model,
                                                      const learn::TrainingData& data,
                                                      const learn::TrainingControl& control) const override {
    EXPECT_EQ(model.card().workloads.size(), 1U);
    keep(true, data, control);
    return std::unique_ptr<learn::CostModel>(std::make_unique<KnownModel>(
        times_, behaviour_.tuned_factor, behaviour_.tuned_power, behaviour_.only_ranks));
  }

 private:
  void keep(bool from_base, const learn::TrainingData& data, const learn::TrainingControl& control) const {
    EXPECT_TRUE(data.validation.empty());
    EXPECT_TRUE(data.unlabelled.empty());
    const std::lock_guard lock(mutex_);
    trainings_.push_back({from_base, control.seed, data.train});
  }

  const Times& times_;
  Behaviour behaviour_;
  std::vector<Training>& trainings_;
  mutable std::mutex mutex_;
};

class LearningCurveTest : public ::testing::Test {
 protected:
  LearningCurveTest() {
    feature::LeafFeatures leaves;
    for (int64_t i = 0; i < store().size(); ++i) {
      const learn::Store::Entry entry = store().entry(i);
      all_.push_back(i);
      if (entry.failed()) continue;
      store().leaves(i, leaves);
      times_[leaves.vectors.values] = entry.mean_seconds;
      measured_[{entry.workload, entry.device}].push_back(i);
    }
    options_.rounds = 3;
    options_.batch = 10;
    options_.seeds = 1;
  }
  const learn::Store& store() const { return made_.store(); }

  std::vector<CurveModel> known(const Behaviour& behaviour) {
    std::vector<CurveModel> out(1);
    out[0].name = "known";
    out[0].trainer = std::make_unique<KnownTrainer>(times_, behaviour, trainings_);
    out[0].pretrained.push_back(std::make_unique<KnownModel>(times_, 2, 1, behaviour.only_ranks));
    return out;
  }
  Result<LearningCurves> run(const std::vector<CurveModel>& models) {
    return learning_curves(store(), learn::pointers_to(made_.devices()), all_, models, options_, {}, cancel_);
  }
  // The measured programs of a curve's task, in the order of the store.
  const std::vector<int64_t>& programs_of(const LearningCurve& curve) const {
    for (const auto& [task, records] : measured_)
      if (store().workloads()[task.first].key == curve.task && store().devices()[task.second] == curve.device)
        return records;
    ADD_FAILURE() << curve.task;
    return measured_.begin()->second;
  }

  const MadeStore made_{{.tasks = 3, .programs = 60, .failures = 0.1}};
  std::vector<int64_t> all_;
  Times times_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<int64_t>> measured_;  // by workload and device
  LearningCurveOptions options_;
  std::vector<Training> trainings_;
  std::atomic<bool> cancel_{false};
};

TEST_F(LearningCurveTest, RightOrderHasRecallOneAndReversedOrderZero) {
  const auto result = run(known({.scratch_power = -1}));
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(result->tasks, 6);  // three workloads on two devices
  EXPECT_EQ(result->left_out, 0);
  ASSERT_EQ(result->curves.size(), 12U);
  for (const LearningCurve& curve : result->curves) {
    EXPECT_EQ(curve.seen, curve.task == "workload1");
    ASSERT_EQ(curve.top_half.size(), 3U);
    ASSERT_EQ(curve.rmse.size(), 3U);
    // Only the pre-trained model can predict the first round, and nothing normalizes its times yet.
    EXPECT_EQ(std::isnan(curve.top_half[0]), !curve.pretrained);
    EXPECT_TRUE(std::isnan(curve.rmse[0]));
    for (size_t round = curve.pretrained ? 0 : 1; round < 3; ++round)
      EXPECT_EQ(curve.top_half[round], curve.pretrained ? 1 : 0);
    if (!curve.pretrained) continue;
    for (size_t round = 1; round < 3; ++round) EXPECT_NEAR(curve.rmse[round], 0, 1e-12);
  }
}

// With predictions of twice the seconds, the error of each program is half of its label.
TEST_F(LearningCurveTest, ErrorIsThatOfTheNormalizedThroughput) {
  const auto result = run(known({.scratch_factor = 2, .tuned_factor = 2}));
  ASSERT_TRUE(result.ok()) << result.error().message();
  for (const LearningCurve& curve : result->curves) {
    const std::vector<int64_t>& records = programs_of(curve);
    for (size_t round = 1; round < 3; ++round) {
      double fastest = INFINITY, squares = 0;
      for (size_t i = 0; i < 10 * round; ++i)
        fastest = std::min(fastest, store().entry(records[i]).mean_seconds);
      for (size_t i = 10 * round; i < 10 * round + 10; ++i)
        squares += std::pow(fastest / store().entry(records[i]).mean_seconds / 2, 2);
      EXPECT_NEAR(curve.rmse[round], std::sqrt(squares / 10), 1e-9);
      EXPECT_EQ(curve.top_half[round], 1);
    }
  }
}

TEST_F(LearningCurveTest, ModelsThatOnlyRankHaveNoError) {
  const auto result = run(known({.only_ranks = true}));
  ASSERT_TRUE(result.ok()) << result.error().message();
  for (const LearningCurve& curve : result->curves) {
    for (const double error : curve.rmse) EXPECT_TRUE(std::isnan(error));
    EXPECT_EQ(curve.top_half[2], 1);
  }
}

// A round is never learned from before it is predicted, and failed programs are in none.
TEST_F(LearningCurveTest, LearnsFromTheEarlierRoundsOfTheTask) {
  const auto result = run(known({}));
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(trainings_.size(), 24U);  // tasks, pre-trained or not, rounds but the first
  for (const auto& [task, records] : measured_) {
    for (const bool from_base : {true, false}) {
      for (const int64_t count : {10, 20}) {
        const std::vector<int64_t> earlier(records.begin(), records.begin() + count);
        EXPECT_EQ(std::count_if(trainings_.begin(), trainings_.end(),
                                [&](const Training& training) {
                                  return training.from_base == from_base && training.records == earlier;
                                }),
                  1);
      }
    }
  }
}

TEST_F(LearningCurveTest, ShufflesBySeedTheSameForAllModels) {
  options_.shuffled = true;
  options_.seeds = 2;
  options_.rounds = 2;
  const auto result = run(known({}));
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(trainings_.size(), 24U);  // tasks, seeds, pre-trained or not
  std::map<std::vector<int64_t>, int> uses;
  for (const Training& training : trainings_) {
    EXPECT_TRUE(std::is_sorted(training.records.begin(), training.records.end()));
    EXPECT_FALSE(store().entry(training.records.front()).failed());
    ++uses[training.records];
  }
  EXPECT_EQ(uses.size(), 12U);  // each task and seed has another first round
  for (const auto& [records, count] : uses) EXPECT_EQ(count, 2);
}

// Random predictions find half of the faster half, up to the deviation of a hypergeometric variable.
TEST(LearningCurves, RandomPredictionsFindHalf) {
  const MadeStore made({.tasks = 12, .programs = 128});
  std::vector<int64_t> records;
  for (int64_t i = 0; i < made.store().size(); ++i) records.push_back(i);
  const std::atomic<bool> cancel{false};
  std::vector<CurveModel> models;
  models.push_back(make_curve_model("random", made.data(), "", 2, 1, cancel).value());
  EXPECT_EQ(models[0].pretrained.size(), 2U);
  LearningCurveOptions options;
  options.rounds = 2;
  options.seeds = 2;
  options.threads = 2;
  const auto result =
      learning_curves(made.store(), learn::pointers_to(made.devices()), records, models, options, {}, cancel);
  ASSERT_TRUE(result.ok()) << result.error().message();
  // 24 tasks and 2 seeds; the deviation of one value is 0.063.
  const CurveMean mean = mean_of_curves(result->curves, 0, true, &LearningCurve::top_half);
  for (size_t round = 0; round < 2; ++round) {
    EXPECT_NEAR(mean.mean[round], 0.5, 5 * 0.063 / std::sqrt(48));
    EXPECT_GT(mean.over_tasks[round], 0);
  }
}

TEST_F(LearningCurveTest, RefusesTooFewProgramsAndStops) {
  options_.rounds = 7;
  const auto none = run(known({}));
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message().find("no task has 70 measured programs"), std::string::npos)
      << none.error().message();
  options_.rounds = 2;
  cancel_ = true;
  const auto stopped = run(known({}));
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  const auto unknown = make_curve_model("no-such-kind", made_.data(), "", 1, 1, cancel_);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message().find("neither a file nor a kind"), std::string::npos)
      << unknown.error().message();
}

// Trains real models. Tasks that learn at the same time do not disturb each other; libtorch may add in another
// order.
TEST_F(LearningCurveTest, TheNumberOfThreadsChangesNothing) {
  std::map<std::string, nlohmann::json> kinds = {{"xgboost", {{"rounds", 20}}}};
#if TENSORSMITH_TORCH
  kinds["mlp"] = {{"epochs", 3}, {"width", 16}};
#endif
  options_.rounds = 2;
  learn::TrainingData data = made_.data();
  for (const auto& [kind, parameters] : kinds) {
    std::vector<CurveModel> models(1);
    models[0].name = kind;
    auto trainer = cost_model_kinds().make_trainer(kind, parameters);
    ASSERT_TRUE(trainer.ok()) << trainer.error().message();
    models[0].trainer = std::move(*trainer);
    auto pretrained = models[0].trainer->train(data, {});
    ASSERT_TRUE(pretrained.ok()) << pretrained.error().message();
    models[0].pretrained.push_back(std::move(*pretrained));
    options_.threads = 1;
    const auto one = run(models);
    ASSERT_TRUE(one.ok()) << one.error().message();
    options_.threads = 3;
    const auto three = run(models);
    ASSERT_TRUE(three.ok()) << three.error().message();
    ASSERT_EQ(one->curves.size(), three->curves.size());
    for (size_t i = 0; i < one->curves.size(); ++i) {
      const LearningCurve &a = one->curves[i], &b = three->curves[i];
      EXPECT_EQ(a.task, b.task);
      EXPECT_EQ(a.pretrained, b.pretrained);
      EXPECT_TRUE(std::isfinite(a.rmse[1])) << kind;
      EXPECT_NEAR(a.rmse[1], b.rmse[1], kind == "mlp" ? 1e-3 * a.rmse[1] : 0) << kind;
      EXPECT_TRUE(kind == "mlp" || a.top_half[1] == b.top_half[1]);
      EXPECT_EQ(std::isnan(a.top_half[0]), !a.pretrained);
    }
  }
}

// Expected values computed by hand, for two tasks and two seeds.
TEST(LearningCurves, MeansAndDeviations) {
  std::vector<LearningCurve> curves(5);
  const double values[] = {0.2, 0.4, 0.6, 1.0};
  for (size_t i = 0; i < 4; ++i) {
    curves[i].task = i < 2 ? "a" : "b";
    curves[i].seed = i % 2;
    curves[i].top_half = {NAN, values[i]};
  }
  curves[4].pretrained = true;
  curves[4].top_half = {7, 7};
  const CurveMean mean = mean_of_curves(curves, 0, false, &LearningCurve::top_half);
  ASSERT_EQ(mean.mean.size(), 2U);
  EXPECT_TRUE(std::isnan(mean.mean[0]));
  EXPECT_NEAR(mean.mean[1], 0.55, 1e-12);
  EXPECT_NEAR(mean.over_tasks[1], 0.5 / std::sqrt(2), 1e-12);  // 0.3 and 0.8
  EXPECT_NEAR(mean.over_seeds[1], 0.3 / std::sqrt(2), 1e-12);  // 0.4 and 0.7
}

}  // namespace
}  // namespace tensorsmith::lab::learning_curve_test
