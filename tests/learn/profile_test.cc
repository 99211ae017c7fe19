// Models of profiles: the small net, scores of rankings, and what profiles are worth on programs whose times follow from
// their counters.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/rng.h"
#include "feature/profile_schema_gpu.h"
#include "learn/profile/static_row.h"
#include "learn/profile/transfer.h"
#include "learn/profile/two_step.h"

namespace tensorsmith::learn {
namespace {

TEST(RankScores, OfRightWrongAndHalfRightOrders) {
  const std::vector<double> labels = {0, -1, -2, -3};
  const RankScores right = rank_scores(labels, labels);
  EXPECT_EQ(right.top_half, 1);
  EXPECT_EQ(right.misranked, 0);
  EXPECT_EQ(right.top1_gap, 0);
  EXPECT_EQ(right.rmse, 0);
  const std::vector<double> turned = {-3, -2, -1, 0};
  const RankScores wrong = rank_scores(labels, turned);
  EXPECT_EQ(wrong.top_half, 0);
  EXPECT_EQ(wrong.misranked, 1);
  EXPECT_NEAR(wrong.top1_gap, std::exp(3) - 1, 1e-12);
  const std::vector<double> mixed = {5, 2, 3, 1};
  EXPECT_EQ(rank_scores(labels, mixed).top_half, 0.5);
  EXPECT_NEAR(rank_scores(labels, mixed).misranked, 1.0 / 6, 1e-12);
}

std::map<std::string, double> counters_of(double instructions, double misses) {
  std::map<std::string, double> out;
  for (const auto& column : feature::kCpuProfileCounts) out[column.name()] = 0;
  for (const char* name : {"arithmetic_bytes", "hot_code", "workspace_bytes", "buffer_bytes"}) out[name] = 64;
  out["instructions"] = instructions;
  out["fma"] = instructions / 2;
  out["accesses"] = instructions;
  out["l1.misses"] = misses;
  return out;
}

TEST(ProfileRow, CountsAreThoseOfAMillionOperations) {
  const auto row = feature::cpu_profile_row(counters_of(3000, 30), 1e6);
  ASSERT_TRUE(row.ok());
  const feature::ColumnValues<feature::kCpuProfileColumns> x(*row);
  EXPECT_NEAR(x.quantity("instructions"), 3000, 1e-2);
  EXPECT_NEAR(x.quantity("l1.misses"), 30, 1e-4);
  EXPECT_NEAR(x["float_share"], 0.5, 1e-6);
  EXPECT_NEAR(x["l1.miss_share"], 0.01, 1e-6);
  EXPECT_EQ(x["l2.miss_share"], 0);
  const auto half = feature::cpu_profile_row(counters_of(6000, 60), 2e6);
  ASSERT_TRUE(half.ok());
  EXPECT_EQ((*half)[0], (*row)[0]);
  auto missing = counters_of(1, 1);
  missing.erase("l2.misses");
  const auto refused = feature::cpu_profile_row(missing, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().reason.find("l2.misses"), std::string::npos);
}

TEST(ProfileRow, OfNsightComputeTakesTheLeastLimitAndNoTimes) {
  std::map<std::string, double> counters = {{"launch__occupancy_limit_blocks", 32},
                                            {"launch__occupancy_limit_registers", 4},
                                            {"launch__occupancy_limit_shared_mem", 8},
                                            {"launch__occupancy_limit_warps", 16},
                                            {"launch__grid_size", 216},
                                            {"device__attribute_multiprocessor_count", 108},
                                            {"launch__block_size", 128},
                                            {"launch__waves_per_multiprocessor", 0.5},
                                            {"dram__bytes_read.sum", 7e6},
                                            {"gpu__time_duration.sum", 1e-3}};
  const auto row = feature::gpu_profile_row(counters, 1e6);
  ASSERT_TRUE(row.ok());
  const feature::ColumnValues<feature::kGpuProfileColumns> x(*row);
  EXPECT_EQ(x["occupancy_limit"], 4);
  EXPECT_NEAR(x.quantity("blocks_per_multiprocessor"), 2, 1e-6);
  EXPECT_EQ(x["block_share"], 0.5F);
  EXPECT_NEAR(x.quantity("dram__bytes_read.sum"), 7e6, 10);
  counters["gpu__time_duration.sum"] = 5;
  counters["dram__bytes.sum.per_second"] = 5;
  EXPECT_EQ(*feature::gpu_profile_row(counters, 1e6), *row);
  counters.erase("launch__grid_size");
  EXPECT_FALSE(feature::gpu_profile_row(counters, 1e6).ok());
}

// Two tasks of other sizes: seconds = operations x (instructions + 20 misses an operation); static features are noise.
ProfiledPrograms made_up(uint64_t seed, size_t tasks, size_t programs) {
  ProfiledPrograms out;
  Rng rng(seed);
  for (size_t t = 0; t < tasks; ++t) {
    const double operations = 1e6 * std::exp2(static_cast<double>(3 * t));
    out.tasks.push_back({"key" + std::to_string(t), "task" + std::to_string(t), "", operations, {}});
    for (size_t i = 0; i < programs; ++i) {
      ProfiledProgram program;
      program.task = t;
      program.record = std::to_string(t) + "." + std::to_string(i);
      const double instructions = std::exp2(-4 + 3 * rng.uniform()),
                   misses = std::exp2(-10 + 6 * rng.uniform());
      program.seconds = operations * 1e-9 * (instructions + 20 * misses);
      program.counters = counters_of(operations * instructions, operations * misses);
      const auto row = feature::cpu_profile_row(program.counters, operations);
      EXPECT_TRUE(row.ok());
      program.profile = *row;
      program.summary.resize(static_width());
      for (float& x : program.summary) x = static_cast<float>(rng.uniform());
      program.per_store.rows = 1;
      program.per_store.values.resize(feature::kPerStoreColumns.size());
      for (float& x : program.per_store.values) x = static_cast<float>(rng.uniform());
      out.programs.push_back(std::move(program));
    }
  }
  return out;
}

TEST(Transfer, CountersThatMakeTheTimeRankOtherTasks) {
  const ProfiledPrograms data = made_up(1, 2, 160);
  for (const Learner learner : {Learner::kXgboost, Learner::kMlp}) {
    TransferOptions options;
    options.learners = {learner};
    options.features = {FeatureSet::kSummary, FeatureSet::kProfile};
    options.draws = 10;
    options.seeds = 1;
    const auto rows = compare_features(data, options, nullptr);
    ASSERT_TRUE(rows.ok());
    ASSERT_EQ(rows->size(), 4U);
    for (const TransferRow& row : *rows) {
      if (row.features == FeatureSet::kProfile) {
        EXPECT_GT(row.mean.top_half, 0.78) << static_cast<int>(learner);
        EXPECT_LT(row.mean.misranked, 0.22);
      } else {
        EXPECT_NEAR(row.mean.top_half, 0.5, 0.15);
      }
    }
    const auto again = compare_features(data, options, nullptr);
    ASSERT_TRUE(again.ok());
    for (size_t i = 0; i < rows->size(); ++i) EXPECT_EQ((*again)[i].mean.rmse, (*rows)[i].mean.rmse);
  }
}

TEST(Transfer, FewProgramsAreAnError) {
  const auto rows = compare_features(made_up(2, 2, 63), {}, nullptr);
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(rows.error().code, ErrorCode::kInvalidArgument);
}

TEST(Importance, IsThatOfTheCountersThatMakeTheTime) {
  const ProfiledPrograms data = made_up(3, 1, 200);
  const auto found = importance(data, data.of_task(0), FeatureSet::kProfile, 0);
  ASSERT_TRUE(found.ok());
  double useful = 0, others = 0;
  for (size_t c = 0; c < found->size(); ++c) {
    const std::string name = feature::kCpuProfileColumns[c].name();
    const bool of_time =
        name == "instructions" || name == "fma" || name == "accesses" || name.starts_with("l1.miss");
    (of_time ? useful : others) += (*found)[c];
  }
  EXPECT_GT(useful, 0.5);
  EXPECT_LT(std::abs(others), 0.05);
}

TEST(TwoStep, AFileGivesTheSameModel) {
  const ProfiledPrograms data = made_up(4, 6, 30);
  TwoStepOptions options;
  options.rounds = options.latency_rounds = 10;
  for (const bool counters : {true, false}) {
    options.counters = counters;
    const auto model = train_two_step(data, options);
    ASSERT_TRUE(model.ok()) << model.error().message();
    const std::string path = ::testing::TempDir() + "/two_step_" + std::to_string(::getpid());
    ASSERT_TRUE((*model)->save(path).ok());
    const auto read = load_cost_model(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ((*read)->card().kind, "two-step");
    EXPECT_EQ((*read)->card().workloads.size(), 6U);
    ASSERT_TRUE((*read)->save(path + "_again").ok());
    EXPECT_EQ(std::filesystem::file_size(path), std::filesystem::file_size(path + "_again"));
    for (const char* end : {"", "_again"}) std::filesystem::remove(path + end);
  }
}

}  // namespace
}  // namespace tensorsmith::learn
