// Models that learn during a search, and the selection of a search's model.
#include "learn/online/online.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <fstream>

#include "base/rng.h"
#include "lab/kinds/kinds.h"
#include "learn/search_model.h"
#include "record/disturbance.h"
#include "support/quality.h"

namespace tensorsmith::learn::online_test {
namespace {

using ::testing::HasSubstr;

constexpr size_t kTasks = 3;
// Logarithm of the prior's error for each task as a whole.
constexpr std::array<double, kTasks> kTaskBias = {0.7, -0.4, 1.5};

// Predicts the value of a column of the first row.
class PriorModel final : public CostModel {
 public:
  explicit PriorModel(double log_sigma) : log_sigma_(log_sigma) {}
  Result<std::vector<Prediction>> predict(std::span<const ProgramQuery> queries) const override {
    std::vector<Prediction> out;
    for (const auto& query : queries)
      out.push_back({std::exp(static_cast<double>(query.rows->row(0)[1])), log_sigma_});
    return out;
  }
  ModelInputs inputs() const override { return {.rows = true}; }
  const ModelCard& card() const override { return card_; }
  Status save(const std::string&) const override { return {}; }

 private:
  double log_sigma_;
  ModelCard card_;
};

// log seconds = the prior's value + the task's bias + a function of three other columns.
struct Programs {
  std::array<StoredWorkload, kTasks> tasks;
  std::vector<feature::FeatureMatrix> matrices;
  std::vector<MeasuredProgram> measured;

