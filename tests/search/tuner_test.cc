// tune() with a fake measurer, trainer and clock.
#include "search/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ir/structural.h"
#include "lab/strategies/strategies.h"
#include "search/pipeline.h"
#include "search_testing.h"
#include "support/standard_workloads.h"

namespace tensorsmith::search::tuner_test {
namespace {

using namespace tensorsmith::test::standard;
using record::Reason;
using test::Bench;
using test::failed;
using test::FakeMeasurer;
using test::Killed;
using test::pseudo;
using test::pseudo_seconds;
using test::task;
using test::took;

TEST(Tune, MeasuresDefaultsFirstAndKeepsTheLimit) {
  Bench bench;
  bench.options.trials = 50;
  FakeMeasurer measurer(pseudo(), bench.clock);
  const std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32)), task("b", matmul(16, 48, 8)),
                                    task("c", softmax(4, 32))};
  const auto report = bench.run(tasks, measurer);
  ASSERT_TRUE(report.ok()) << report.error().message();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(measurer.log[i].second.reason, Reason::kDefault);
  EXPECT_EQ(report->final.trials, 50);
  EXPECT_EQ(measurer.counts.size(), 50U);
  EXPECT_EQ(*bench.database->record_count(), 50);
  ASSERT_EQ(report->best_traces.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_LE(report->final.tasks[i].best_seconds, report->final.tasks[i].default_seconds);
    EXPECT_TRUE(sched::replay(tasks[i].task->workload(), report->best_traces[i]).ok());
  }
  EXPECT_EQ(bench.progress.size(), 50U);
  EXPECT_EQ(bench.progress.back().trials, 50);
  EXPECT_GT(bench.model.updates, 0);
}

// A task without measurements counts with its hint, so that a display has a figure from the start.
TEST(Tune, TheModelsLatencyCountsHintsUntilTasksAreMeasured) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  TuneProgress progress;
  progress.tasks = {{"measured", 2, 5, 0, 0.010, 0.008, 0.011}, {"waits", 3, 0, 0, kNever, kNever, 0.002}};
  EXPECT_DOUBLE_EQ(progress.model_default_seconds(), 2 * 0.010 + 3 * 0.002);
  EXPECT_DOUBLE_EQ(progress.model_best_seconds(), 2 * 0.008 + 3 * 0.002);
  progress.tasks[1].hint_seconds = 0;
  EXPECT_EQ(progress.model_best_seconds(), kNever);
  // A task whose programs all failed does not count with its hint.
  progress.tasks[1] = {"fails", 3, 2, 2, kNever, kNever, 0.002};
  EXPECT_EQ(progress.model_best_seconds(), kNever);
}

// Every task gets its share, the default first; slow tasks get only their default; measurements of
// earlier runs count.
TEST(Tune, ASurveyVisitsAllTasks) {
  Bench bench;
  bench.options.survey = Survey{.per_task = 20, .max_default_seconds = 0.5};
  bench.options.strategy = &lab::kMixedStrategy;
  const std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32)), task("slow", matmul(16, 48, 8)),
                                    task("b", softmax(4, 32))};
  const std::string slow = tasks[1].task->key();
  FakeMeasurer measurer(
      [&](const std::string& key, const sched::Trace& trace) {
        return took(pseudo_seconds(trace) + (key == slow ? 1 : 0));
      },
      bench.clock);
  ASSERT_TRUE(bench.run(tasks, measurer).ok());
  std::map<std::string, std::vector<record::CandidateOrigin>> by_task;
  for (const auto& [key, candidate] : measurer.log) by_task[key].push_back(candidate);
  for (const auto& [key, list] : by_task) {
    EXPECT_EQ(list.size(), key == slow ? 1U : 20U);
    EXPECT_EQ(list.front().reason, Reason::kDefault);
  }
  // The tasks take turns: no task is finished before the others began.
  std::set<std::string> early;
  for (size_t i = 0; i < 20; ++i) early.insert(measurer.log[i].first);
  EXPECT_GE(early.size(), 2U);
  for (const auto& [text, count] : measurer.counts) EXPECT_EQ(count, 1);

  // If each task later gets more, only the difference is measured.
  FakeMeasurer again(pseudo(), bench.clock);
  bench.options.survey->per_task = 24;
  ASSERT_TRUE(bench.run({tasks[0], tasks[2]}, again).ok());
  EXPECT_EQ(again.total, 8);
  for (const auto& [text, count] : again.counts) EXPECT_EQ(measurer.counts.count(text), 0U);
}

