// tune() trusts only these: defaults and winners whose outputs were compared, and records with possible
// times.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "search_testing.h"
#include "support/standard_workloads.h"

namespace tensorsmith::search::verification_test {
namespace {

using namespace tensorsmith::test::standard;
using test::Bench;
using test::failed;
using test::FakeMeasurer;
using test::pseudo;
using test::pseudo_seconds;
using test::task;
using test::took;

std::string default_text_of(const TuneTask& t) {
  const auto space = space::DesignSpace::build(t.task->workload(), test::device(), {});
  return sched::print(*space->to_trace(space->default_candidate()));
}

TEST(Verification, AWrongDefaultIsAnErrorThatNamesTheTask) {
  // This holds whether the task is worth tuning or not, and for any limit.
  for (const double hint : {0.0, 1e-9}) {
    Bench bench;
    bench.options.trials = 1;
    std::vector<TuneTask> tasks{task("good", matmul(64, 64, 64)), task("softmax 4x32", softmax(4, 32))};
    tasks[0].hint_seconds = 1;
    tasks[1].hint_seconds = hint;
    const std::string wrong = default_text_of(tasks[1]);
    FakeMeasurer measurer(
        [&](const std::string&, const sched::Trace& trace) {
          return sched::print(trace) == wrong ? failed(record::Outcome::kWrongOutput, "output 0: element 3")
                                              : took(pseudo_seconds(trace));
        },
        bench.clock);
    // Also if an earlier run found the failure: the default is measured again, since the program
    // may have been repaired.
    for (int run = 0; run < 2; ++run) {
      const auto report = bench.run(tasks, measurer);
      ASSERT_FALSE(report.ok());
      EXPECT_EQ(report.error().code, ErrorCode::kMismatch);
      EXPECT_NE(report.error().message().find("softmax 4x32"), std::string::npos);
      EXPECT_NE(report.error().message().find("output 0: element 3"), std::string::npos);
    }
    FakeMeasurer mended(pseudo(), bench.clock);
    EXPECT_TRUE(bench.run(tasks, mended).ok());
  }
}

TEST(Verification, ATaskOfWhichNothingRunsSaysWhy) {
  Bench bench;
  bench.options.trials = 12;
  int n = 0;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace&) {
        return n++ % 3 == 1 ? failed(record::Outcome::kWrongOutput, "element 3")
                            : failed(record::Outcome::kCrash, "SIGSEGV");
      },
      bench.clock);
  const auto report = bench.run({task("a", matmul(32, 32, 32))}, measurer);
  ASSERT_FALSE(report.ok());
  for (const char* words : {"task 'a'", "none of its programs", "8 crash", "4 wrong_output", "SIGSEGV"})
    EXPECT_NE(report.error().message().find(words), std::string::npos) << report.error().message();
}

record::MeasureResult disturbed(double seconds, double share) {
  record::MeasureResult result = took(seconds);
  result.disturbance = share;
  return result;
}

// The fastest programs are measured first while others use the machine, so they seem slow; quiet ones
// seem fastest.
TEST(Verification, ProgramsThatLostUnderLoadAreTimedAgain) {
  constexpr double kFast = 2.5e-3;
  Bench bench;
  bench.options.trials = 64;
  std::map<std::string, double> seen;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        const double seconds = pseudo_seconds(trace);
        const bool first = seen.emplace(sched::print(trace), seconds).second;
        return first && seconds < kFast ? disturbed(8 * seconds, 0.7) : disturbed(seconds, 0);
      },
      bench.clock);
  const auto report = bench.run({task("a", matmul(32, 32, 32))}, measurer);
  ASSERT_TRUE(report.ok());
  double best = 1;
  for (const auto& [trace, seconds] : seen) best = std::min(best, seconds);
  ASSERT_LT(best, kFast);
  EXPECT_EQ(pseudo_seconds(report->best_traces[0]), best);
}

