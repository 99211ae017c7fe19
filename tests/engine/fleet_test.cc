// A fleet in one process: requesters, and workers with simulated measurers, on a database in a
// file.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "engine/fleet/fleet_measurer.h"
#include "engine/fleet/fleet_worker.h"
#include "engine/fleet/measure_protocol.h"
#include "ir/structural.h"
#include "support/small_workloads.h"

namespace tensorsmith::engine::fleet_test {
namespace {

using record::MeasureResult;
using record::Outcome;
using ::testing::HasSubstr;

target::Device test_device() {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.cpu().cores = 1;
  return d;
}

class Lines final : public LogSink {
 public:
  void log(LogLevel, std::string_view message) override {
    const std::lock_guard lock(mutex_);
    text += std::string(message) + "\n";
  }
  std::string text;

 private:
  std::mutex mutex_;
};

measure::MeasureRequest candidate(int number, bool recorded = true) {
  auto trace = sched::parse_trace("split stage=1 iter=0 lengths=[" + std::to_string(number + 1) +
                                  "] inner=true tail=peel\n");
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  measure::MeasureRequest out{std::move(trace).value(), {}};
  if (recorded) out.what = {record::Reason::kRandom, "random", {}, ""};
  return out;
}

// The simulated time of each measurement of a trace.
double seconds_of(const sched::Trace& trace) {
  return 1e-6 * static_cast<double>(sched::print(trace).size()) + 1e-3;
}

// Measured programs by the trace's text.
struct Measured {
  std::mutex mutex;
  std::multiset<std::string> traces;
  std::vector<measure::MeasureOptions> options;
};

class Pretender final : public measure::Measurer {
 public:
  using Outcomes = std::function<Outcome(const std::string& trace)>;
  Pretender(Measured& measured, Outcomes outcomes) : measured_(measured), outcomes_(std::move(outcomes)) {}
  Result<std::vector<MeasureResult>> measure(const ir::Workload&,
                                             std::span<const measure::MeasureRequest> candidates, double,
                                             const Done& done) override {
    std::vector<MeasureResult> results;
    for (size_t i = 0; i < candidates.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const std::string text = sched::print(candidates[i].trace);
      {
        const std::lock_guard lock(measured_.mutex);
        measured_.traces.insert(text);
      }
      MeasureResult result;
      result.outcome = outcomes_ ? outcomes_(text) : Outcome::kOk;
      if (result.ok()) result.seconds = {seconds_of(candidates[i].trace)};
      if (!result.ok()) result.reason = "as it was told";
      results.push_back(result);
      if (result.outcome == Outcome::kBuildError)
        return Error{ErrorCode::kIo, "measuring", "the machine burns"};
      if (done && !done(i, results.back())) break;
    }
    return results;
  }

 private:
  Measured& measured_;
  Outcomes outcomes_;
};

class FleetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "fleet_test_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/a.db";
    database_ = std::move(record::Database::open(path_)).value();
  }
  void TearDown() override {
    stop();
    database_.reset();
    std::filesystem::remove_all(folder_);
  }
  Result<std::unique_ptr<record::Fleet>> open() const { return record::Fleet::open(path_); }
  std::unique_ptr<measure::Measurer> asker(const FleetPatience& patience = {600, 0.02}) {
    measure::MeasureOptions options;
    options.min_repeats = 4;
    return make_fleet_measurer(std::move(open()).value(), *database_, device_, options, patience, {}, clock_,
                               log_, cancel_);
  }
  Result<WorkerReport> work(const std::string& host, const Pretender::Outcomes& outcomes,
                            measure::Canary canary = {}, bool release = false) {
    WorkerTools tools;
    tools.measurer =
        [&](const measure::MeasureOptions& options) -> Result<std::unique_ptr<measure::Measurer>> {
      const std::lock_guard lock(measured_.mutex);
      measured_.options.push_back(options);
      return std::unique_ptr<measure::Measurer>(std::make_unique<Pretender>(measured_, outcomes));
    };
    tools.canary = std::move(canary);
    WorkerOptions options;
    options.host = host;
    options.lease_seconds = 5;
    options.at_once = 3;
    options.release = release;
    auto database = std::move(record::Database::open(path_)).value();
    return run_worker(device_, options, tools, *database, [&] { return open(); }, clock_, log_, stop_);
  }
  void start(int workers, const Pretender::Outcomes& outcomes = {}) {
    for (int i = 0; i < workers; ++i)
      threads_.emplace_back([this, i, outcomes] {
        const auto report = work("host" + std::to_string(i), outcomes);
        EXPECT_TRUE(report.ok()) << report.error().message();
      });
  }
  void stop() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    stop_ = false;
  }

  const target::Device device_ = test_device();
  const ir::Workload workload_ = test::small::matmul(8, 8, 8);
  const SystemClock clock_;
  Lines log_;
  std::atomic<bool> cancel_{false}, stop_{false};
  std::string folder_, path_;
  std::unique_ptr<record::Database> database_;
  Measured measured_;
  std::vector<std::thread> threads_;
};

