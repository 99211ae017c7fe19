// The measurer with misbehaving candidates: each failure affects only its own candidate.
#include "measure/measurer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "codegen/c/codegen.h"
#include "doubles.h"
#include "measure/process_measurer.h"
#include "support/sanitizers.h"

namespace tensorsmith::measure::measurer_test {
namespace {

using record::MeasureResult;
using record::Outcome;
using ::testing::HasSubstr;

MeasureOptions test_options() {
  MeasureOptions options;
  options.run_timeout_s = 1.5;
  options.build_timeout_s = 10;
  options.memory_limit_bytes = int64_t{256} << 20;
  return options;
}

class MeasurerTest : public ::testing::Test {
 protected:
  std::vector<MeasureResult> measure(const std::vector<std::string>& names,
                                     const MeasureOptions& options = test_options(), double best = 0) {
    if (!measurer_) {
      auto made =
          make_local_measurer(device_, options, {TEST_WORKER}, log_, std::make_shared<DoubleBuilder>());
      EXPECT_TRUE(made.ok()) << made.error().message();
      measurer_ = std::move(made).value();
    }
    std::vector<MeasureRequest> candidates;
    for (const auto& name : names) candidates.push_back(DoubleBuilder::candidate(name));
    size_t expected_index = 0;
    auto results = measurer_->measure(matmul16(), candidates, best, [&](size_t i, const MeasureResult&) {
      EXPECT_EQ(i, expected_index++);
      return true;
    });
    EXPECT_TRUE(results.ok()) << results.error().message();
    EXPECT_EQ(expected_index, names.size());
    return results.ok() ? *results : std::vector<MeasureResult>(names.size());
  }

  // Expects that the candidate fails this way and that the candidates before and after it are
  // measured.
  void expect_failure(const std::string& name, Outcome outcome, const std::string& reason) {
    SCOPED_TRACE(name);
    const auto results = measure({"right", name, "right"});
    EXPECT_TRUE(results[0].ok()) << results[0].reason;
    EXPECT_EQ(results[1].outcome, outcome)
        << record::to_string(results[1].outcome) << " " << results[1].reason;
    EXPECT_THAT(results[1].reason, HasSubstr(reason));
    EXPECT_TRUE(std::isinf(results[1].best_estimate()));
    EXPECT_TRUE(results[2].ok()) << results[2].reason;
  }

