// Schedules that compilation takes from a record database, and its messages about unusable records.
#include "engine/tune/schedules.h"

#include <gtest/gtest.h>

#include <tuple>

#include "cli_support.h"
#include "ir/structural.h"
#include "record/database.h"
#include "record/energy.h"
#include "support/standard_workloads.h"

namespace tensorsmith::engine::schedules_test {
namespace {

class RecordingSink final : public LogSink {
 public:
  void log(LogLevel level, std::string_view message) override {
    EXPECT_EQ(level, LogLevel::kWarning);
    messages.emplace_back(message);
  }
  std::vector<std::string> messages;
};

class TunedSchedules : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = target::find_device("local:threads=1");
    ASSERT_TRUE(device.ok());
    device_ = std::move(*device);
    for (const int64_t n : {8, 16, 24}) {
      graph::Task task;
      task.workload = test::standard::matmul(n, n, n);
      task.key = ir::structural_key(task.workload);
      task.name = "matmul_" + std::to_string(n);
      partition_.tasks.push_back(std::move(task));
    }
    schedules_.resize(partition_.tasks.size());
  }

  // Writes a database with one record per task, with these traces.
  void write_records(const std::vector<std::string>& traces, bool flush_cache = false, double seconds = 0.5) {
    const auto db = record::Database::open(database_);
    ASSERT_TRUE(db.ok());
    for (size_t t = 0; t < traces.size(); ++t) {
      record::Record record;
      record.task_key = partition_.tasks[t].key;
      record.device_key = device_.key();
      record.trace = traces[t];
      record.settings.flush_cache = flush_cache;
      record.result.seconds = {seconds};
      ASSERT_TRUE((*db)->add({record}).ok());
    }
  }

  target::Device device_;
  graph::Partition partition_;
  std::vector<TaskSchedule> schedules_;
  testing::TemporaryDirectory directory_;
  std::string database_ = directory_.file("records.db");
  RecordingSink log_;
};

// Stages of a matmul: A, B, C; the axes of C: i, j, k.
constexpr const char* kGood = "split stage=2 iter=0 lengths=[4] inner=true tail=predicate\n";
constexpr const char* kOtherScheduler = "transmogrify stage=2 iter=0\n";
constexpr const char* kOtherWorkload = "split stage=2 iter=17 lengths=[4] inner=true tail=predicate\n";

TEST_F(TunedSchedules, AreTakenFromTheDatabase) {
  write_records({kGood, kGood});  // nothing was measured for the third task
  const auto found = apply_best_records(partition_, device_, database_, {}, schedules_, log_);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, 2U);
  for (const size_t t : {0, 1}) {
    EXPECT_EQ(sched::print(schedules_[t].trace), kGood);
    EXPECT_EQ(schedules_[t].measured_seconds, 0.5);
  }
  EXPECT_TRUE(schedules_[2].trace.steps.empty());
  EXPECT_TRUE(log_.messages.empty()) << log_.messages.front();
}

// Records with cold caches are used only if there are no others, however fast they are.
TEST_F(TunedSchedules, OfColdCachesComeSecond) {
  write_records({kGood, kGood}, /*flush_cache=*/true, 0.1);
  write_records({kGood});
  const auto found = apply_best_records(partition_, device_, database_, {}, schedules_, log_);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, 2U);
  EXPECT_EQ(schedules_[0].measured_seconds, 0.5);
  EXPECT_EQ(schedules_[1].measured_seconds, 0.1);
}

// Plain loops are the fallback of every untuned schedule and of its replacement.
TEST_F(TunedSchedules, PlainLoopsAreTheLastResort) {
  auto defaults = default_schedules(partition_, device_);
  ASSERT_TRUE(defaults.ok()) << defaults.error().message();
  for (const TaskSchedule& schedule : *defaults) ASSERT_EQ(schedule.otherwise.size(), 1U);
  const std::string untuned = sched::print((*defaults)[0].trace);
  const std::string plain = sched::print((*defaults)[0].otherwise[0].trace);
  EXPECT_NE(plain, untuned);
  write_records({kGood});
  ASSERT_TRUE(apply_best_records(partition_, device_, database_, {}, *defaults, log_).ok());
  const auto& otherwise = (*defaults)[0].otherwise;
  ASSERT_EQ(otherwise.size(), 2U);
  EXPECT_EQ(sched::print(otherwise[0].trace), untuned);
  EXPECT_EQ(sched::print(otherwise[1].trace), plain);
}