TEST_F(FleetTest, WorkersMeasureWhatIsAskedForOnce) {
  start(3);
  std::vector<measure::MeasureRequest> candidates;
  for (int i = 0; i < 20; ++i) candidates.push_back(candidate(i));
  const auto measurer = asker();
  std::vector<size_t> order;
  const auto results =
      measurer->measure(workload_, candidates, 0.5, [&](size_t i, const MeasureResult& result) {
        EXPECT_EQ(result.seconds, std::vector<double>{seconds_of(candidates[i].trace)});
        order.push_back(i);
        return true;
      });
  ASSERT_TRUE(results.ok()) << results.error().message();
  EXPECT_EQ(results->size(), 20U);
  ASSERT_EQ(order.size(), 20U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(database_->record_count().value(), 20);
  EXPECT_EQ(measured_.traces.size(), 20U);
  EXPECT_EQ(measured_.options.front().min_repeats, 4);
  const auto records = database_->records_of(ir::structural_key(workload_), device_.key(), {}).value();
  EXPECT_EQ(records.size(), 20U);
  EXPECT_EQ(records.front().candidate, candidates.front().what);
  // Measurements that make no record are repeated for each request, and so are programs with known
  // records.
  for (const bool recorded : {false, false, true}) {
    const std::vector<measure::MeasureRequest> again{candidate(3, recorded)};
    EXPECT_TRUE(measurer->measure(workload_, again, 0, {}).ok());
  }
  EXPECT_EQ(database_->record_count().value(), 20);
  // The last one was answered by the job that made the record.
  EXPECT_EQ(measured_.traces.size(), 22U);
}

TEST_F(FleetTest, TwoAskersOfTheSameShareTheMeasurements) {
  start(2);
  std::vector<measure::MeasureRequest> candidates;
  for (int i = 0; i < 12; ++i) candidates.push_back(candidate(i));
  std::vector<std::thread> askers;
  for (int a = 0; a < 2; ++a)
    askers.emplace_back([&] {
      const auto results = asker()->measure(workload_, candidates, 0, {});
      ASSERT_TRUE(results.ok()) << results.error().message();
      EXPECT_EQ(results->size(), 12U);
    });
  for (auto& thread : askers) thread.join();
  EXPECT_EQ(measured_.traces.size(), 12U);
  EXPECT_EQ(database_->record_count().value(), 12);
}

// Without workers, each of the searches measures pending programs, and nothing is measured twice.
TEST_F(FleetTest, SearchesThatMeasureThemselvesShare) {
  WorkerTools tools;
  tools.measurer = [&](const measure::MeasureOptions&) {
    return Result<std::unique_ptr<measure::Measurer>>(std::make_unique<Pretender>(measured_, nullptr));
  };
  std::vector<measure::MeasureRequest> candidates;
  for (int i = 0; i < 24; ++i) candidates.push_back(candidate(i));
  std::atomic<int64_t> measured{0};
  std::vector<std::thread> searches;
  for (int s = 0; s < 2; ++s)
    searches.emplace_back([&, s] {
      WorkerOptions options;
      options.host = "host" + std::to_string(s);
      const auto member =
          std::move(FleetMember::join(
                        device_, options, tools, [&] { return open(); }, clock_, log_, cancel_))
              .value();
      auto database = std::move(record::Database::open(path_)).value();
      const auto measurer = make_fleet_measurer(
          std::move(open()).value(), *database, device_, {}, {600, 0.02},
          [&] { return member->measure_some(); }, clock_, log_, cancel_);
      const auto results = measurer->measure(workload_, candidates, 0, {});
      ASSERT_TRUE(results.ok()) << results.error().message();
      EXPECT_EQ(results->size(), candidates.size());
      measured += member->report().measured;
    });
  for (auto& thread : searches) thread.join();
  EXPECT_EQ(measured, 24);
  EXPECT_EQ(measured_.traces.size(), 24U);
  EXPECT_EQ(database_->record_count().value(), 24);
  EXPECT_EQ(open().value()->workers(device_.key(), 1, 60).value(), 0) << "they left";
}

TEST_F(FleetTest, WhoHasEnoughWithdrawsTheRest) {
  start(1);
  std::vector<measure::MeasureRequest> candidates;
  for (int i = 0; i < 30; ++i) candidates.push_back(candidate(i));
  const auto results =
      asker()->measure(workload_, candidates, 0, [&](size_t i, const MeasureResult&) { return i < 4; });
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->size(), 5U);
  stop();
  EXPECT_LT(measured_.traces.size(), 30U);
  const auto counts = open().value()->counts().value();
  EXPECT_EQ(counts.taken, 0);
  EXPECT_LE(counts.waiting, 3) << "what the worker had taken at that moment, and gave back";
  EXPECT_EQ(counts.done, database_->record_count().value());
}