  class WarningSink final : public LogSink {
   public:
    void log(LogLevel level, std::string_view message) override {
      if (level >= LogLevel::kWarning) lines.emplace_back(message);
    }
    std::vector<std::string> lines;
  };
  WarningSink log_;
  target::Device device_ = test_device();
  std::unique_ptr<Measurer> measurer_;
};

TEST_F(MeasurerTest, EndsWhereTheCallerSaysSo) {
  measure({"right"});
  const std::vector<MeasureRequest> candidates(6, DoubleBuilder::candidate("right"));
  const auto results =
      measurer_->measure(matmul16(), candidates, 0, [](size_t i, const MeasureResult&) { return i < 2; });
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->size(), 3u);
  // The measurer can then measure other candidates.
  EXPECT_TRUE(measure({"right", "right"})[1].ok());
}

TEST_F(MeasurerTest, RightCandidatesAreTimed) {
  auto options = test_options();
  options.hopeless_factor = 0;
  const auto results = measure({"right", "right_with_workspace", "right_packed", "right"}, options);
  for (const auto& result : results) {
    ASSERT_TRUE(result.ok()) << result.reason;
    EXPECT_TRUE(result.reason.empty());
    EXPECT_GE(result.seconds.size(), 3u);
    EXPECT_LE(result.seconds.size(), 12u);
    EXPECT_GT(result.best_estimate(), 0);
    EXPECT_LT(result.best_estimate(), 0.1);
    EXPECT_GE(result.runs_per_repeat, 1);
    EXPECT_FALSE(result.stopped_early);
    EXPECT_GT(result.measure_seconds, 0);
    EXPECT_GE(result.build_seconds, 0);
  }
}

TEST_F(MeasurerTest, WrongOutputs) {
  expect_failure("wrong_element", Outcome::kWrongOutput, "output 0: element 37 is ");
  expect_failure("unwritten", Outcome::kWrongOutput, "output 0: element 255 is ");
  expect_failure("accumulates", Outcome::kWrongOutput, "elements differ");
  expect_failure("wrong_later", Outcome::kWrongOutput, "correct in the first run, wrong after");
  expect_failure("writes_before", Outcome::kWrongOutput, "writes outside of output 0");
  expect_failure("writes_outside_workspace", Outcome::kWrongOutput, "writes outside of its workspace");
}

TEST_F(MeasurerTest, Crashes) {
  expect_failure("segfaults", Outcome::kCrash, "SIGSEGV");
  expect_failure("writes_far_after", Outcome::kCrash, "SIGSEGV");
  expect_failure("writes_input", Outcome::kCrash, "SIGSEGV");
  expect_failure("aborts", Outcome::kCrash, "SIGABRT");
  expect_failure("executes_nonsense", Outcome::kCrash, "SIGILL");
  expect_failure("overflows_stack", Outcome::kCrash, "SIGSEGV");
  expect_failure("exits", Outcome::kCrash, "ended with status 0");
  expect_failure("sends_garbage", Outcome::kCrash, "invalid answer");
}

TEST_F(MeasurerTest, Hangs) {
  if (TENSORSMITH_THREAD_SANITIZER || TENSORSMITH_ADDRESS_SANITIZER)
    GTEST_SKIP() << "the sanitizer's own memory is over the limit";
  expect_failure("loops", Outcome::kRunTimeout, "not finished after 1.5 s");
  expect_failure("loops_everywhere", Outcome::kRunTimeout, "not finished after 1.5 s");
}

TEST_F(MeasurerTest, WorkerThatClosesItsSocketIsEnded) {
  const auto results = measure({"closes_descriptors", "right"});
  EXPECT_FALSE(results[0].ok());
  EXPECT_TRUE(results[1].ok());
}

TEST_F(MeasurerTest, Memory) {
  if (TENSORSMITH_THREAD_SANITIZER) GTEST_SKIP() << "the thread sanitizer's own memory is over the limit";
  expect_failure("eats_memory", Outcome::kMemoryLimit, "the memory limit was reached");
  expect_failure("eats_memory_and_loops", Outcome::kMemoryLimit, "the memory limit was reached");
  expect_failure("huge_workspace", Outcome::kMemoryLimit, "workspace");
}

TEST_F(MeasurerTest, BuildFailures) {
  expect_failure("not_legal", Outcome::kInvalidSchedule, "step 3: no");
  expect_failure("not_built", Outcome::kBuildError, "internal error: x");
  expect_failure("throws", Outcome::kBuildError, "bad_alloc");
  expect_failure("no_object", Outcome::kBuildError, "cannot be loaded");
}

TEST_F(MeasurerTest, BuildTimeoutCostsOneCandidate) {
  for (int threads : {1, 64}) {  // builds that overlap the runs, and builds between the runs
    measurer_.reset();
    auto options = test_options();
    device_.cpu().cores = threads;
    options.build_timeout_s = 0.3;
    const auto results = measure({"right", "builds_long", "right", "builds_busily", "right"}, options);
    for (size_t i : {0, 2, 4}) EXPECT_TRUE(results[i].ok()) << i << results[i].reason;
    for (size_t i : {1, 3}) {
      EXPECT_EQ(results[i].outcome, Outcome::kBuildTimeout);
      EXPECT_EQ(results[i].reason, "not compiled after 0.3 s");
    }
  }
}

TEST_F(MeasurerTest, HopelessCandidatesStopEarly) {
  auto results = measure({"right", "slow", "right"});
  EXPECT_TRUE(results[1].ok());
  EXPECT_TRUE(results[1].stopped_early);     // compared with the first candidate of the list
  EXPECT_LE(results[1].seconds.size(), 2u);  // two while other programs use this machine
  EXPECT_GE(results[1].best_estimate(), 0.02);
  results = measure({"slow"}, test_options(), /*best=*/1e-4);
  EXPECT_TRUE(results[0].stopped_early);
  results = measure({"slow"});
  EXPECT_FALSE(results[0].stopped_early);
  EXPECT_GE(results[0].seconds.size(), 3u);
}

// The machine as a simulated reader tells it: each reading is ten seconds after the last one.
struct SimulatedLoad {
  std::vector<double> shares;  // that others take until each reading; the last one repeats
  int readings = 0;
  double now = 100, busy = 7;

