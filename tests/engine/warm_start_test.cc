// Programs that were fast elsewhere: which of them a task begins with, how they are converted, and
// which source models are suitable.
#include "engine/tune/warm_start.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "cli_support.h"
#include "engine/model/load_model.h"
#include "engine/tune/prepare_tasks.h"
#include "engine/tune/source_models.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "search/kernel_class.h"
#include "search/pipeline.h"
#include "support/standard_workloads.h"

namespace tensorsmith::engine::warm_start_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

target::Device device(int vector_bytes, int cores) {
  return target::find_device("epyc-9654:threads=" + std::to_string(cores) +
                             (vector_bytes == 32 ? ":isa=avx2" : ""))
      .value();
}

graph::Task matmul_task(int64_t m, int64_t n, int64_t k) {
  graph::Task task;
  task.workload = test::standard::matmul(m, n, k);
  task.key = ir::structural_key(task.workload);
  task.name = "matmul_" + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  task.flops = ir::flop_count(task.workload);
  task.calls = 1;
  return task;
}

space::DesignSpace space_of(const graph::Task& task, const target::Device& device) {
  return space::DesignSpace::build(task.workload, device, {}).value();
}

class WarmStartTest : public ::testing::Test {
 protected:
  WarmStartTest() : database_(record::Database::open(folder_.file("a.db")).value()) {}

  // Adds a random candidate of the task, recorded with the given time.
  space::Candidate add(const graph::Task& task, const target::Device& on, double seconds,
                       record::Reason reason = record::Reason::kPredicted,
                       const std::string& other_trace = "") {
    EXPECT_TRUE(database_->add_device({on.key(), on}).ok());
    EXPECT_TRUE(database_->add_task({task.key, ir::print(task.workload), task.name, task.flops}).ok());
    const auto space = space_of(task, on);
    space::Candidate candidate =
        reason == record::Reason::kDefault ? space.default_candidate() : space.sample(rng_);
    while (!space.check(candidate).ok()) candidate = space.sample(rng_);
    record::Record record;
    record.task_key = task.key;
    record.device_key = on.key();
    record.settings.threads = on.compute_units();
    record.trace = other_trace.empty() ? sched::print(space.to_trace(candidate).value()) : other_trace;
    record.result.seconds = {seconds};
    record.candidate.reason = reason;
    record.candidate.point = search::to_point(candidate);
    EXPECT_TRUE(database_->add({record}).ok());
    return candidate;
  }
  WarmStart known() {
    WarmStart warm_start;
    const Status added = warm_start.add_database(*database_, "a.db");
    EXPECT_TRUE(added.ok()) << added.error().message();
    return warm_start;
  }
  static std::vector<double> seconds_of(const std::vector<SeededCandidate>& seeds) {
    std::vector<double> seconds;
    for (const auto& seed : seeds) seconds.push_back(seed.source.seconds);
    return seconds;
  }

  testing::TemporaryDirectory folder_;
  std::unique_ptr<record::Database> database_;
  Rng rng_{20261125};
};

TEST_F(WarmStartTest, TheSameTaskFirstAndTheSameKindOfDeviceBeforeOthers) {
  const auto wide = device(64, 1), narrow = device(32, 1), two = device(32, 2);
  const auto task = matmul_task(64, 64, 64), other = matmul_task(128, 64, 64);
  const auto own = add(task, narrow, 4e-3);
  add(task, two, 2e-3);
  add(task, wide, 1e-3);
  add(other, narrow, 9e-3);
  const auto seeds = known().seeds(*prepare_task(task, narrow).value(), {});
  ASSERT_FALSE(seeds.empty());
  EXPECT_EQ(seeds.front().candidate, own);  // on the same device it is not changed
  EXPECT_TRUE(seeds.front().source.same_task);
  // Programs that do not fit the other device's space are left out, so the rest is an ordered
  // subset of these.
  const std::vector<double> order{4e-3, 2e-3, 1e-3, 9e-3};
  const auto seconds = seconds_of(seeds);
  EXPECT_TRUE(
      std::includes(order.begin(), order.end(), seconds.begin(), seconds.end(), [&](double a, double b) {
        return std::find(order.begin(), order.end(), a) < std::find(order.begin(), order.end(), b);
      }));
  for (const auto& seed : seeds) EXPECT_TRUE(space_of(task, narrow).check(seed.candidate).ok());
}

TEST_F(WarmStartTest, OtherTasksOfTheClassNearestFirst) {
  const auto on = device(32, 1);
  const auto task = matmul_task(96, 96, 96);
  add(matmul_task(768, 768, 768), on, 1e-3);
  add(matmul_task(96, 96, 128), on, 3e-3);
  add(matmul_task(96, 192, 128), on, 2e-3);
  graph::Task unlike;  // another class
  unlike.workload = test::standard::dense_bias_relu(96, 96, 96);
  unlike.key = ir::structural_key(unlike.workload);
  unlike.name = "dense";
  unlike.flops = ir::flop_count(unlike.workload);
  add(unlike, on, 1e-4);
  const auto warm_start = known();
  const auto prepared = prepare_task(task, on).value();
  const auto seeds = warm_start.seeds(*prepared, {});
  EXPECT_THAT(seconds_of(seeds), ElementsAre(3e-3, 2e-3, 1e-3));
  for (const auto& seed : seeds) {
    EXPECT_TRUE(prepared->space().check(seed.candidate).ok());
    EXPECT_FALSE(seed.source.same_task);
  }
  EXPECT_THAT(warm_start.seeds(*prepared, {.other_tasks = 1}), SizeIs(1));
  EXPECT_THAT(warm_start.seeds(*prepared, {.other_tasks = 0}), IsEmpty());
  const std::set<std::string> far{matmul_task(768, 768, 768).key};
  EXPECT_THAT(seconds_of(warm_start.seeds(*prepared, {.only_tasks = far})), ElementsAre(1e-3));
}