  Programs(uint64_t seed, size_t count) : matrices(count) {
    Rng rng(seed);
    for (size_t p = 0; p < count; ++p) {
      feature::FeatureMatrix& matrix = matrices[p];
      matrix.rows = 2;
      matrix.values.assign(2 * static_cast<size_t>(feature::kPerStoreWidth), 0.0F);
      for (float& value : matrix.values) value = static_cast<float>(rng.uniform());
      matrix.values[1] = static_cast<float>(-10 + 2 * rng.uniform());
      const auto row = matrix.row(0);
      const double wrong = (row[5] > 0.5F ? 0.8 : 0) + (row[9] > 0.7F && row[11] > 0.4F ? -0.9 : 0);
      const double log_seconds = static_cast<double>(row[1]) + kTaskBias[p % kTasks] + wrong;
      measured.push_back({{&tasks[p % kTasks], nullptr, nullptr, nullptr, &matrix}, std::exp(log_seconds)});
    }
  }
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // Root of the mean squared error of log seconds for the programs of `others`, as tasks of this
  // object.
  double error_of(const CostModel& model, const Programs& others) const {
    double sum = 0;
    for (size_t p = 0; p < others.measured.size(); ++p) {
      ProgramQuery query = others.measured[p].program;
      query.workload = &tasks[p % kTasks];
      const auto predicted = model.predict(std::span(&query, 1));
      EXPECT_TRUE(predicted.ok());
      const double error = std::log(others.measured[p].seconds / predicted->front().seconds);
      sum += error * error;
    }
    return std::sqrt(sum / static_cast<double>(others.measured.size()));
  }
};

TEST(ResidualModelTest, LearnsWhatThePriorGetsWrong) {
  const Programs seen(test::test_seed(1), 600), unseen(test::test_seed(2), 300);
  const auto model = make_residual_model(std::make_unique<PriorModel>(0.3));
  EXPECT_TRUE(model->ready());
  const double before = seen.error_of(*model, unseen);
  EXPECT_GT(before, 0.9);  // at least sqrt(mean of the squared biases)
  ASSERT_TRUE(model->update(seen.measured).ok());
  test::expect_above("improvement", before / seen.error_of(*model, unseen), 3);
}

// With few measurements, the means of the tasks are corrected before the trees are useful.
TEST(ResidualModelTest, AFewMeasurementsCorrectTheTasks) {
  const Programs seen(3, kMinTrainingPrograms), unseen(4, 300);
  const auto model = make_residual_model(std::make_unique<PriorModel>(0.3));
  const double before = seen.error_of(*model, unseen);
  ASSERT_TRUE(model->update(seen.measured).ok());
  EXPECT_LT(seen.error_of(*model, unseen), 0.7 * before);
}

// Others took five sixths of the machine while half of the programs were measured.
TEST(ResidualModelTest, DisturbedTimesWeighLess) {
  Programs seen(test::test_seed(8), 600);
  const Programs unseen(test::test_seed(9), 300);
  for (size_t p = 0; p < seen.measured.size(); p += 2) seen.measured[p].seconds *= 6;
  const auto error = [&] {
    const auto model = make_residual_model(std::make_unique<PriorModel>(0.3));
    EXPECT_TRUE(model->update(seen.measured).ok());
    return seen.error_of(*model, unseen);
  };
  const double equal = error();
  for (size_t p = 0; p < seen.measured.size(); p += 2) seen.measured[p].weight = record::trust(5.0 / 6);
  EXPECT_LT(error(), 0.5 * equal);
}

TEST(ResidualModelTest, SaysHowFarItWasOff) {
  const Programs seen(5, 400);
  const auto model = make_residual_model(std::make_unique<PriorModel>(0.3));
  const auto sigma = [&] {
    return model->predict(std::span(&seen.measured[0].program, 1))->front().log_sigma;
  };
  EXPECT_DOUBLE_EQ(sigma(), 0.3);
  // The second half is new to a model that has learned from the first half, so its errors there
  // count.
  ASSERT_TRUE(model->update(std::span(seen.measured).first(200)).ok());
  EXPECT_DOUBLE_EQ(sigma(), 0.3);
  const auto half = std::span(seen.measured).last(200);
  double squares = 0;
  for (const auto& measured : half) {
    const double error =
        std::log(measured.seconds / model->predict(std::span(&measured.program, 1))->front().seconds);
    squares += error * error;
  }
  ASSERT_TRUE(model->update(seen.measured).ok());
  EXPECT_NEAR(sigma(), std::sqrt((16 * 0.09 + squares) / (16 + 200)), 1e-9);
}

TEST(ResidualModelTest, FailedProgramsAreExpectedToBeSlow) {
  Programs seen(6, 600);
  for (auto& measured : seen.measured)
    if (measured.program.rows->row(0)[20] > 0.8F) measured.seconds = INFINITY;
  const auto model = make_residual_model(std::make_unique<PriorModel>(0.3));
  ASSERT_TRUE(model->update(seen.measured).ok());
  double failed = 0, good = 0, failures = 0, goods = 0;
  for (const auto& measured : seen.measured) {
    const double residual = std::log(model->predict(std::span(&measured.program, 1))->front().seconds) -
                            static_cast<double>(measured.program.rows->row(0)[1]);
    const bool bad = std::isinf(measured.seconds);
    (bad ? failed : good) += residual;
    (bad ? failures : goods) += 1;
  }
  EXPECT_GT(failed / failures, good / goods + 0.5);
}

// Programs that the prior considers impossible stay so for any measurements, and do not disturb the
// others.
TEST(ResidualModelTest, WhatThePriorCallsImpossibleStaysSo) {
  Programs seen(7, 600);
  const Programs unseen(8, 300);
  for (size_t p = 0; p < 600; p += 10) seen.matrices[p].values[1] = INFINITY;
  const auto model = make_residual_model(std::make_unique<PriorModel>(0.3));
  const double before = seen.error_of(*model, unseen);
  ASSERT_TRUE(model->update(seen.measured).ok());
  test::expect_above("improvement", before / seen.error_of(*model, unseen), 3);
  EXPECT_EQ(model->predict(std::span(&seen.measured[0].program, 1))->front().seconds, INFINITY);
}

target::Device device() { return target::find_device("xeon-8358").value(); }

TEST(SearchModelTest, ByNameOrNothing) {
  EXPECT_EQ(make_search_model({.model = "none"}, device()).value(), nullptr);
  const auto xgboost = make_search_model({.model = "xgboost"}, device()).value();
  EXPECT_TRUE(xgboost->learns());
  EXPECT_FALSE(xgboost->ready());
  const CostModelKinds* kinds = &lab::cost_model_kinds();
  for (const char* kind : {"draft", "roofline", "random"}) {
    EXPECT_TRUE(make_search_model({.model = kind, .kinds = kinds}, device()).value()->learns()) << kind;
    EXPECT_FALSE(
        make_search_model({.model = kind, .frozen = true, .kinds = kinds}, device()).value()->learns())
        << kind;
  }
}

TEST(SearchModelTest, BadNamesSayWhatToDo) {
  const auto expect_error = [](const SearchModelOptions& options, const std::string& text) {
    const auto model = make_search_model(options, device());
    ASSERT_FALSE(model.ok()) << options.model;
    EXPECT_THAT(model.error().message(), HasSubstr(text));
  };
  const CostModelKinds* kinds = &lab::cost_model_kinds();
  expect_error({.model = "no-such-file"}, "neither a file nor one of shipped, roofline, xgboost, none");
  expect_error({.model = "draft"}, "neither a file nor one of shipped, roofline, xgboost, none");
  expect_error({.model = "no-such-file", .kinds = kinds},
               "neither a file nor one of shipped, roofline, xgboost, random, draft, none");
  expect_error({.model = "none", .frozen = true}, "leave it out");
  expect_error({.model = "cdmpp", .kinds = kinds}, "tensorsmith train --model cdmpp");
  expect_error({.model = "tensorsmith"}, "must be trained before");
  expect_error({.model = "xgboost", .frozen = true}, "--frozen");
  const std::string path = ::testing::TempDir() + "/search_model_test.safetensors";
  std::ofstream(path) << "no model";
  expect_error({.model = path}, path);
}

// The shipped models are priors; those for GPUs only are not used for a search on a CPU.
TEST(SearchModelTest, ShippedModelsBecomePriors) {
  const std::string models = TENSORSMITH_SOURCE_DIR "/models/";
  const auto cpu = make_search_model({.model = models + "cpu.safetensors"}, device());
  ASSERT_TRUE(cpu.ok()) << cpu.error().message();
  EXPECT_TRUE((*cpu)->ready());
  EXPECT_TRUE((*cpu)->learns());
  EXPECT_FALSE((*cpu)->ranks_only());
  EXPECT_TRUE((*cpu)->inputs().trace);
  // A change of the estimate's constants or parts needs this model trained again (models/README.md).
  const auto correction = make_search_model({.model = models + "cpu_correction.safetensors"}, device());
  ASSERT_TRUE(correction.ok()) << correction.error().message();
  EXPECT_TRUE((*correction)->ready() && (*correction)->learns() && (*correction)->corrects_estimate());
  // The trees that learn during the search read no more than the model, so no schedule is made.
  EXPECT_TRUE((*correction)->inputs().only_parts());
  const auto shipped = make_search_model({}, device());
  ASSERT_TRUE(shipped.ok()) << shipped.error().message();
  EXPECT_EQ((*shipped)->card().store_hash, (*correction)->card().store_hash);
  target::Device gpu = *target::find_device("v100");
  const auto on_gpu = make_search_model({}, gpu);
  ASSERT_TRUE(on_gpu.ok()) << on_gpu.error().message();
  EXPECT_EQ((*on_gpu)->card().kind, "xgboost");
}

}  // namespace
}  // namespace tensorsmith::learn::online_test
