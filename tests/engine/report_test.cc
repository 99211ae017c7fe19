// Reports for known records, models and peers.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "cli_support.h"
#include "engine/report/report_peers.h"
#include "engine/report/report_records.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "search/plausible.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::engine::report_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

MATCHER_P2(Point, at, seconds, "") {
  return std::abs(arg.at_seconds - at) < 1e-9 && std::abs(arg.seconds - seconds) < 1e-12;
}

class ReportTest : public ::testing::Test {
 protected:
  // Adds a record of the task's untuned program (its trace is made unique by `number`), `at`
  // seconds after the first one.
  void add(const ir::Workload& workload, double at, double seconds, record::Reason reason,
           record::Outcome outcome = record::Outcome::kOk, const std::string& why = "") {
    const auto space = space::DesignSpace::build(workload, device_, {}).value();
    const std::string key = ir::structural_key(workload);
    ASSERT_TRUE(database_->add_device({device_.key(), device_}).ok());
    ASSERT_TRUE(database_->add_task({key, ir::print(workload), "task " + key.substr(0, 4), 2e6}).ok());
    record::Record record;
    record.task_key = key;
    record.device_key = device_.key();
    record.settings.threads = device_.cpu().cores;
    record.trace = outcome == record::Outcome::kOk && reason == record::Reason::kDefault
                       ? sched::print(space.to_trace(space.default_candidate()).value())
                       : sched::print(space.to_trace(space.sample(rng_)).value());
    record.result.outcome = outcome;
    record.result.reason = why;
    if (outcome == record::Outcome::kOk) record.result.seconds = {seconds};
    record.result.disturbance = 0.25;
    record.unix_ms = 1'700'000'000'000 + static_cast<int64_t>(std::llround(1e3 * at));
    record.candidate.reason = reason;
    record.candidate.strategy = "random";
    ASSERT_TRUE(database_->add({record}).ok());
  }
  Report report(const ReportFilter& filter = {}) {
    Report made;
    const Status added = add_records(*database_, filter, nullptr, made);
    EXPECT_TRUE(added.ok()) << added.error().message();
    return made;
  }

  testing::TemporaryDirectory folder_;
  std::unique_ptr<record::Database> database_ = record::Database::open(":memory:").value();
  const target::Device device_ = target::find_device("epyc-9654:threads=2").value();
  const ir::Workload first_ = test::standard::matmul(64, 64, 64),
                     second_ = test::standard::matmul(32, 64, 64);
  Rng rng_{20261126};
};

TEST_F(ReportTest, BestSoFarOfTasksAndOfTheirSumWithoutPauses) {
  using record::Reason;
  add(first_, 0, 4e-3, Reason::kDefault);
  add(second_, 2, 1e-3, Reason::kDefault);
  add(first_, 3, 3e-3, Reason::kPredicted);
  add(second_, 4, 2e-3, Reason::kRandom);
  add(first_, 4 + 3600, 1e-3, Reason::kPredicted);  // the next run, an hour later
  add(second_, 4 + 3600 + 5, 0.5e-3, Reason::kPredicted);
  const Report made = report();
  ASSERT_THAT(made.tasks, SizeIs(2));
  EXPECT_DOUBLE_EQ(made.tasks[0].untuned_seconds, 4e-3);
  EXPECT_DOUBLE_EQ(made.tasks[0].best_seconds, 1e-3);
  EXPECT_DOUBLE_EQ(made.tasks[1].best_seconds, 0.5e-3);
  EXPECT_EQ(made.tasks[1].best, 2U);
  EXPECT_EQ(made.tasks[1].strategy, "random");
  const auto runs = [&](const ReportTask& task) {
    std::vector<int> of;
    for (const ReportRecord& record : task.records) of.push_back(record.run);
    return of;
  };
  EXPECT_THAT(runs(made.tasks[0]), ElementsAre(0, 0, 1));
  EXPECT_THAT(runs(made.tasks[1]), ElementsAre(0, 0, 1));
  ASSERT_THAT(made.best_so_far, SizeIs(1));
  EXPECT_THAT(made.best_so_far[0],
              ElementsAre(Point(0, 5e-3), Point(3, 4e-3), Point(4, 2e-3), Point(9, 1.5e-3)));
  EXPECT_THAT(best_so_far(made, {{0, 3}, {1, 1}}),
              ElementsAre(Point(0, 13e-3), Point(3, 10e-3), Point(4, 4e-3), Point(9, 3.5e-3)));
}

TEST_F(ReportTest, LoopsOfTheFastestAndWhatItTouches) {
  add(first_, 0, 4e-3, record::Reason::kDefault);
  const Report made = report();
  ASSERT_THAT(made.tasks, SizeIs(1));
  EXPECT_THAT(made.tasks[0].loops, HasSubstr("for "));
  EXPECT_EQ(made.tasks[0].records[0].disturbance, 0.25);
  EXPECT_EQ(made.tasks[0].no_loops_because, "");
  EXPECT_DOUBLE_EQ(made.tasks[0].bytes, 3 * 64 * 64 * 4);
  // The program's text parses and is the program of the record's trace.
  EXPECT_TRUE(ir::parse_program(made.tasks[0].loops).ok());
  ASSERT_THAT(made.setups, SizeIs(1));
  ASSERT_TRUE(made.setups[0].device.has_value());
  const auto& roofs = made.setups[0].roofs;
  ASSERT_FALSE(roofs.empty());
  EXPECT_DOUBLE_EQ(roofs.front().flops_per_second, 1e9 * device_.peak_f32_gflops);
  EXPECT_DOUBLE_EQ(roofs.back().bytes_per_second, 1e9 * device_.memory_bandwidth_gbs);
}