// Few slow measurements are made, since a turn ends by time.
TEST(Tune, ASurveyBoundsTheTimeOfATurn) {
  Bench bench;
  bench.options.survey = Survey{.per_task = 20, .max_default_seconds = 0.5, .max_turn_seconds = 4};
  bench.options.strategy = &lab::kMixedStrategy;
  FakeMeasurer measurer(pseudo(), bench.clock, /*seconds_per_trial=*/2.5);
  bench.options.trials = 5;
  ASSERT_TRUE(bench.run({task("a", matmul(32, 32, 32)), task("b", softmax(4, 32))}, measurer).ok());
  ASSERT_EQ(measurer.log.size(), 5u);
  // The default, two more within the turn, then the other task's turn.
  EXPECT_EQ(measurer.log[2].first, measurer.log[0].first);
  EXPECT_NE(measurer.log[3].first, measurer.log[0].first);
}

// The limit holds wherever in a visit it is reached.
TEST(Tune, ASurveyKeepsTheLimit) {
  for (int trials = 1; trials <= 6; ++trials) {
    Bench bench;
    bench.options.survey = Survey{.per_task = 3, .max_default_seconds = 0.5};
    bench.options.strategy = &lab::kMixedStrategy;
    bench.options.trials = trials;
    FakeMeasurer measurer(pseudo(), bench.clock);
    ASSERT_TRUE(bench.run({task("a", matmul(32, 32, 32)), task("b", softmax(4, 32))}, measurer).ok());
    EXPECT_EQ(measurer.total, trials);
  }
}

// A task whose reference program fails is skipped; the others go on.
TEST(Tune, ASurveySkipsTasksThatCannotBeMeasured) {
  class Refuses final : public measure::Measurer {
   public:
    Refuses(std::string key, ErrorCode code, FakeMeasurer& inner)
        : key_(std::move(key)), code_(code), inner_(inner) {}
    Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                       std::span<const measure::MeasureRequest> candidates,
                                                       double best, const Done& done) override {
      if (ir::structural_key(workload) == key_) return Error{code_, "reference program", "is wrong"};
      return inner_.measure(workload, candidates, best, done);
    }

   private:
    std::string key_;
    ErrorCode code_;
    FakeMeasurer& inner_;
  };
  const std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32)), task("b", softmax(4, 32))};
  for (const ErrorCode code : {ErrorCode::kMismatch, ErrorCode::kIo}) {
    Bench bench;
    bench.options.survey = Survey{.per_task = 10, .max_default_seconds = 0.5};
    bench.options.strategy = &lab::kMixedStrategy;
    FakeMeasurer measurer(pseudo(), bench.clock);
    Refuses refuses(tasks[0].task->key(), code, measurer);
    const auto report = bench.run(tasks, refuses);
    EXPECT_EQ(report.ok(), code == ErrorCode::kMismatch);
    if (report.ok()) {
      EXPECT_EQ(measurer.total, 10);
    }
  }
}

// Seeds are measured right after the default; those that the space does not have are left out.
TEST(Tune, SeedsComeFirst) {
  Bench bench;
  bench.options.trials = 12;
  bench.options.batch = 4;
  std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32))};
  const auto space = space::DesignSpace::build(tasks[0].task->workload(), test::device(), {});
  ASSERT_TRUE(space.ok());
  Rng rng(3);
  space::Candidate good = space->sample(rng);
  while (!space->check(good).ok() || good == space->default_candidate()) good = space->sample(rng);
  space::Candidate broken = good;
  broken.decisions.push_back(7);
  tasks[0].seeds = {{broken}, {{99, {1, 2}}}, {good}};
  FakeMeasurer measurer(pseudo(), bench.clock);
  ASSERT_TRUE(bench.run(tasks, measurer).ok());
  ASSERT_GE(measurer.log.size(), 2u);
  EXPECT_EQ(measurer.log[0].second.reason, Reason::kDefault);
  EXPECT_EQ(measurer.log[1].second.reason, Reason::kSeeded);
  EXPECT_EQ(measurer.log[1].second.point, to_point(good));
  EXPECT_EQ(measurer.log[1].second.strategy, "");
}

