// Models of profiles: the small net, scores of rankings, and the value of profiles for programs
// whose times are a function of their counters.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "base/rng.h"
#include "base/scratch_directory.h"
#include "feature/profile_schema_gpu.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "learn/latency/kinds.h"
#include "learn/latency/model_file.h"
#include "learn/profile/profile_model.h"
#include "learn/profile/static_row.h"
#include "learn/profile/transfer.h"
#include "learn/profile/two_step.h"
#include "record/database.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::learn::profile_test {
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

// Twelve profiled programs of a GEMM, of which three can be used: two that were timed in full and one of the
// seven that looked slow, since it was timed again.
TEST(ProfiledPrograms, WhatIsLeftOutIsCountedByReason) {
  const ScratchDirectory folder = ScratchDirectory::create("tensorsmith-profiled").value();
  const auto device = target::find_device("xeon-8358:threads=1").value();
  const auto other = target::find_device("epyc-9654:threads=1").value();
  const ir::Workload workload = test::standard::matmul(64, 64, 64);
  const auto space = space::DesignSpace::build(workload, device, {}).value();
  const auto database = record::Database::open(folder.file("records.db")).value();
  const std::string task = ir::structural_key(workload);
  ASSERT_TRUE(database->add_task({task, ir::print(workload), "matmul", ir::flop_count(workload)}).ok());
  for (const auto& one : {device, other}) ASSERT_TRUE(database->add_device({one.key(), one}).ok());
  Rng rng(1);
  std::set<std::string> traces;
  while (traces.size() < 12) traces.insert(sched::print(space.to_trace(space.sample(rng)).value()));
  int number = 0;
  for (const std::string& trace : traces) {
    record::Record record;
    record.task_key = task;
    record.device_key = number == 2 ? other.key() : device.key();
    record.settings = {1, number == 3 || number == 4};
    record.trace = trace;
    record.result.seconds = {1e-3};
    record.result.runs_per_repeat = 1;
    record.result.stopped_early = number >= 5;
    ASSERT_TRUE(database->add(std::vector{record}).ok());
    std::vector<record::Profile> profiles = {{record.key(), "made up", counters_of(1e5, 1e3)}};
    if (number == 5) profiles.push_back({record.key(), "timing", {{"seconds", 2e-3}}});
    if (number == 6) profiles.push_back({record.key(), "one program's", counters_of(1e5, 1e3)});
    ASSERT_TRUE(database->add(profiles).ok());
    ++number;
  }
  const auto read = read_profiled_programs({folder.file("records.db")}, "made up", "timing");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->programs.size(), 3U);
  ASSERT_EQ(read->left_out.size(), 3U);
  for (const char* line : {"6 of 12 profiled programs are left out: they were timed once only",
                           "2 of 12 profiled programs are left out: they were measured with emptied caches",
                           "1 of 12 profiled programs are left out: they ran on another device"})
    EXPECT_EQ(std::ranges::count_if(read->left_out, [&](const auto& l) { return l.starts_with(line); }), 1)
        << line;
  const auto none = read_profiled_programs({folder.file("records.db")}, "other", "timing");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().reason.find("run `tensorsmith profile`"), std::string::npos);
  const auto unusable = read_profiled_programs({folder.file("records.db")}, "one program's", "timing");
  ASSERT_FALSE(unusable.ok());
  EXPECT_NE(unusable.error().reason.find("1 of 1 profiled programs are left out"), std::string::npos);
}

// Tasks of different sizes: seconds = operations x (instructions + 20 misses per operation); static
// features are noise.
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
    options.sets.draws = 10;
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
    const auto read = product_kinds().load(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ((*read)->card().kind, "two-step");
    EXPECT_EQ((*read)->card().workloads.size(), 6U);
    ASSERT_TRUE((*read)->save(path + "_again").ok());
    EXPECT_EQ(std::filesystem::file_size(path), std::filesystem::file_size(path + "_again"));
    for (const char* end : {"", "_again"}) std::filesystem::remove(path + end);
  }
}

// Trains a model of one task's programs, as `train --features profile --model profile --task` does.
Result<std::unique_ptr<CostModel>> trained_on(ProfiledPrograms data, size_t task, Learner learner) {
  const std::string key = data.tasks[task].key;
  data.profiler = "made up";
  data.keep([&](const StoredWorkload& one) { return one.key == key; });
  return train_profile_model(data, {.learner = learner, .seed = 0, .command = "test"});
}

std::vector<double> seconds_of(const CostModel& model, const ProfiledPrograms& data) {
  std::vector<ProgramQuery> queries;
  for (size_t i = 0; i < data.programs.size(); ++i) queries.push_back(data.query(i));
  const auto predictions = model.predict(queries);
  EXPECT_TRUE(predictions.ok());
  std::vector<double> out;
  for (const Prediction& prediction : *predictions) out.push_back(prediction.seconds);
  return out;
}