  std::optional<ProcessorLoad> read() {
    const size_t i = std::min<size_t>(readings++, shares.size() - 1);
    now += 10;
    busy += 2 * 10 * shares[i];
    return ProcessorLoad{now, busy, 2};
  }
};

// Measures a fast and a slow candidate.
std::vector<MeasureResult> measure_under(SimulatedLoad& load, LogSink& log) {
  ProcessMeasurerOptions how;
  how.worker = {TEST_WORKER, std::string(codegen::default_backend().name())};
  how.load = [&load] { return load.read(); };
  ProcessMeasurer measurer(test_options(), std::move(how), std::make_shared<DoubleBuilder>(), log);
  EXPECT_TRUE(measurer.ensure_ready().ok());
  const std::vector<MeasureRequest> candidates = {DoubleBuilder::candidate("right"),
                                                  DoubleBuilder::candidate("slow")};
  auto results = measurer.measure(matmul16(), candidates, 0, {});
  EXPECT_TRUE(results.ok());
  return results.ok() ? *results : std::vector<MeasureResult>(2);
}

TEST_F(MeasurerTest, ResultsSayHowDisturbedTheyAre) {
  SimulatedLoad quiet{{0}}, loaded{{0.5}};
  for (const auto& result : measure_under(quiet, log_)) EXPECT_EQ(result.disturbance, 0);
  EXPECT_EQ(quiet.readings, 1 + 2 * 2);
  for (const auto& result : measure_under(loaded, log_)) EXPECT_NEAR(result.disturbance.value(), 0.5, 0.1);
}

// Others begin while the slow candidate runs, so the reading that stopped it is made again.
TEST_F(MeasurerTest, ALoadThatBeginsMeanwhileDoesNotDecide) {
  SimulatedLoad load{{0, 0, 0, 0, 0.5}};
  const auto results = measure_under(load, log_);
  EXPECT_TRUE(results[1].stopped_early);
  EXPECT_EQ(load.readings, 1 + 2 * 2 + 2);
}

TEST_F(MeasurerTest, FlushedRunsAreTimedOneByOne) {
  auto options = test_options();
  options.flush_cache = true;
  const auto results = measure({"right"}, options);
  ASSERT_TRUE(results[0].ok()) << results[0].reason;
  EXPECT_EQ(results[0].runs_per_repeat, 1);
}

// A signal sent to the worker while a candidate runs in it, and the seconds to wait before.
using Disturbance = std::pair<double, int>;

class Disturber {
 public:
  explicit Disturber(std::vector<Disturbance> signals)
      : thread_([list = std::move(signals)] {
          for (const auto& [seconds, signal] : list) {
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
            for (const int worker : children_of(::getpid())) ::kill(worker, signal);
          }
        }) {}
  ~Disturber() { thread_.join(); }

 private:
  std::thread thread_;
};

TEST_F(MeasurerTest, AWorkerThatOthersKillCostsNothing) {
  for (const int signal : {SIGKILL, SIGUSR1, SIGSTOP}) {
    SCOPED_TRACE(signal);
    measure({"right"});
    const Disturber disturber({{0.3, signal}});
    const auto results = measure({"slow_at_first", "right"});
    EXPECT_TRUE(results[0].ok()) << results[0].reason;
    EXPECT_TRUE(results[1].ok()) << results[1].reason;
    measurer_.reset();
  }
  EXPECT_EQ(log_.lines.size(), 3u);
  EXPECT_THAT(log_.lines[0], HasSubstr("another process ended"));
}

TEST_F(MeasurerTest, AWorkerThatIsKilledTwiceCountsAgainstItsCandidate) {
  measure({"right"});
  const Disturber disturber({{0.3, SIGKILL}, {0.5, SIGKILL}});
  const auto results = measure({"slow_at_first", "right"});
  EXPECT_EQ(results[0].outcome, Outcome::kMemoryLimit);
  EXPECT_THAT(results[0].reason, HasSubstr("killed by the operating system"));
  EXPECT_TRUE(results[1].ok()) << results[1].reason;
}

// No candidate is blamed for a worker that dies between two candidates.
TEST_F(MeasurerTest, AnIdleWorkerMayBeKilledOrStopped) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    SCOPED_TRACE(signal);
    measure({"right"});
    for (const int worker : children_of(::getpid())) ::kill(worker, signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(measure({"right"})[0].ok());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  }
}

