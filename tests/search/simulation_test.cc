// Searches on recorded programs: the space that they make, and that a search over it needs no
// measurements.
#include "search/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ir/text.h"
#include "lab/strategies/strategies.h"
#include "learn/latency/kinds.h"
#include "search_testing.h"
#include "support/standard_workloads.h"

namespace tensorsmith::search::simulation_test {
namespace {

using namespace tensorsmith::test::standard;
using test::Killed;

// Returns programs of a design space, drawn by the seed. The time of a program is its draft value,
// so that similar programs have similar times.
std::vector<RecordedProgram> programs_of(const ir::Workload& workload, size_t count, uint64_t seed) {
  const auto space = space::DesignSpace::build(workload, test::device(), {}).value();
  const auto task = std::make_shared<const QueriedTask>("", "", workload, 0, test::device());
  CandidateFeatures features(space, task, {.rows = true, .leaves = true, .trace = true});
  Rng rng(seed);
  std::vector<RecordedProgram> programs;
  std::set<std::string> seen;
  for (size_t attempt = 0; programs.size() < count && attempt < 50 * count; ++attempt) {
    const auto candidate = space.sample(rng);
    RecordedProgram program;
    program.trace = space.to_trace(candidate).value();
    if (!seen.insert(sched::print(program.trace)).second) continue;
    program.inputs = features.of(candidate).value();
    program.result = test::took(space.estimate(candidate));
    programs.push_back(std::move(program));
  }
  return programs;
}

std::shared_ptr<const RecordedSpace> recorded(const ir::Workload& workload, size_t count, uint64_t seed) {
  return RecordedSpace::create(workload, programs_of(workload, count, seed)).value();
}

std::shared_ptr<const RecordedSpace> space_of(const TuneTask& task) {
  return {task.task, static_cast<const RecordedSpace*>(&task.task->space())};
}

struct Simulated {
  std::unique_ptr<record::Database> database = std::move(*record::Database::open(":memory:"));
  TuneOptions options;
  std::vector<double> best;
  int64_t kill_after = -1;