// One program seems far faster than all others, but its reading is doubtful.
TEST(Verification, ADoubtfulWinnerIsTimedAgain) {
  for (const bool doubtful : {false, true}) {
    Bench bench;
    bench.options.trials = 20;
    std::string winner;
    std::map<std::string, int> readings;
    FakeMeasurer measurer(
        [&](const std::string&, const sched::Trace& trace) {
          const std::string text = sched::print(trace);
          ++readings[text];
          if (readings.size() == 5 && winner.empty()) {
            winner = text;
            return disturbed(2e-4, doubtful ? 0.3 : 0);
          }
          return took(text == winner ? 0.1 : pseudo_seconds(trace));
        },
        bench.clock);
    const auto report = bench.run({task("a", matmul(32, 32, 32))}, measurer);
    ASSERT_TRUE(report.ok());
    ASSERT_FALSE(winner.empty());
    EXPECT_EQ(readings[winner] > 1, doubtful);
    EXPECT_EQ(sched::print(report->best_traces[0]) == winner, !doubtful);
  }
}

TEST(Verification, ForgedRecordsDoNotWin) {
  const auto t = task("a", matmul(32, 32, 32));
  const auto space = space::DesignSpace::build(t.task->workload(), test::device(), {});
  Rng rng(5);
  std::vector<std::string> forged;
  while (forged.size() < 3) {
    const space::Candidate c = space->sample(rng);
    if (!space->check(c).ok()) continue;
    const std::string text = sched::print(*space->to_trace(c));
    if (text != default_text_of(t) && std::count(forged.begin(), forged.end(), text) == 0)
      forged.push_back(text);
  }
  struct Lines final : LogSink {
    void log(LogLevel level, std::string_view message) override {
      if (level >= LogLevel::kWarning) text += std::string(message) + "\n";
    }
    std::string text;
  } lines;
  Bench bench;
  bench.options.trials = 6;
  const auto add = [&](const std::string& trace, double seconds) {
    record::Record r;
    r.task_key = t.task->key();
    r.device_key = test::device().key();
    r.trace = trace;
    r.result = took(seconds);
    ASSERT_TRUE(bench.database->add({r}).ok());
  };
  add(forged[0], 1e-12);  // impossible
  add(forged[1], 2e-6);   // possible, and the output is wrong
  add(forged[2], 3e-6);   // possible, but much slower in fact
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        const std::string text = sched::print(trace);
        if (text == forged[1]) return failed(record::Outcome::kWrongOutput, "element 1");
        if (std::count(forged.begin(), forged.end(), text) > 0) return took(1);
        return took(pseudo_seconds(trace));
      },
      bench.clock);
  const auto report = tune({t}, test::device(), bench.options,
                           {*bench.database, measurer, &bench.model, bench.clock, lines, bench.cancel});
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(std::count(forged.begin(), forged.end(), sched::print(report->best_traces[0])), 0);
  for (const auto& ranked : report->fastest[0]) EXPECT_NE(sched::print(ranked.trace), forged[1]);
  EXPECT_GE(report->final.tasks[0].best_seconds, 1e-3);
  EXPECT_NE(lines.text.find("1 records are ignored because their times are less"), std::string::npos)
      << lines.text;
  EXPECT_NE(lines.text.find("2 records have much shorter times"), std::string::npos) << lines.text;
}

// A program from the database is trusted only after it ran here; the stored winner remains the
// winner.
TEST(Verification, WinnersFromTheDatabaseAreCheckedAgain) {
  Bench bench;
  bench.options.trials = 30;
  const auto t = task("a", matmul(32, 32, 32));
  FakeMeasurer first(pseudo(), bench.clock);
  const auto before = bench.run({t}, first);
  ASSERT_TRUE(before.ok());
  bench.options.trials = 1;
  FakeMeasurer second(pseudo(), bench.clock);
  const auto after = bench.run({t}, second);
  ASSERT_TRUE(after.ok());
  EXPECT_LE(after->final.tasks[0].best_seconds, before->final.tasks[0].best_seconds);
  EXPECT_GE(std::count_if(second.log.begin(), second.log.end(),
                          [](const auto& entry) { return entry.second.reason == record::Reason::kUnstated; }),
            2);  // the default and the fastest
}

}  // namespace
}  // namespace tensorsmith::search::verification_test