TEST_F(WarmStartTest, RecordsThatCannotBeTrueOrNoLongerHoldAreLeftOut) {
  const auto on = device(32, 1);
  const auto task = matmul_task(96, 96, 96), other = matmul_task(96, 96, 128);
  add(other, on, 1e-12);  // faster than the device's limit
  add(other, on, 2e-3, record::Reason::kPredicted,
      "split stage=2 iter=0 lengths=[3] inner=true tail=predicate\n");
  add(other, on, 3e-3);
  EXPECT_THAT(seconds_of(known().seeds(*prepare_task(task, on).value(), {})), ElementsAre(3e-3));
}

TEST_F(WarmStartTest, FilesThatAreNone) {
  WarmStart warm_start;
  EXPECT_EQ(warm_start.add_file(folder_.file("none")).error().code, ErrorCode::kNotFound);
  std::ofstream(folder_.file("text")) << "no record\n";
  EXPECT_EQ(warm_start.add_file(folder_.file("text")).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(warm_start.empty());
}

TEST_F(WarmStartTest, DatabasesAndExportsGiveTheSame) {
  const auto on = device(32, 1);
  const auto task = matmul_task(96, 96, 96);
  add(matmul_task(96, 96, 128), on, 3e-3);
  add(matmul_task(96, 192, 128), on, 2e-3);
  ASSERT_TRUE(database_->export_jsonl(folder_.file("export.jsonl"), {.fastest = 3}).ok());
  for (const char* name : {"a.db", "export.jsonl"}) {
    WarmStart warm_start;
    ASSERT_TRUE(warm_start.add_file(folder_.file(name)).ok());
    EXPECT_THAT(seconds_of(warm_start.seeds(*prepare_task(task, on).value(), {})), ElementsAre(3e-3, 2e-3))
        << name;
  }
}

// Computed by hand: class shares 3/4 (matmul) and 1/4 (dense, which no source has).
TEST_F(WarmStartTest, SourceModelsAreRankedByGainOrByThePublishedHeuristic) {
  const auto on = device(32, 1);
  const auto target = matmul_task(96, 96, 96), near = matmul_task(96, 96, 192),
             far = matmul_task(192, 192, 768), farther = matmul_task(768, 768, 768);
  graph::Task unlike;
  unlike.workload = test::standard::dense_bias_relu(96, 96, 96);
  unlike.key = ir::structural_key(unlike.workload);
  add(near, on, 4e-3, record::Reason::kDefault);
  add(near, on, 2e-3);
  for (const auto& task : {far, farther}) {
    add(task, on, 9e-3, record::Reason::kDefault);
    add(task, on, 8e-3);
  }
  const auto warm_start = known();
  const std::vector<SourceModel> sources{
      {"large", {far.key, farther.key}}, {"near", {near.key}}, {"none", {"?"}}};
  const auto by_gain =
      rank_sources({target, unlike}, {3e-3, 1e-3}, sources, warm_start, SourceRanking::kGain);
  ASSERT_THAT(by_gain, SizeIs(3));
  EXPECT_EQ(by_gain[0].name, "near");
  EXPECT_NEAR(by_gain[0].gain, 1 / (0.75 / std::pow(2.0, 1 / (1 + std::log(2.0))) + 0.25), 1e-9);
  EXPECT_NEAR(by_gain[0].covered, 0.75, 1e-9);
  EXPECT_EQ(by_gain[2].name, "none");
  EXPECT_EQ(by_gain[2].gain, 1);
  const auto heuristic =
      rank_sources({target, unlike}, {3e-3, 1e-3}, sources, warm_start, SourceRanking::kHeuristic);
  EXPECT_EQ(heuristic[0].name, "large");  // it has more programs
  EXPECT_NEAR(heuristic[0].heuristic, 0.75 * std::sqrt(4.0), 1e-9);
  EXPECT_NEAR(heuristic[1].heuristic, 0.75 * std::sqrt(2.0), 1e-9);
}

// The shipped records can be loaded and contain layers of ResNet.
TEST(ShippedStarter, HasFastProgramsOfTheZoo) {
  WarmStart warm_start;
  ASSERT_TRUE(warm_start.add_file(TENSORSMITH_SOURCE_DIR "/models/starter.jsonl.zst").ok());
  const auto model = load_model({.path = "zoo:resnet50"});
  ASSERT_TRUE(model.ok());
  const target::Device device = target::find_device("epyc-9654:threads=1").value();
  size_t seeded = 0;
  for (const auto& task : model->partition.tasks)
    seeded += warm_start.seeds(*prepare_task(task, device).value(), {}).empty() ? 0 : 1;
  // Most seeds are for identical tasks; the other tasks' classes occur with other shapes.
  EXPECT_GT(seeded, model->partition.tasks.size() / 2);
}

}  // namespace
}  // namespace tensorsmith::engine::warm_start_test