// The trace itself shows that it uses Winograd's filtering, regardless of the run that made it.
TEST_F(TunedSchedules, WinogradIsLeftOutOnRequest) {
  test::standard::Conv2d conv;
  partition_.tasks.resize(1);
  partition_.tasks[0].workload = test::standard::conv2d(conv);
  partition_.tasks[0].key = ir::structural_key(partition_.tasks[0].workload);
  schedules_.resize(1);
  const std::string direct = "split stage=3 iter=0 lengths=[1] inner=true tail=predicate\n";
  const std::string winograd = "winograd stage=3 m=4\n";
  const auto db = record::Database::open(database_);
  ASSERT_TRUE(db.ok());
  for (const auto& [trace, seconds] : {std::pair{direct, 0.5}, {winograd, 0.25}}) {
    record::Record record;
    record.task_key = partition_.tasks[0].key;
    record.device_key = device_.key();
    record.trace = trace;
    record.result.seconds = {seconds};
    ASSERT_TRUE((*db)->add({record}).ok());
  }
  for (const bool allowed : {true, false}) {
    ScheduleOptions options;
    options.winograd = allowed;
    const auto found = apply_best_records(partition_, device_, database_, options, schedules_, log_);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(*found, 1U);
    EXPECT_EQ(sched::print(schedules_[0].trace), allowed ? winograd : direct);
  }
}

// The fastest record keeps a copy of the result in memory of its own; the objective decides.
TEST_F(TunedSchedules, AreTheBestByTheObjective) {
  sched::ScheduleBuilder with_copy(partition_.tasks[0].workload);
  ASSERT_TRUE(with_copy.apply(sched::CacheWrite{2, ir::MemoryScope::kLocal}).ok());
  const std::string copy = sched::print(with_copy.trace());
  const auto db = record::Database::open(database_);
  ASSERT_TRUE(db.ok());
  std::string slower;  // key of the slower record
  for (const auto& [trace, seconds] : {std::pair{copy, 0.25}, {std::string(kGood), 0.5}}) {
    record::Record record;
    record.task_key = partition_.tasks[0].key;
    record.device_key = device_.key();
    record.trace = trace;
    record.result.seconds = {seconds};
    ASSERT_TRUE((*db)->add({record}).ok());
    slower = record.key();
  }
  // The copy of an 8x8 result takes 256 bytes.
  for (const auto& [objective, best] : {std::pair{"latency", copy},
                                        {"memory", std::string(kGood)},
                                        {"latency * (1 + memory / 1e4)", copy},
                                        {"latency * (1 + memory / 100)", std::string(kGood)}}) {
    ScheduleOptions options;
    options.objective = objective;
    const auto found = apply_best_records(partition_, device_, database_, options, schedules_, log_);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(sched::print(schedules_[0].trace), best) << objective;
    EXPECT_EQ(schedules_[0].measured_seconds, best == copy ? 0.25 : 0.5) << objective;
  }
  const auto by = [&](const std::string& objective) {
    ScheduleOptions options;
    options.objective = objective;
    return apply_best_records(partition_, device_, database_, options, schedules_, log_);
  };
  ASSERT_FALSE(by("latency +").ok());
  EXPECT_EQ(by("latency +").error().code, ErrorCode::kInvalidArgument);
  // Without any energy, the objective cannot decide; then records without energy do not count.
  ASSERT_FALSE(by("energy").ok());
  EXPECT_EQ(by("energy").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE((*db)->add(std::vector{record::energy_profile(slower, 2)}).ok());
  ASSERT_TRUE(by("latency").ok());
  EXPECT_EQ(sched::print(schedules_[0].trace), copy);
  ASSERT_TRUE(by("energy + latency").ok());
  EXPECT_EQ(sched::print(schedules_[0].trace), kGood);
}

TEST_F(TunedSchedules, OneWarningTellsOfUnusableRecords) {
  write_records({kGood, kOtherScheduler, kOtherWorkload});
  const auto found = apply_best_records(partition_, device_, database_, {}, schedules_, log_);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, 1U);
  EXPECT_TRUE(schedules_[1].trace.steps.empty());
  EXPECT_TRUE(schedules_[2].trace.steps.empty());
  ASSERT_EQ(log_.messages.size(), 1U);
  for (const char* words : {"records.db", "2 of 3 tasks", "matmul_16", "transmogrify"})
    EXPECT_NE(log_.messages[0].find(words), std::string::npos) << words << ": " << log_.messages[0];
}