// The first rounds of a task are small, but its seeds have room in the first one.
TEST(Tune, AllSeedsAreMeasuredFirst) {
  Bench bench;
  bench.options.trials = 30;
  std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32))};
  const auto space = space::DesignSpace::build(tasks[0].task->workload(), test::device(), {});
  ASSERT_TRUE(space.ok());
  Rng rng(3);
  std::set<std::string> programs{sched::print(*space->to_trace(space->default_candidate()))};
  while (tasks[0].seeds.size() < bench.options.seeds) {
    const auto candidate = space->sample(rng);
    const auto trace = space->to_trace(candidate);
    if (trace.ok() && programs.insert(sched::print(*trace)).second) tasks[0].seeds.push_back({candidate});
  }
  FakeMeasurer measurer(pseudo(), bench.clock);
  ASSERT_TRUE(bench.run(tasks, measurer).ok());
  ASSERT_GT(measurer.log.size(), bench.options.seeds);
  for (size_t i = 1; i <= bench.options.seeds; ++i)
    EXPECT_EQ(measurer.log[i].second.reason, Reason::kSeeded) << i;
}

// The strategy "transfer" measures the default and the seeds, and nothing else, however much time
// there is.
TEST(Tune, TransferMeasuresSeedsAlone) {
  Bench bench;
  bench.options.trials = 1000;
  bench.options.strategy = &kTransferStrategy;
  bench.options.seeds = 1;  // applies only to the other strategies
  std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32)), task("b", matmul(32, 32, 48))};
  const auto space = space::DesignSpace::build(tasks[0].task->workload(), test::device(), {});
  ASSERT_TRUE(space.ok());
  Rng rng(3);
  while (tasks[0].seeds.size() < 5) {
    const auto candidate = space->sample(rng);
    if (space->check(candidate).ok()) tasks[0].seeds.push_back({candidate, Reason::kTransferred});
  }
  FakeMeasurer measurer(pseudo(), bench.clock);
  const auto report = bench.run(tasks, measurer);
  ASSERT_TRUE(report.ok());
  int transferred = 0;
  for (const auto& [trace, what] : measurer.log) {
    if (what.reason == Reason::kDefault) continue;
    EXPECT_EQ(what.reason, Reason::kTransferred);
    ++transferred;
  }
  EXPECT_GT(transferred, 1);
  EXPECT_LE(transferred, 5);  // some may be the same program
  EXPECT_EQ(report->final.tasks[1].trials, 1);
}

// Without a limit of time or trials, the search continues until little more is expected, and says
// so.
TEST(Tune, EndsWhereLittleMoreIsExpected) {
  int64_t before = 0;
  for (const double gain : {0.9, 0.5}) {
    Bench bench;
    bench.options.trials = 0;
    bench.options.until_gain = gain;
    FakeMeasurer measurer(pseudo(), bench.clock);
    const std::vector<TuneTask> tasks{task("a", matmul(16, 16, 16)), task("b", matmul(16, 8, 16))};
    const auto report = bench.run(tasks, measurer);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->end, SearchEnd::kGain);
    EXPECT_LT(report->expected_gain, gain);
    EXPECT_GE(report->final.trials, before);  // a smaller gain takes longer
    before = report->final.trials;
  }
  EXPECT_GT(before, 20);
}

TEST(Tune, ReportsTheFastestProgram) {
  Bench bench;
  bench.options.trials = 30;
  FakeMeasurer measurer(pseudo(), bench.clock);
  const std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32))};
  const auto report = bench.run(tasks, measurer);
  ASSERT_TRUE(report.ok());
  double best = 1e30;
  const auto records =
      bench.database->records_of(tasks[0].task->key(), test::device().key(), record::MeasureSettings());
  ASSERT_TRUE(records.ok());
  for (const auto& record : *records) best = std::min(best, record.result.best_estimate());
  EXPECT_DOUBLE_EQ(pseudo_seconds(report->best_traces[0]), best);
  EXPECT_DOUBLE_EQ(report->final.tasks[0].best_seconds, best);
}