// Ctrl-C reaches all programs of a terminal; only the tuner decides what to do.
TEST_F(MeasurerTest, TerminalSignalsAreTheParentsAffair) {
  measure({"right"});
  const Disturber disturber({{0.2, SIGINT}, {0.05, SIGTERM}, {0.05, SIGHUP}, {0.05, SIGTSTP}});
  EXPECT_TRUE(measure({"slow_at_first"})[0].ok());
  EXPECT_TRUE(log_.lines.empty());
}

TEST_F(MeasurerTest, NoProcessIsLeft) {
  measure({"right", "segfaults", "right", "exits"});
  EXPECT_EQ(children_of(::getpid()).size(), 1u);
  measurer_.reset();
  EXPECT_TRUE(children_of(::getpid()).empty());
}

TEST(MeasurerStart, UnusableWorkersAreAClearError) {
  NullLogSink log;
  const auto start = [&](std::vector<std::string> command) {
    auto made = make_local_measurer(test_device(), test_options(), std::move(command), log,
                                    std::make_shared<DoubleBuilder>());
    EXPECT_FALSE(made.ok());
    EXPECT_TRUE(children_of(::getpid()).empty());
    return made.ok() ? "" : made.error().message();
  };
  EXPECT_THAT(start({"/nonexistent/worker"}),
              HasSubstr("/nonexistent/worker: the measurement worker did not start: exit status 127 (cannot "
                        "execute the program)"));
  EXPECT_THAT(start({TEST_WORKER, "exits"}), HasSubstr("exit status 5"));
  EXPECT_THAT(start({TEST_WORKER, "complains"}), HasSubstr("exit status 1 (no licence )"));
  EXPECT_THAT(start({}), HasSubstr("worker_command: is empty"));
}

// Kernels of the C backend need libm, and a confined worker cannot open the file to load it.
TEST(MeasurerStart, BackendsThatAreNotSelfContainedAreRefused) {
  NullLogSink log;
  MeasureOptions options = test_options();
  options.backend = &codegen::c_backend();
  const auto made = make_local_measurer(test_device(), options, {TEST_WORKER}, log);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(made.error().message(), HasSubstr("backend 'c' cannot be loaded by a confined worker"));
  EXPECT_TRUE(children_of(::getpid()).empty());
}

// The tuner is killed while a candidate hangs: the worker, which cannot notice it, ends too.
TEST(MeasurerKill, KilledParentLeavesNoWorker) {
  const pid_t tuner = ::fork();
  if (tuner == 0) {
    NullLogSink log;
    auto options = test_options();
    options.run_timeout_s = 100;
    auto made =
        make_local_measurer(test_device(), options, {TEST_WORKER}, log, std::make_shared<DoubleBuilder>());
    if (made.ok()) {
      const MeasureRequest loops[] = {DoubleBuilder::candidate("loops_everywhere")};
      (void)(*made)->measure(matmul16(), loops, 0, nullptr);
    }
    ::_exit(1);
  }
  std::vector<int> workers;
  for (int i = 0; i < 200 && workers.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    workers = children_of(tuner);
  }
  ASSERT_EQ(workers.size(), 1u);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the worker hangs in the candidate now
  ::kill(tuner, SIGKILL);
  ASSERT_EQ(::waitpid(tuner, nullptr, 0), tuner);
  const auto alive = [&] {
    std::ifstream stat("/proc/" + std::to_string(workers[0]) + "/stat");
    std::string text;
    std::getline(stat, text);
    const size_t end = text.rfind(')');
    return end != std::string::npos && end + 2 < text.size() && text[end + 2] != 'Z';
  };
  for (int i = 0; i < 200 && alive(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(25));
  EXPECT_FALSE(alive());
}

}  // namespace
}  // namespace tensorsmith::measure::measurer_test