class ProfileModelFile : public ::testing::TestWithParam<Learner> {
 protected:
  std::string path_ = ::testing::TempDir() + "/profile_model_" + std::to_string(::getpid());
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_P(ProfileModelFile, PredictsAsTheModelThatWasSaved) {
  const ProfiledPrograms data = made_up(5, 2, 100);
  const auto model = trained_on(data, 0, GetParam());
  ASSERT_TRUE(model.ok()) << model.error().message();
  ASSERT_TRUE((*model)->save(path_).ok());
  const auto read = product_kinds().load(path_, QueryProfiles::kGiven);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(seconds_of(**read, data), seconds_of(**model, data));
  EXPECT_TRUE((*read)->ranks_only());
  EXPECT_EQ((*read)->card().kind, "profile");
  EXPECT_EQ((*read)->card().workloads, std::vector<std::string>{"key0"});
  EXPECT_EQ((*read)->card().records, 100);
  EXPECT_EQ((*read)->card().command, "test");
  EXPECT_NE((*read)->card().parameters.find("made up"), std::string::npos);
  // Programs that have not run have no counters.
  const auto refused = product_kinds().load(path_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().reason.find("two-step"), std::string::npos);
  ProgramQuery query = data.query(0);
  query.profile = nullptr;
  EXPECT_FALSE((*read)->predict({&query, 1}).ok());
}

TEST_P(ProfileModelFile, DamageIsAnError) {
  const auto model = trained_on(made_up(6, 1, 70), 0, GetParam());
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE((*model)->save(path_).ok());
  std::stringstream whole;
  whole << std::ifstream(path_, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  Rng rng(7);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = bytes;
    const size_t at = rng.below(bytes.size());
    if (i % 2 == 0) {
      damaged.resize(at);
    } else {
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << rng.below(8)));
    }
    std::ofstream(path_, std::ios::binary) << damaged;
    const auto read = product_kinds().load(path_, QueryProfiles::kGiven);
    ASSERT_FALSE(read.ok()) << (i % 2 == 0 ? "cut at " : "changed at ") << at;
    EXPECT_EQ(read.error().place, path_);
  }
  // A file that is complete, but lacks data that the model needs.
  const auto file = parse_model_file(bytes);
  ASSERT_TRUE(file.ok());
  for (size_t left_out = 0; left_out < file->tensors.size(); ++left_out) {
    ModelFile other = *file;
    other.tensors.erase(other.tensors.begin() + static_cast<std::ptrdiff_t>(left_out));
    ASSERT_TRUE(write_model_file(other, path_).ok());
    const auto read = product_kinds().load(path_, QueryProfiles::kGiven);
    ASSERT_FALSE(read.ok()) << file->tensors[left_out].name;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

// The two ways in which a user can get the same figures.
TEST_P(ProfileModelFile, RanksAsTransferSays) {
  const ProfiledPrograms data = made_up(8, 3, 90);
  TransferOptions options;
  options.learners = {GetParam()};
  options.features = {FeatureSet::kProfile};
  options.seeds = 1;
  const auto rows = compare_features(data, options, nullptr);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 6U);
  for (size_t task = 0; task < 3; ++task) {
    const auto model = trained_on(data, task, GetParam());
    ASSERT_TRUE(model.ok());
    ASSERT_TRUE((*model)->save(path_).ok());
    const auto read = product_kinds().load(path_, QueryProfiles::kGiven);
    ASSERT_TRUE(read.ok());
    const auto rankings = rank_tasks(data, **read, options.sets);
    ASSERT_TRUE(rankings.ok());
    for (const TransferRow& row : *rows) {
      if (row.train != task) continue;
      const RankScores& scores = (*rankings)[row.test].scores;
      EXPECT_NEAR(scores.top_half, row.mean.top_half, 1e-12);
      EXPECT_NEAR(scores.misranked, row.mean.misranked, 1e-12);
      EXPECT_NEAR(scores.top1_gap, row.mean.top1_gap, 1e-12);
      EXPECT_NEAR(scores.rmse, row.mean.rmse, 1e-9);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Learners, ProfileModelFile, ::testing::Values(Learner::kXgboost, Learner::kMlp),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST(ProfileModel, ItsScaleIsThatOfTheTrainingPart) {
  ProfiledPrograms data = made_up(9, 1, 50);
  // The first fifth of the random order is for validation.
  std::vector<size_t> order(50);
  std::iota(order.begin(), order.end(), size_t{0});
  Rng rng(0);
  order = shuffled(order, rng);
  data.programs[order[3]].profile[0] = -1e6;
  float least = data.programs[order[10]].profile[0];
  for (size_t i = 10; i < 50; ++i) least = std::min(least, data.programs[order[i]].profile[0]);
  const auto model = trained_on(data, 0, Learner::kMlp);
  ASSERT_TRUE(model.ok());
  const std::string path = ::testing::TempDir() + "/profile_scale_" + std::to_string(::getpid());
  ASSERT_TRUE((*model)->save(path).ok());
  const auto file = read_model_file(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(file.ok());
  const auto low = file->values<double>("low", {-1});
  ASSERT_TRUE(low.ok());
  EXPECT_EQ((*low)[0], static_cast<double>(least));
}

TEST(ProfileModel, OtherCountersAreRefused) {
  const ProfiledPrograms data = made_up(10, 1, 64);
  const auto model = trained_on(data, 0, Learner::kXgboost);
  ASSERT_TRUE(model.ok());
  const std::vector<float> of_gpu(26);
  ProgramQuery query = data.query(0);
  query.profile = &of_gpu;
  const auto predicted = (*model)->predict({&query, 1});
  ASSERT_FALSE(predicted.ok());
  EXPECT_EQ(predicted.error().code, ErrorCode::kMismatch);
  ProfiledPrograms gpu = data;
  for (auto& program : gpu.programs) program.summary.clear();
  const auto two_step = train_two_step(gpu, {});
  ASSERT_FALSE(two_step.ok());
  EXPECT_NE(two_step.error().reason.find("--model profile"), std::string::npos);
}

}  // namespace
}  // namespace tensorsmith::learn::profile_test