TEST(Tune, SpendsTrialsOnTheBottleneck) {
  Bench bench;
  bench.options.trials = 200;
  const std::vector<TuneTask> tasks{task("small", matmul(16, 16, 16)), task("large", matmul(64, 64, 64), 5),
                                    task("other", softmax(8, 64))};
  const std::string large = tasks[1].task->key();
  FakeMeasurer measurer(
      [&](const std::string& key, const sched::Trace& trace) {
        return took(pseudo_seconds(trace) * (key == large ? 1 : 1e-2));
      },
      bench.clock);
  const auto report = bench.run(tasks, measurer);
  ASSERT_TRUE(report.ok());
  const auto& t = report->final.tasks;
  EXPECT_GT(t[1].trials, 2 * (t[0].trials + t[2].trials));
  // The report says what each task got, and why. A measurement takes 0.1 s.
  ASSERT_EQ(report->allocation.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const TaskAllocation& allocation = report->allocation[i];
    EXPECT_EQ(allocation.trials, t[i].trials);
    EXPECT_NEAR(allocation.seconds, 0.1 * static_cast<double>(allocation.trials), 1e-6);
    EXPECT_LE(allocation.rounds[0], 1);
  }
  EXPECT_EQ(report->allocation[1].rounds[0], 1);
  EXPECT_GT(report->allocation[1].rounds[1], report->allocation[0].rounds[1]);
  EXPECT_GT(report->allocation[1].next_gain, 0);

  // A second run measures something new; records of the first do not count for it.
  bench.options.trials = 8;
  const auto second = bench.run(tasks, measurer);
  ASSERT_TRUE(second.ok());
  int64_t trials = 0;
  for (const TaskAllocation& allocation : second->allocation) trials += allocation.trials;
  EXPECT_EQ(trials, second->final.trials);
}

// A structure that the estimate misjudges gets few trials once measurements show it.
TEST(Tune, MeasurementsCorrectTheEstimateOfAStructure) {
  Bench bench;
  bench.options.trials = 160;
  const std::vector<TuneTask> tasks{task("a", matmul(64, 64, 64))};
  const auto space = space::DesignSpace::build(tasks[0].task->workload(), test::device(), {});
  ASSERT_TRUE(space.ok());
  const int favourite = space->default_candidate().sketch;
  FakeMeasurer measurer(pseudo(), bench.clock);
  // All programs of the favourite structure are a hundred times slower than estimated.
  class Judge final : public measure::Measurer {
   public:
    Judge(FakeMeasurer& inner, int bad, const space::DesignSpace& space)
        : inner_(inner), bad_(bad), space_(space) {}
    Result<std::vector<record::MeasureResult>> measure(const ir::Workload& workload,
                                                       std::span<const measure::MeasureRequest> candidates,
                                                       double best, const Done& done) override {
      return inner_.measure(workload, candidates, best, [&](size_t i, const record::MeasureResult&) {
        // Candidates without a point are the winners, which are measured again.
        const auto& point = candidates[i].what.point;
        const auto candidate = point ? from_point(*point) : space_.default_candidate();
        const bool bad = candidate.sketch == bad_;
        (bad ? bads : goods) += 1;
        return done(i, took((bad ? 100 : 1) * space_.estimate(candidate)));
      });
    }
    int bads = 0, goods = 0;

   private:
    FakeMeasurer& inner_;
    const int bad_;
    const space::DesignSpace& space_;
  } judge(measurer, favourite, *space);
  ASSERT_TRUE(bench.run(tasks, judge).ok());
  EXPECT_GT(judge.goods, 3 * judge.bads);
}