  Simulated() {
    options.trials = 60;
    options.batch = 8;
    options.seed = 3;
    options.replay = true;
    options.confirm = false;
  }
  Result<TuneReport> run(const std::vector<TuneTask>& tasks, learn::CostModel* model) {
    SimulatedClock clock;
    ReplayMeasurer measurer(clock);
    for (const auto& task : tasks) measurer.add_task(task.task->key(), space_of(task));
    NullLogSink log;
    std::atomic<bool> cancel{false};
    int64_t trials = 0;
    return tune(tasks, test::device(), options,
                {*database, measurer, model, clock, log, cancel, [&](const TuneProgress& p) {
                   best.push_back(p.model_best_seconds());
                   if (++trials == kill_after) throw Killed();
                 }});
  }
  // Returns task and program of every record, in order.
  std::vector<std::string> records() const {
    std::vector<std::string> list;
    EXPECT_TRUE(database
                    ->for_each([&](const record::Record& r) {
                      list.push_back(r.task_key + " " + r.trace);
                      return Status();
                    })
                    .ok());
    return list;
  }
};

TuneTask recorded_task(const std::string& name, ir::Workload workload, size_t count, uint64_t seed) {
  learn::StoredWorkload stored{ir::structural_key(workload), name, ir::print(workload), 1e6, {}};
  return {.task = PreparedTask::create(std::move(stored), recorded(std::move(workload), count, seed),
                                       std::make_shared<const target::Device>(test::device()))
                      .value()};
}

// A search tells the cost model which programs another compiler made.
TEST(RecordedSpace, ProgramsOfAnotherCompilerStayForeign) {
  const ir::Workload workload = matmul(16, 16, 16);
  for (const bool foreign : {false, true}) {
    learn::StoredWorkload stored{ir::structural_key(workload), "matmul", ir::print(workload), 1e6, {}};
    if (foreign) stored.foreign_keys = {"key of Ansor"};
    const auto task = PreparedTask::create(stored, recorded(workload, 4, 1),
                                           std::make_shared<const target::Device>(test::device()));
    ASSERT_TRUE(task.ok());
    const QueriedTask& queried = (*task)->queried();
    EXPECT_EQ(queried.stored.foreign_keys, stored.foreign_keys);
    EXPECT_EQ(queried.access.workload == nullptr, foreign);
  }
}

TEST(RecordedSpace, HoldsEachProgramOnce) {
  auto programs = programs_of(matmul(60, 64, 48), 100, 1);
  ASSERT_GE(programs.size(), 80U);
  const size_t count = programs.size();
  double fastest = 1e9;
  for (const auto& p : programs) fastest = std::min(fastest, p.result.best_estimate());
  // A repeated program, of which the first result counts, and a failed program at the front, which
  // cannot be the default.
  programs.push_back(programs[5]);
  programs.back().result = test::took(1e-12);
  programs.front().result = test::failed(record::Outcome::kCrash, "signal 11");
  const auto space = RecordedSpace::create(matmul(60, 64, 48), programs).value();
  EXPECT_EQ(space->size(), count);
  EXPECT_GE(space->best_seconds(), fastest);
  const auto all = space->listed(1'000'000);
  std::set<uint64_t> different;
  for (const auto& c : all) {
    EXPECT_TRUE(space->check(c).ok());
    different.insert(c.hash());
  }
  EXPECT_EQ(different.size(), count);
  EXPECT_EQ(space->to_trace(space->default_candidate()).value(), programs[1].trace);
  EXPECT_FALSE(space->check({0, {static_cast<int64_t>(count)}}).ok());
  EXPECT_FALSE(space->check({0, {-1}}).ok());
  EXPECT_EQ(space->result_of({{sched::Unroll{77, 1}}}), nullptr);
}

// Neighbours have similar tile lengths, compared with a brute-force search over the tile lengths in
// the traces' text.
TEST(RecordedSpace, NeighboursHaveTheSameStructureAndNearLengths) {
  const auto space = recorded(matmul(60, 64, 48), 200, 2);
  Rng rng(5);
  int moved = 0;
  for (int i = 0; i < 200; ++i) {
    const auto c = space->sample(rng);
    for (const auto& n : space->neighbours(c)) {
      EXPECT_EQ(n.sketch, c.sketch);
      EXPECT_NE(n, c);
    }
    const auto next = space->mutate(c, rng);
    moved += next == c ? 0 : 1;
    EXPECT_TRUE(space->check(next).ok());
    EXPECT_TRUE(space->check(space->crossover(c, space->sample(rng), rng)).ok());
  }
  EXPECT_GT(moved, 150);
}

TEST(RecordedSpace, RefusesProgramsOfWhichNoneRan) {
  auto programs = programs_of(matmul(12, 8, 4), 5, 3);
  for (auto& p : programs) p.result = test::failed(record::Outcome::kCrash, "signal 11");
  EXPECT_FALSE(RecordedSpace::create(matmul(12, 8, 4), programs).ok());
}

TEST(Simulation, FindsTheFastestOnceAllIsMeasured) {
  Simulated simulated;
  simulated.options.trials = 1000;
  const auto task = recorded_task("a", matmul(60, 64, 48), 120, 4);
  const RecordedSpace& space = *space_of(task);
  const auto report = simulated.run({task}, nullptr);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->end, SearchEnd::kExhausted);
  EXPECT_EQ(simulated.best.size(), space.size());
  EXPECT_DOUBLE_EQ(simulated.best.back(), space.best_seconds());
}

// The draft of this space says nothing, so only a model can beat chance; this model is right.
TEST(Simulation, AModelThatIsRightFindsFastProgramsSooner) {
  class Oracle final : public learn::CostModel {
   public:
    explicit Oracle(const RecordedSpace& space) : space_(space) {}
    Result<std::vector<learn::Prediction>> predict(
        std::span<const learn::ProgramQuery> queries) const override {
      std::vector<learn::Prediction> out;
      for (const auto& q : queries)
        out.push_back({.seconds = space_.result_of(*q.trace)->best_estimate(), .log_sigma = 0.01});
      return out;
    }
    learn::ModelInputs inputs() const override { return {.trace = true}; }
    const learn::ModelCard& card() const override { return card_; }
    Status save(const std::string& path) const override {
      return Error{ErrorCode::kUnsupported, path, "a test's model"};
    }

   private:
    const RecordedSpace& space_;
    learn::ModelCard card_;
  };
  int wins = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto task = recorded_task("a", matmul(60, 64, 48), 600, seed);
    Oracle oracle(*space_of(task));
    Simulated with, without;
    with.options.trials = without.options.trials = 24;
    with.options.seed = without.options.seed = seed;
    without.options.strategy = &kRandomStrategy;
    ASSERT_TRUE(with.run({task}, &oracle).ok());
    ASSERT_TRUE(without.run({task}, nullptr).ok());
    wins += with.best.back() < without.best.back() ? 1 : 0;
  }
  EXPECT_GE(wins, 4);
}