TEST_F(FleetTest, WithoutWorkersItEndsAndSaysSo) {
  class Fast final : public Clock {
   public:
    double monotonic_seconds() const override { return now = now + 2; }
    int64_t unix_milliseconds() const override { return 0; }
    mutable double now = 0;
  } fast;
  const std::vector<measure::MeasureRequest> candidates{candidate(1)};
  const auto measurer = make_fleet_measurer(std::move(open()).value(), *database_, device_, {}, {60, 0.01},
                                            {}, fast, log_, cancel_);
  const auto results = measurer->measure(workload_, candidates, 0, {});
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(results.error().message(), HasSubstr("tensorsmith worker"));
  EXPECT_THAT(log_.text, HasSubstr("no worker measures programs for this device"));
  EXPECT_GT(measurer->waited_seconds(), 50);
  EXPECT_EQ(open().value()->counts()->waiting, 0) << "nobody wants it any more";
}

TEST_F(FleetTest, ALostProcessIsNotTheCandidatesFault) {
  std::atomic<int> lost{0};
  start(1, [&](const std::string&) { return lost++ < 2 ? Outcome::kWorkerLost : Outcome::kOk; });
  const std::vector<measure::MeasureRequest> candidates{candidate(1), candidate(2)};
  const auto results = asker()->measure(workload_, candidates, 0, {});
  ASSERT_TRUE(results.ok()) << results.error().message();
  EXPECT_TRUE((*results)[0].ok() && (*results)[1].ok());
}

TEST_F(FleetTest, AMachineThatFailsItsCanaryIsPutInQuarantine) {
  const auto fleet = std::move(open()).value();
  const auto failing = [] { return Result<double>(Error{ErrorCode::kIo, "", "wrong sums"}); };
  const auto sound = [] { return Result<double>(1e-3); };
  // Reported at the start, and when a measurement fails.
  auto report = work("bad", {}, failing);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message(), HasSubstr("wrong sums"));
  EXPECT_THAT(report.error().message(), HasSubstr("quarantine"));
  report = work("bad", {}, sound);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(report.error().message(), HasSubstr("wrong sums"));

  std::thread asking([&] {
    const std::vector<measure::MeasureRequest> candidates{candidate(1)};
    const auto results = asker()->measure(workload_, candidates, 0, {});
    ASSERT_TRUE(results.ok());
    EXPECT_TRUE(results->front().ok());
  });
  int canaries = 0;
  report = work(
      "worse", [](const std::string&) { return Outcome::kBuildError; },
      [&] { return canaries++ == 0 ? sound() : failing(); });
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message(), HasSubstr("the machine burns"));
  EXPECT_FALSE(work("worse", {}, sound).ok());
  EXPECT_EQ(database_->record_count().value(), 0);
  // Another machine of the same kind measures the programs that the first one returned; so does a
  // repaired one.
  start(1);
  asking.join();
  EXPECT_EQ(database_->record_count().value(), 1);
  stop();
  stop_ = true;
  EXPECT_TRUE(work("worse", {}, sound, /*release=*/true).ok());
  EXPECT_FALSE(work("bad", {}, sound).ok());
  stop_ = false;
}

TEST_F(FleetTest, AJobThatNobodyCanReadFails) {
  const auto fleet = std::move(open()).value();
  ASSERT_TRUE(database_->add_task({"broken", "no workload", "", 0}).ok());
  record::Job job;
  job.key = "k";
  job.recorded = false;
  job.task_key = "broken";
  job.device_key = device_.key();
  job.trace = "";
  job.protocol = print_protocol({});
  ASSERT_TRUE(fleet->post({job}).ok());
  start(1);
  std::vector<record::JobAnswer> answers;
  for (int i = 0; i < 500 && answers.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    int64_t missing = 0;
    answers = fleet->answers({"k"}, missing).value();
  }
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].record->result.outcome, Outcome::kWorkerLost);
  EXPECT_THAT(answers[0].record->result.reason, HasSubstr("cannot read"));
}

TEST(MeasureProtocol, RoundTripsAndRefusesNonsense) {
  measure::MeasureOptions options;
  options.min_repeats = 7;
  options.target_spread = 0.125;
  options.memory_limit_bytes = int64_t{3} << 30;
  options.loser_factor = 0;
  const std::string text = print_protocol(options);
  const auto parsed = parse_protocol(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(print_protocol(*parsed), text);
  EXPECT_EQ(parsed->min_repeats, 7);
  EXPECT_EQ(parsed->memory_limit_bytes, int64_t{3} << 30);
  EXPECT_FALSE(parse_protocol("").ok());
  EXPECT_FALSE(parse_protocol("{}").ok());
  std::string bad = text;
  bad.replace(bad.find("\"min_repeats\":7"), 15, "\"min_repeats\":0");
  EXPECT_FALSE(parse_protocol(bad).ok());
}

}  // namespace
}  // namespace tensorsmith::engine::fleet_test