// The programs measured first after the defaults include the other task's best one, adapted to
// these shapes.
TEST(Tune, TasksOfTheSameKindLearnFromEachOther) {
  const std::vector<TuneTask> tasks{task("large", matmul(64, 64, 64), 1),
                                    task("small", matmul(48, 48, 48), 1)};
  const auto large = space::DesignSpace::build(tasks[0].task->workload(), test::device(), {});
  const auto small = space::DesignSpace::build(tasks[1].task->workload(), test::device(), {});
  ASSERT_TRUE(large.ok() && small.ok());
  for (int seed = 1; seed <= 5; ++seed) {
    Bench bench;
    bench.options.trials = 24;
    bench.options.seed = static_cast<uint64_t>(seed);
    bench.options.strategy = &kRandomStrategy;
    std::vector<std::string> seen;  // programs of the small task
    std::string best;  // of the large task before the small one's first round, which follows its default
    double best_seconds = 1e9;
    FakeMeasurer measurer(
        [&](const std::string& key, const sched::Trace& trace) {
          const double seconds = pseudo_seconds(trace) * (key == tasks[0].task->key() ? 1 : 0.1);
          if (key == tasks[1].task->key()) {
            seen.push_back(sched::print(trace));
          } else if (seen.size() < 2 && seconds < best_seconds) {
            best_seconds = seconds;
            best = sched::print(trace);
          }
          return took(seconds);
        },
        bench.clock);
    ASSERT_TRUE(bench.run(tasks, measurer).ok());
    const auto records =
        bench.database->records_of(tasks[0].task->key(), test::device().key(), record::MeasureSettings());
    ASSERT_TRUE(records.ok());
    space::Candidate candidate = large->default_candidate();
    for (const auto& r : *records) {
      const auto c = from_point(r.candidate.point.value());
      if (sched::print(*large->to_trace(c)) == best) candidate = c;
    }
    const auto fitted = small->rescale(*large, candidate);
    ASSERT_TRUE(fitted.ok());
    ASSERT_GT(seen.size(), 1U);
    // The default comes first, and the adapted best program may equal it.
    const std::string expected = sched::print(*small->to_trace(*fitted));
    EXPECT_TRUE(expected == seen[0] || expected == seen[1]) << "seed " << seed;
  }
}

TEST(Tune, LeavesOutWhatTakesNoTime) {
  Bench bench;
  bench.options.trials = 60;
  std::vector<TuneTask> tasks{task("large", matmul(64, 64, 64)), task("tiny", softmax(4, 32))};
  tasks[0].hint_seconds = 1e-2;
  tasks[1].hint_seconds = 1e-6;
  FakeMeasurer measurer(
      [&](const std::string& key, const sched::Trace& trace) {
        return took(key == tasks[1].task->key() ? 1e-6 : pseudo_seconds(trace));
      },
      bench.clock);
  const auto report = bench.run(tasks, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->final.tasks[0].trials, 60);
  EXPECT_EQ(report->final.tasks[1].trials, 1);  // its default is checked, which does not count as a trial
  EXPECT_EQ(report->final.trials, 60);
  EXPECT_EQ(report->allocation[0].end, TaskEnd::kOpen);
  EXPECT_EQ(report->allocation[1].end, TaskEnd::kSmall);
  EXPECT_EQ(report->allocation[1].rounds, (std::array<int64_t, 3>{0, 0, 0}));
  const auto space = space::DesignSpace::build(tasks[1].task->workload(), test::device(), {});
  EXPECT_EQ(sched::print(report->best_traces[1]), sched::print(*space->to_trace(space->default_candidate())));
}

TEST(Tune, LooksAtTheTimeInsideARound) {
  Bench bench;
  bench.options.seconds = 10;
  bench.options.batch = 64;
  bench.options.confirm = false;
  int n = 0;
  // The time of the default does not show how slow the others are to build.
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        bench.clock.now += n++ == 0 ? 0 : 1;
        return took(pseudo_seconds(trace));
      },
      bench.clock, 0.01);
  const auto report = bench.run({task("a", matmul(64, 64, 64))}, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_LE(report->final.elapsed_seconds, 10 + 1);
}

TEST(Tune, ResumesAfterBeingKilledAndMeasuresNothingTwice) {
  const std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32)), task("b", softmax(8, 64))};
  for (int64_t kill_after : {0, 1, 2, 9, 23}) {
    SCOPED_TRACE("killed after " + std::to_string(kill_after));
    Bench bench;
    bench.options.trials = 40;
    FakeMeasurer measurer(pseudo(), bench.clock);
    measurer.kill_after = kill_after;
    EXPECT_THROW((void)bench.run(tasks, measurer), Killed);
    EXPECT_EQ(*bench.database->record_count(), kill_after);
    measurer.kill_after = -1;
    bench.options.seed = 2;
    const auto report = bench.run(tasks, measurer);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->final.resumed, kill_after);
    EXPECT_EQ(report->final.trials, 40);
    EXPECT_EQ(*bench.database->record_count(), kill_after + 40);
    for (const auto& [program, count] : measurer.counts) EXPECT_EQ(count, 1) << program;
  }
}