// Wherever a search is killed, within a round or between rounds, a restarted search makes the same
// measurements in the same order and ends with the same programs. Checks every strategy, with a
// model that learns, over tasks that share the trials.
TEST(Simulation, AKilledSearchEndsWhereAnUnbrokenOneDoes) {
  const std::vector<TuneTask> tasks = {recorded_task("a", matmul(60, 64, 48), 150, 6),
                                       recorded_task("b", matmul(32, 48, 96), 150, 7)};
  for (const StrategyKind* strategy :
       {&kEvolutionaryStrategy, &lab::kAnnealingStrategy, &lab::kDescentStrategy, &lab::kMixedStrategy,
        &kRandomStrategy, &kExhaustiveStrategy}) {
    const auto model = [] { return learn::product_kinds().make_untrained("xgboost", {.seed = 1}).value(); };
    Simulated unbroken;
    unbroken.options.strategy = strategy;
    auto its_model = model();
    const auto expected = unbroken.run(tasks, its_model.get());
    ASSERT_TRUE(expected.ok()) << expected.error().message();
    ASSERT_EQ(unbroken.records().size(), 60U);
    for (const int64_t kill_after : {1, 7, 8, 9, 33, 59}) {
      SCOPED_TRACE(std::string(strategy->name) + ", killed after " + std::to_string(kill_after));
      Simulated killed;
      killed.options.strategy = strategy;
      killed.kill_after = kill_after;
      auto first = model();
      EXPECT_THROW((void)killed.run(tasks, first.get()), Killed);
      // The last measurement before the kill may not have reached the database.
      EXPECT_GE(static_cast<int64_t>(killed.records().size()), kill_after - 1);
      EXPECT_LT(killed.records().size(), 60U);
      killed.kill_after = -1;
      auto second = model();
      const auto report = killed.run(tasks, second.get());
      ASSERT_TRUE(report.ok()) << report.error().message();
      EXPECT_EQ(killed.records(), unbroken.records());
      for (size_t t = 0; t < tasks.size(); ++t) {
        EXPECT_EQ(sched::print(report->best_traces[t]), sched::print(expected->best_traces[t]));
        EXPECT_EQ(report->final.tasks[t].best_seconds, expected->final.tasks[t].best_seconds);
      }
    }
    // Without the replay the measurements differ, so the comparison above is meaningful.
    Simulated ahead;
    ahead.options.strategy = strategy;
    ahead.kill_after = 33;
    auto first = model();
    EXPECT_THROW((void)ahead.run(tasks, first.get()), Killed);
    ahead.kill_after = -1;
    ahead.options.replay = false;
    auto second = model();
    ASSERT_TRUE(ahead.run(tasks, second.get()).ok());
    EXPECT_NE(ahead.records(), unbroken.records()) << strategy->name;
  }
}

TEST(Simulation, SaysWhatWasNotRecorded) {
  SimulatedClock clock;
  ReplayMeasurer measurer(clock);
  const measure::MeasureRequest plain{};
  EXPECT_FALSE(measurer.measure(matmul(4, 4, 4), std::span(&plain, 1), 0, {}).ok());
  const auto space = recorded(matmul(4, 4, 4), 3, 8);
  measurer.add_task(ir::structural_key(space->workload()), space);
  sched::Trace other;
  other.steps.emplace_back(sched::Unroll{0, 12345});
  const measure::MeasureRequest unknown{other, {}};
  EXPECT_FALSE(measurer.measure(space->workload(), std::span(&unknown, 1), 0, {}).ok());
}

}  // namespace
}  // namespace tensorsmith::search::simulation_test