TEST_F(ReportTest, FailuresByReasonAndWhatIsTooFastToBeTrue) {
  using record::Outcome;
  using record::Reason;
  add(first_, 0, 4e-3, Reason::kDefault);
  for (int i = 0; i < 3; ++i) add(first_, 1 + i, 0, Reason::kRandom, Outcome::kWrongOutput, "element 3");
  add(first_, 4, 0, Reason::kRandom, Outcome::kCrash, "SIGSEGV");
  const double least = search::implausible_below(first_, device_);
  add(first_, 5, least / 2, Reason::kRandom);
  const Report made = report();
  ASSERT_THAT(made.tasks, SizeIs(1));
  const ReportTask& task = made.tasks[0];
  ASSERT_THAT(task.failures, SizeIs(2));
  EXPECT_EQ(task.failures[0].reason, "element 3");
  EXPECT_EQ(task.failures[0].count, 3);
  EXPECT_EQ(task.failures[1].outcome, Outcome::kCrash);
  EXPECT_DOUBLE_EQ(task.best_seconds, 4e-3);
  EXPECT_FALSE(task.records.back().plausible);
}

TEST_F(ReportTest, OnlyWhatTheFilterTakes) {
  add(first_, 0, 4e-3, record::Reason::kDefault);
  add(second_, 0, 4e-3, record::Reason::kDefault);
  const std::string key = ir::structural_key(second_);
  ReportFilter filter{std::set<std::string>{key}};
  ASSERT_THAT(report(filter).tasks, SizeIs(1));
  EXPECT_EQ(report(filter).tasks[0].key, key);
  filter.device_key = device_.key();
  filter.settings.threads = device_.cpu().cores;
  EXPECT_THAT(report(filter).tasks, SizeIs(1));
  filter.settings.threads = device_.cpu().cores + 1;
  EXPECT_THAT(report(filter).tasks, SizeIs(0));
}

TEST_F(ReportTest, KernelsFindTheirRecords) {
  add(first_, 0, 4e-3, record::Reason::kDefault);
  add(second_, 0, 1e-3, record::Reason::kDefault);
  Report made = report();
  // Tasks with the same name and the same amount of work are distinguished by their times.
  made.tasks[1].name = made.tasks[0].name;
  ReportModel model;
  model.threads = device_.cpu().cores;
  for (const double seconds : {1.1e-3, 3.9e-3, 1.05e-3})
    model.kernels.push_back({made.tasks[0].name, {}, 0, seconds, 2e6, 0});
  model.kernels.push_back({"unknown", {}, 0, 1e-3, 2e6, 0});
  connect_records(made, model);
  EXPECT_EQ(model.kernels[0].place, 1U);
  EXPECT_EQ(model.kernels[1].place, 0U);
  EXPECT_FALSE(model.kernels[3].place.has_value());
  EXPECT_DOUBLE_EQ(model.estimate.untuned_seconds, 2 * 1e-3 + 4e-3);
  EXPECT_FALSE(model.end_to_end.has_value()) << "nobody ran the model";
  // The speed-up that the tuning run measured is not replaced by sums of records.
  ReportModel tuned;
  tuned.threads = device_.cpu().cores;
  tuned.estimate = {5e-3, 4e-3};
  tuned.end_to_end = Speedup{3e-3, 2e-3, 0.25};
  tuned.kernels = model.kernels;
  connect_records(made, tuned);
  EXPECT_EQ(tuned.estimate.untuned_seconds, 5e-3);
  EXPECT_EQ(tuned.end_to_end->ratio(), 1.5);
  model = {};
  model.threads = device_.cpu().cores + 1;  // records with other numbers of threads do not apply
  model.kernels.push_back({made.tasks[0].name, {}, 0, 1e-3, 2e6, 0});
  connect_records(made, model);
  EXPECT_FALSE(model.kernels[0].place.has_value());
}

TEST_F(ReportTest, PeersAreReadOrNamedAsDamaged) {
  const std::string path = folder_.file("peers.json");
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_peers(path);
  };
  const std::string row =
      R"({"model":"m","threads":2,"peer":"p 1.0","tensorsmith_ms":2,"peer_ms":3,"ratio":1.5,"ratio_p10":1.4,"ratio_p90":1.6})";
  const auto peers = read(R"({"processor":"x","results":[)" + row + "]}");
  ASSERT_TRUE(peers.ok());
  ASSERT_THAT(*peers, SizeIs(1));
  EXPECT_DOUBLE_EQ(peers->front().peer_seconds, 3e-3);
  EXPECT_EQ(peers->front().peer, "p 1.0");
  std::string broken = row;
  broken.replace(broken.find("1.5"), 3, "-10");
  EXPECT_THAT(read(R"({"results":[)" + row + "," + broken + "]}").error().message(), HasSubstr("results[1]"));
  EXPECT_THAT(read(R"({"results":[)" + broken + "]}").error().message(), HasSubstr("'ratio'"));
  EXPECT_EQ(read("[]").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read("").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read_peers(folder_.file("none")).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tensorsmith::engine::report_test