TEST(Tune, TakesWhatAnotherProcessMeasuredMeanwhile) {
  Bench bench;
  bench.options.trials = 30;
  const std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32))};
  FakeMeasurer first(pseudo(), bench.clock);
  ASSERT_TRUE(bench.run(tasks, first).ok());
  // With the same seed a fresh search would propose the same programs, but the database has them.
  FakeMeasurer second(pseudo(), bench.clock);
  const auto again = bench.run(tasks, second);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->final.resumed, 30);
  for (const auto& [program, count] : second.counts) EXPECT_EQ(first.counts.count(program), 0U) << program;
}

TEST(Tune, FailuresCostOnlyTheCandidate) {
  Bench bench;
  bench.options.trials = 60;
  int n = 0;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        switch (n++ % 4) {
          case 1:
            return failed(record::Outcome::kCrash, "signal 11");
          case 2:
            return failed(record::Outcome::kRunTimeout, "10 s");
          case 3:
            return failed(record::Outcome::kWrongOutput, "element 3");
          default:
            return took(pseudo_seconds(trace));
        }
      },
      bench.clock);
  const auto report = bench.run({task("a", matmul(32, 32, 32))}, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->final.tasks[0].failures, 45);
  EXPECT_TRUE(std::isfinite(report->final.tasks[0].best_seconds));
  EXPECT_EQ(*bench.database->record_count(), 60);
}

TEST(Tune, NothingFasterKeepsTheDefault) {
  Bench bench;
  bench.options.trials = 25;
  const auto t = task("a", matmul(32, 32, 32));
  const auto space = space::DesignSpace::build(t.task->workload(), test::device(), {});
  const std::string default_text = sched::print(*space->to_trace(space->default_candidate()));
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        return sched::print(trace) == default_text ? took(1e-3) : took(2e-3);
      },
      bench.clock);
  const auto report = bench.run({t}, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(sched::print(report->best_traces[0]), default_text);
}

TEST(Tune, AFailingDefaultIsReplaced) {
  Bench bench;
  bench.options.trials = 25;
  const auto t = task("a", matmul(32, 32, 32));
  const auto space = space::DesignSpace::build(t.task->workload(), test::device(), {});
  const std::string default_text = sched::print(*space->to_trace(space->default_candidate()));
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        return sched::print(trace) == default_text ? failed(record::Outcome::kBuildError, "no") : took(2e-3);
      },
      bench.clock);
  const auto report = bench.run({t}, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_NE(sched::print(report->best_traces[0]), default_text);
  EXPECT_TRUE(std::isinf(report->final.tasks[0].default_seconds));
}

// The first measurement of one program is a lucky outlier below the default; repeated measurements
// are slower.
TEST(Tune, NoiseDoesNotBeatTheDefault) {
  Bench bench;
  bench.options.trials = 25;
  const auto t = task("a", matmul(32, 32, 32));
  const auto space = space::DesignSpace::build(t.task->workload(), test::device(), {});
  const std::string default_text = sched::print(*space->to_trace(space->default_candidate()));
  std::set<std::string> seen;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        const std::string text = sched::print(trace);
        if (text == default_text) return took(1e-3);
        return took(seen.insert(text).second && seen.size() == 5 ? 0.97e-3 : 1.2e-3);
      },
      bench.clock);
  const auto report = bench.run({t}, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(sched::print(report->best_traces[0]), default_text);
}

TEST(Tune, StopsWhenTheTimeIsOver) {
  Bench bench;
  bench.options.seconds = 10;
  FakeMeasurer measurer(pseudo(), bench.clock, 0.1);
  const double before = bench.clock.now;
  const auto report = bench.run({task("a", matmul(32, 32, 32)), task("b", softmax(8, 64))}, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->final.trials, 60);
  EXPECT_LT(bench.clock.now - before, 12);
}

TEST(Tune, StopsWhenCancelled) {
  Bench bench;
  bench.options.trials = 1000;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        bench.cancel = true;
        return took(pseudo_seconds(trace));
      },
      bench.clock);
  const auto report = bench.run({task("a", matmul(32, 32, 32))}, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_LE(report->final.trials, 8);
  EXPECT_EQ(report->best_traces.size(), 1U);
}