TEST_F(TunedSchedules, TheNextBestTakesThePlaceOfAnUnusableRecord) {
  write_records({kOtherScheduler, kOtherWorkload});
  const std::string slower = "split stage=2 iter=0 lengths=[2] inner=true tail=predicate\n";
  const auto db = record::Database::open(database_);
  ASSERT_TRUE(db.ok());
  for (const auto& [task, trace, seconds] :
       {std::tuple{0, kGood, 0.6}, {0, slower.c_str(), 0.7}, {1, kGood, 1e-12}, {1, slower.c_str(), 0.8}}) {
    record::Record record;
    record.task_key = partition_.tasks[static_cast<size_t>(task)].key;
    record.device_key = device_.key();
    record.trace = trace;
    record.result.seconds = {seconds};
    ASSERT_TRUE((*db)->add({record}).ok());
  }
  const auto found = apply_best_records(partition_, device_, database_, {}, schedules_, log_);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, 2U);
  EXPECT_EQ(sched::print(schedules_[0].trace), kGood);
  ASSERT_EQ(schedules_[0].otherwise.size(), 2U);  // the slower record, then the untuned schedule
  EXPECT_EQ(sched::print(schedules_[0].otherwise[0].trace), slower);
  EXPECT_EQ(sched::print(schedules_[1].trace), slower);
  EXPECT_EQ(schedules_[1].measured_seconds, 0.8);
  ASSERT_EQ(log_.messages.size(), 1U);
  for (const char* words :
       {"2 of 3 tasks", "2 of these tasks use the next best", "0 use their untuned", "transmogrify"})
    EXPECT_NE(log_.messages[0].find(words), std::string::npos) << words << ": " << log_.messages[0];
}

TEST_F(TunedSchedules, AnImpossibleTimeIsNotBelieved) {
  write_records({kGood});
  const auto db = record::Database::open(database_);
  ASSERT_TRUE(db.ok());
  record::Record record;
  record.task_key = partition_.tasks[1].key;
  record.device_key = device_.key();
  record.trace = kGood;
  record.result.seconds = {1e-12};
  ASSERT_TRUE((*db)->add({record}).ok());
  const auto found = apply_best_records(partition_, device_, database_, {}, schedules_, log_);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, 1U);
  EXPECT_TRUE(schedules_[1].trace.steps.empty());
  ASSERT_EQ(log_.messages.size(), 1U);
  for (const char* words :
       {"1 of 3 tasks", "matmul_16", "1e-12 s is less than the device's peak rates allow"})
    EXPECT_NE(log_.messages[0].find(words), std::string::npos) << words << ": " << log_.messages[0];
}

TEST_F(TunedSchedules, ATraceThatParsesButDoesNotReplayIsNamed) {
  write_records({kGood, kGood, kOtherWorkload});
  const auto found = apply_best_records(partition_, device_, database_, {}, schedules_, log_);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, 2U);
  ASSERT_EQ(log_.messages.size(), 1U);
  for (const char* words : {"1 of 3 tasks", "matmul_24", "step 0 (split)"})
    EXPECT_NE(log_.messages[0].find(words), std::string::npos) << words << ": " << log_.messages[0];
}

TEST_F(TunedSchedules, ATraceForAnotherKindOfDeviceIsNamed) {
  write_records({kGood, kGood, "annotate stage=2 iter=0 as=threadIdx.x\n"});
  const auto found = apply_best_records(partition_, device_, database_, {}, schedules_, log_);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, 2U);
  EXPECT_TRUE(schedules_[2].trace.steps.empty());
  ASSERT_EQ(log_.messages.size(), 1U);
  for (const char* words : {"1 of 3 tasks", "matmul_24", "threadIdx.x", "is a CPU"})
    EXPECT_NE(log_.messages[0].find(words), std::string::npos) << words << ": " << log_.messages[0];
}

}  // namespace
}  // namespace tensorsmith::engine::schedules_test
