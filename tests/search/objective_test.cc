// Objectives of a search: their texts, the memory of programs compared with the allocations of their
// code, and searches compared with brute force.
#include "search/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "ir/analysis.h"
#include "lower/lower.h"
#include "record/energy.h"
#include "search/recorded_space.h"
#include "search_testing.h"
#include "support/print_schedule.h"
#include "support/standard_workloads.h"

namespace tensorsmith::search::objective_test {
namespace {

using namespace tensorsmith::test::standard;
using test::Bench;
using test::FakeMeasurer;
using test::took;
using ::testing::HasSubstr;

target::Device device_of_four_cores() {
  target::Device device = test::device();
  device.cpu().cores = 4;
  return device;
}

// Adds up the tensors that the lowered program allocates, those inside a parallel loop once for each core.
void add_allocations(const ir::Stmt& s, int64_t copies, const target::Device& device,
                     std::map<const ir::BufferNode*, int64_t>& bytes) {
  if (s == nullptr) return;
  const auto in = [&](const ir::Stmt& part, int64_t more) { add_allocations(part, more, device, bytes); };
  ir::visit(ir::overloaded{
                [&](const ir::For& loop) {
                  in(loop.body, loop.kind == ir::ForKind::kParallel ? device.compute_units() : copies);
                },
                [&](const ir::Store&) {},
                [&](const ir::IfThenElse& branch) {
                  in(branch.then_body, copies);
                  in(branch.else_body, copies);
                },
                [&](const ir::Seq& seq) {
                  for (const ir::Stmt& part : seq.stmts) in(part, copies);
                },
                [&](const ir::Allocate& allocate) {
                  const ir::Buffer& buffer = allocate.buffer;
                  // A tail outside the parallel loop may allocate the same tensor.
                  int64_t& known = bytes[buffer.get()];
                  known =
                      std::max(known, copies * ir::bytes_of(buffer->dtype, buffer->allocation_elements()));
                  in(allocate.body, copies);
                },
            },
            s);
}

int64_t allocated_bytes(const ir::Workload& workload, const sched::Trace& trace,
                        const target::Device& device) {
  const auto lowered = lower::lower(sched::replay(workload, trace).value());
  EXPECT_TRUE(lowered.ok()) << lowered.error().message();
  std::map<const ir::BufferNode*, int64_t> bytes;
  add_allocations(lowered->program.body, 1, device, bytes);
  int64_t total = 0;
  for (const auto& [buffer, size] : bytes) total += size;
  return total;
}

std::vector<ir::Workload> workloads() {
  return {matmul(24, 40, 56), conv2d_bias_relu({.h = 14, .w = 14, .ci = 8, .co = 20}), softmax(12, 33),
          layernorm(9, 70)};
}

TEST(Objective, ReadsFormulas) {
  const auto cost = [](std::string_view text) {
    const auto objective = Objective::parse(text);
    EXPECT_TRUE(objective.ok()) << objective.error().message();
    return objective->cost({.seconds = 0.002, .bytes = 5e6});
  };
  EXPECT_EQ(cost("latency"), 0.002);
  EXPECT_EQ(cost("memory"), 5e6);
  EXPECT_EQ(cost("latency * (1 + memory / 1e6)"), 0.002 * 6);
  EXPECT_EQ(cost("log(latency - 1)"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(Objective::parse("latency")->is_latency());
  EXPECT_FALSE(Objective::parse("2 * latency")->is_latency());
  EXPECT_TRUE(Objective::parse("max(latency, memory)")->uses_memory());
  EXPECT_FALSE(Objective::parse("latency * 2")->uses_memory());
}

TEST(Objective, ErrorsNameTheTextThePlaceAndTheFigures) {
  const auto objective = Objective::parse("latency * (1 + memry)");
  ASSERT_FALSE(objective.ok());
  EXPECT_EQ(objective.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(objective.error().message(),
              AllOf(HasSubstr("objective 'latency * (1 + memry)': 1:16: no variable is called memry"),
                    HasSubstr("latency, memory")));
  EXPECT_THAT(objective.error().message(), Not(HasSubstr("\n")));
}

TEST(Objective, OfEqualCostsTheLessLatencyRanksFirst) {
  const Objective memory = Objective::parse("memory").value();
  EXPECT_LT(memory.log_cost({.seconds = 1e-3, .bytes = 0}), memory.log_cost({.seconds = 2e-3, .bytes = 0}));
  EXPECT_LT(memory.log_cost({.seconds = 1, .bytes = 4096}),
            memory.log_cost({.seconds = 1e-4, .bytes = 8192}));
}

TEST(Objective, UsesWhatItsFormulaNames) {
  EXPECT_TRUE(Objective::parse("latency + 0.1*energy")->uses_energy());
  EXPECT_FALSE(Objective::parse("latency + 0.1*energy")->uses_memory());
  EXPECT_EQ(Objective::parse("latency + 0.1*energy")->cost({.seconds = 2, .joules = 30}), 2 + 0.1 * 30);
  // A program whose energy is not known does not win.
  EXPECT_EQ(Objective::parse("energy")->cost({.seconds = 2, .joules = std::nan("")}),
            std::numeric_limits<double>::infinity());
}

// The memory that a search reads from decisions is that of the program's code.
TEST(TemporaryBytes, AreThoseThatTheCodeAllocates) {
  const target::Device device = device_of_four_cores();
  int64_t programs = 0;
  std::set<int64_t> different;
  for (const ir::Workload& workload : workloads()) {
    const auto task =
        PreparedTask::create({"key", "name"}, workload, std::make_shared<const target::Device>(device), {})
            .value();
    Rng rng(7);
    for (int i = 0; i < 100; ++i) {
      const space::Candidate candidate = task->space().sample(rng);
      const auto trace = task->space().to_trace(candidate);
      if (!trace.ok()) continue;
      const int64_t expected = allocated_bytes(workload, *trace, device);
      const auto bytes = task->space().temporary_bytes(candidate, device);
      ASSERT_TRUE(bytes.ok()) << bytes.error().message();
      ASSERT_EQ(*bytes, expected) << sched::print(*trace)
                                  << tensorsmith::test::print_schedule(
                                         sched::replay(workload, *trace).value());
      different.insert(*bytes);
      ++programs;
    }
  }
  EXPECT_GT(programs, 200);
  EXPECT_GT(different.size(), 20U);
}

// A space of some programs of a convolution, of which those with little memory are slow.
struct SlowIfSmall {
  ir::Workload workload = conv2d_bias_relu({.h = 14, .w = 14, .ci = 8, .co = 20});
  target::Device device = test::device();
  std::vector<RecordedProgram> programs;
  std::map<std::string, double> seconds;
  std::map<std::string, int64_t> bytes;  // of the lowered programs

  SlowIfSmall() {
    const auto space = space::DesignSpace::build(workload, device, {}).value();
    Rng rng(3);
    for (int i = 0; i < 400 && programs.size() < 40; ++i) {
      const auto trace = space.to_trace(space.sample(rng));
      if (!trace.ok() || bytes.contains(sched::print(*trace))) continue;
      const std::string text = sched::print(*trace);
      bytes[text] = allocated_bytes(workload, *trace, device);
      seconds[text] = 1e-3 * (1 + 1e4 / (1 + static_cast<double>(bytes[text])) + 1e-3 * i);
      programs.push_back({*trace, nullptr, took(seconds[text])});
    }
  }
  TuneTask task() const {
    return {.task = PreparedTask::create({ir::structural_key(workload), "conv"},
                                         RecordedSpace::create(workload, programs).value(),
                                         std::make_shared<const target::Device>(device))
                        .value()};
  }
  // Returns the program of the lowest cost.
  std::string best_by(const std::function<double(double seconds, double bytes)>& cost) const {
    std::string best;
    for (const auto& [trace, size] : bytes) {
      const auto key = [&](const std::string& t) {
        return std::pair(cost(seconds.at(t), static_cast<double>(bytes.at(t))), seconds.at(t));
      };
      if (best.empty() || key(trace) < key(best)) best = trace;
    }
    return best;
  }
  // Returns the winner of a search that measures every program.
  std::string winner(const std::string& objective) const {
    Bench bench;
    bench.options.trials = 1000;
    bench.options.confirm = false;
    bench.options.strategy = &kExhaustiveStrategy;
    bench.options.objective = Objective::parse(objective).value();
    FakeMeasurer measurer(
        [&](const std::string&, const sched::Trace& trace) { return took(seconds.at(sched::print(trace))); },
        bench.clock);
    const auto report = bench.run({task()}, measurer);
    EXPECT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(report->objective, objective);
    EXPECT_EQ(measurer.counts.size(), programs.size());
    const std::string best = sched::print(report->best_traces.front());
    EXPECT_EQ(report->final.tasks.front().best_seconds, seconds.at(best));
    EXPECT_DOUBLE_EQ(report->final.tasks.front().best_cost,
                     bench.options.objective.cost({seconds.at(best), static_cast<double>(bytes.at(best))}));
    return best;
  }
};

TEST(TuneByObjective, FindsWhatBruteForceFinds) {
  const SlowIfSmall space;
  ASSERT_GE(space.programs.size(), 20U);
  const std::string fastest = space.best_by([](double seconds, double) { return seconds; });
  const std::string smallest = space.best_by([](double, double bytes) { return bytes; });
  ASSERT_NE(fastest, smallest);
  ASSERT_LT(space.bytes.at(smallest), space.bytes.at(fastest));
  EXPECT_EQ(space.winner("latency"), fastest);
  EXPECT_EQ(space.winner("memory"), smallest);
  EXPECT_EQ(space.winner("latency * (1 + memory / 1e4)"),
            space.best_by([](double seconds, double bytes) { return seconds * (1 + bytes / 1e4); }));
}

// A later run with another objective continues from the same records and chooses its own winner.
TEST(TuneByObjective, RecordsOfOneObjectiveServeAnother) {
  const SlowIfSmall space;
  const std::string smallest = space.best_by([](double, double bytes) { return bytes; });
  Bench bench;
  bench.options.trials = 1000;
  bench.options.confirm = false;
  bench.options.strategy = &kExhaustiveStrategy;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        return took(space.seconds.at(sched::print(trace)));
      },
      bench.clock);
  const TuneTask task = space.task();
  const auto fast = bench.run({task}, measurer);
  ASSERT_TRUE(fast.ok()) << fast.error().message();
  EXPECT_NE(sched::print(fast->best_traces.front()), smallest);
  bench.options.objective = Objective::parse("memory").value();
  const auto small = bench.run({task}, measurer);
  ASSERT_TRUE(small.ok()) << small.error().message();
  EXPECT_EQ(sched::print(small->best_traces.front()), smallest);
  EXPECT_EQ(small->final.trials, 0);
}

// The smallest program is doubtful, so it is measured again, and then it crashes.
TEST(TuneByObjective, AProgramThatFailsAtLastDoesNotWin) {
  SlowIfSmall space;
  const std::string fastest = space.best_by([](double seconds, double) { return seconds; });
  const std::string smallest = space.best_by([](double, double bytes) { return bytes; });
  ASSERT_LT(space.bytes.at(smallest), space.bytes.at(fastest));
  std::erase_if(space.programs, [&](const RecordedProgram& program) {
    const std::string text = sched::print(program.trace);
    return text != smallest && text != fastest;
  });
  Bench bench;
  bench.options.trials = 1000;
  bench.options.strategy = &kExhaustiveStrategy;
  bench.options.objective = Objective::parse("memory").value();
  int readings = 0;  // of the smallest program
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        const std::string text = sched::print(trace);
        record::MeasureResult result = took(space.seconds.at(text));
        if (text != smallest) return result;
        if (readings++ > 0) return test::failed(record::Outcome::kCrash, "signal 11");
        result.disturbance = 0.5;
        return result;
      },
      bench.clock);
  const auto report = bench.run({space.task()}, measurer);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_GT(readings, 1);
  EXPECT_EQ(sched::print(report->best_traces.front()), fastest);
}

// The slowest program takes the least energy. Records without energy are measured again, and the energy
// is kept with the record.
TEST(TuneByObjective, EnergyIsMeasuredOnceForEachRecord) {
  const SlowIfSmall space;
  const auto slowest = std::max_element(space.seconds.begin(), space.seconds.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  Bench bench;
  bench.options.trials = 1000;
  bench.options.confirm = false;
  bench.options.strategy = &kExhaustiveStrategy;
  bool measures_energy = false;
  FakeMeasurer measurer(
      [&](const std::string&, const sched::Trace& trace) {
        const double seconds = space.seconds.at(sched::print(trace));
        record::MeasureResult result = took(seconds);
        if (measures_energy) result.joules = 1e-3 / seconds;
        return result;
      },
      bench.clock);
  const TuneTask task = space.task();
  ASSERT_TRUE(bench.run({task}, measurer).ok());
  const auto programs = static_cast<int64_t>(space.programs.size());
  ASSERT_EQ(*bench.database->record_count(), programs);
  bench.options.objective = Objective::parse("energy").value();
  measures_energy = true;
  for (const bool again : {false, true}) {
    const auto report = bench.run({task}, measurer);
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(report->final.resumed, again ? programs : 0);
    EXPECT_EQ(sched::print(report->best_traces.front()), slowest->first);
    EXPECT_DOUBLE_EQ(report->final.tasks.front().best_cost, 1e-3 / slowest->second);
  }
  EXPECT_EQ(*bench.database->record_count(), programs);
  EXPECT_EQ(record::energies(*bench.database)->size(), space.programs.size());
}

// In a space that is too large to measure, the known memory guides the search.
TEST(TuneByObjective, MemoryGuidesTheSearch) {
  const ir::Workload workload = conv2d_bias_relu({.h = 14, .w = 14, .ci = 8, .co = 20});
  const TuneTask conv = test::task("conv", workload);
  std::vector<int64_t> random;
  Rng rng(5);
  while (random.size() < 60) {
    const auto bytes = conv.task->space().temporary_bytes(conv.task->space().sample(rng), test::device());
    if (bytes.ok()) random.push_back(*bytes);
  }
  std::sort(random.begin(), random.end());
  Bench bench;
  bench.options.trials = 24;
  bench.options.objective = Objective::parse("memory").value();
  FakeMeasurer measurer(test::pseudo(), bench.clock);
  const auto report = bench.run({conv}, measurer);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_LE(allocated_bytes(workload, report->best_traces.front(), test::device()),
            random[random.size() / 4]);
}

}  // namespace
}  // namespace tensorsmith::search::objective_test