TEST(Tune, StopsWhenTheSpaceIsExhausted) {
  Bench bench;
  bench.options.trials = 100000;
  FakeMeasurer measurer(pseudo(), bench.clock, 0);
  const auto report = bench.run({task("tiny", elementwise_chain(3))}, measurer);
  ASSERT_TRUE(report.ok());
  EXPECT_LT(report->final.trials, 1000);
  for (const auto& [program, count] : measurer.counts) EXPECT_EQ(count, 1) << program;
}

TEST(Tune, LostWorkersAreNoRecordsAndEndTheRun) {
  Bench bench;
  bench.options.trials = 1000;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace&) {
        return failed(record::Outcome::kWorkerLost, "fork: resource temporarily unavailable");
      },
      bench.clock);
  const auto report = bench.run({task("a", matmul(32, 32, 32))}, measurer);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kIo);
  EXPECT_EQ(*bench.database->record_count(), 0);
}

TEST(Tune, RefusesBadOptions) {
  Bench bench;
  FakeMeasurer measurer(pseudo(), bench.clock);
  const auto no_limit = bench.run({task("a", matmul(8, 8, 8))}, measurer);
  ASSERT_FALSE(no_limit.ok());
  EXPECT_EQ(no_limit.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(no_limit.error().reason.find("no limit"), std::string::npos);
  bench.options.trials = 5;
  bench.options.batch = 0;
  EXPECT_FALSE(bench.run({task("a", matmul(8, 8, 8))}, measurer).ok());
}

// Each record gives the reason for its measurement and the strategy that proposed it; its point of
// the space gives its trace.
TEST(Tune, RecordsSayWhatTheyAreAbout) {
  Bench bench;
  bench.options.trials = 120;
  const std::vector<TuneTask> tasks{task("a", matmul(64, 64, 64)), task("b", matmul(48, 48, 48))};
  FakeMeasurer measurer(pseudo(), bench.clock);
  ASSERT_TRUE(bench.run(tasks, measurer).ok());
  std::map<Reason, int> counts;
  for (const auto& t : tasks) {
    const auto space = space::DesignSpace::build(t.task->workload(), test::device(), {});
    ASSERT_TRUE(space.ok());
    const auto records =
        bench.database->records_of(t.task->key(), test::device().key(), record::MeasureSettings());
    ASSERT_TRUE(records.ok());
    for (const auto& r : *records) {
      ++counts[r.candidate.reason];
      const bool proposed =
          r.candidate.reason != Reason::kDefault && r.candidate.reason != Reason::kTransferred;
      EXPECT_EQ(r.candidate.strategy, proposed ? "evolutionary" : "");
      EXPECT_EQ(r.candidate.note, "");
      ASSERT_TRUE(r.candidate.point);
      EXPECT_EQ(sched::print(*space->to_trace(from_point(*r.candidate.point))), r.trace);
    }
  }
  EXPECT_EQ(counts[Reason::kDefault], 2);
  EXPECT_EQ(counts[Reason::kUnstated], 0);
  for (const Reason reason : {Reason::kPredicted, Reason::kNeighbour, Reason::kRandom, Reason::kTransferred})
    EXPECT_GT(counts[reason], 0) << to_string(reason);
}

// Plain loops replace a default schedule that does not run.
TEST(Tune, RecordsNameTheFallback) {
  Bench bench;
  bench.options.trials = 2;
  const std::vector<TuneTask> tasks{task("a", matmul(32, 32, 32))};
  int calls = 0;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        return ++calls == 1 ? failed(record::Outcome::kCrash, "signal 11") : took(pseudo_seconds(trace));
      },
      bench.clock);
  ASSERT_TRUE(bench.run(tasks, measurer).ok());
  ASSERT_GE(measurer.log.size(), 2u);
  EXPECT_EQ(measurer.log[0].second.reason, Reason::kDefault);
  EXPECT_EQ(measurer.log[1].second.reason, Reason::kFallback);
  EXPECT_EQ(measurer.log[1].second.strategy, "");
}

}  // namespace
}  // namespace tensorsmith::search::tuner_test
