// Databases of MetaSchedule for CPUs, as TVM 0.25 to 0.27 write them: the loops are those of TVM's own programs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lower/interpreter.h"
#include "lower/lower.h"
#include "record/line_reader.h"
#include "record/metaschedule/workloads.h"
#include "record/stage_loops.h"
#include "support/print_schedule.h"

namespace tensorsmith::record::metaschedule_cpu_test {
namespace {

using Json = nlohmann::json;

const std::string kFolder = TENSORSMITH_SOURCE_DIR "/tests/data/metaschedule_cpu/";

std::vector<std::string> lines_of(const std::string& name) {
  std::vector<std::string> out;
  auto reader = LineReader::open(kFolder + name, size_t{1} << 26);
  EXPECT_TRUE(reader.ok());
  LineReader::Line line;
  while (*(*reader)->next(line)) out.push_back(line.text);
  return out;
}

const MetaScheduleWorkloads& workloads() {
  static const auto loaded = MetaScheduleWorkloads::load(kFolder + "database_workload.json.zst");
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  return *loaded;
}

std::vector<MetaScheduleRecord> records() {
  std::vector<MetaScheduleRecord> out;
  for (const std::string& line : lines_of("database_tuning_record.json.zst")) {
    auto record = parse_metaschedule_record(line);
    EXPECT_TRUE(record.ok()) << record.error().message();
    if (record.ok()) out.push_back(*std::move(record));
  }
  return out;
}

// Returns the loops around each block, without those that run once, as loops.golden.jsonl has them.
Json loops_of(const sched::Schedule& schedule) {
  const auto bounds = sched::infer_bounds(schedule);
  EXPECT_TRUE(bounds.ok());
  Json out = Json::object();
  for (size_t place = 0; place < schedule.stages.size(); ++place) {
    const sched::StageId s(place);
    const sched::Stage& stage = schedule.stages[s];
    if (stage.is_placeholder() || stage.attach == sched::AttachKind::kInlined) continue;
    std::string name = stage.op->name;  // ours is "sum.rf", TVM's "sum_rf"
    std::replace(name.begin(), name.end(), '.', '_');
    testing::StageLoops loops;
    testing::add_stage_loops(schedule, *bounds, s, std::nullopt, loops);
    out[name] = {{"loops", loops}, {"unroll", stage.auto_unroll_max_step}};
  }
  return out;
}

TEST(MetaScheduleCpuTest, LoopsAreThoseOfTvm) {
  const auto expected = lines_of("loops.golden.jsonl");
  const auto all = records();
  ASSERT_EQ(all.size(), expected.size());
  int factored = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    SCOPED_TRACE("record " + std::to_string(r));
    const auto replayed = workloads().replay(all[r]);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message();
    const Json loops = loops_of(replayed->program.schedule);
    EXPECT_EQ(loops, Json::parse(expected[r]));
    factored += loops.contains("sum_rf") ? 1 : 0;
    const auto again = sched::replay(replayed->task->workload, replayed->program.trace);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(test::print_schedule(*again), test::print_schedule(replayed->program.schedule));
  }
  EXPECT_GT(factored, 3);
}

TEST(MetaScheduleCpuTest, FactoredReductionsGiveRightValues) {
  int compared = 0;
  for (const MetaScheduleRecord& record : records()) {
    const auto replayed = workloads().replay(record);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message();
    if (!replayed->program.schedule.stage_named("sum.rf")) continue;
    const auto lowered = lower::lower(replayed->program.schedule);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message();
    const ir::Workload& workload = replayed->task->workload;
    Rng rng(5);
    const ir::Buffer input = workload.inputs().front();
    const std::vector<lower::Tensor> inputs = {lower::random_tensor(input->dtype, input->shape, rng)};
    const auto expected = lower::evaluate(workload, inputs);
    const auto computed = lower::run(lowered->program, inputs);
    ASSERT_TRUE(expected.ok() && computed.ok());
    for (int64_t i = 0; i < expected->front().num_elements(); ++i)
      EXPECT_NEAR(computed->front().at(i).f, expected->front().at(i).f, 1e-2) << i;
    if (++compared == 2) break;  // an interpreted sum of 65536 numbers takes its time
  }
  EXPECT_EQ(compared, 2);
}

// The last two lines are the first workload as TVM 0.25 and 0.26 write it.
TEST(MetaScheduleCpuTest, VersionsOfTvmWriteTheSameWorkload) {
  const size_t count = workloads().size();
  ASSERT_EQ(count, 6u);
  ASSERT_NE(workloads().find(0), nullptr);
  for (const size_t line : {count - 2, count - 1}) {
    const auto task = workloads().find(static_cast<int64_t>(line));
    ASSERT_NE(task, nullptr) << line;
    EXPECT_EQ(task->structural_key, workloads().find(0)->structural_key) << line;
    EXPECT_EQ(task->blocks.size(), 2u);
  }
}

}  // namespace
}  // namespace tensorsmith::record::metaschedule_cpu_test
