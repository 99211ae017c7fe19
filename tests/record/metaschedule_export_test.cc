// Records exported as databases of TVM's MetaSchedule: they are read back with the loops that they had, and TVM has
// checked those of the golden files (tests/oracle/metaschedule.py).
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "record/jsonl.h"
#include "record/line_reader.h"
#include "record/metaschedule/export.h"
#include "record/metaschedule/tir_module.h"
#include "record/metaschedule/workloads.h"
#include "record/metaschedule/write_module.h"
#include "record/record_testing.h"
#include "record/stage_loops.h"
#include "space/design_space.h"
#include "support/golden.h"
#include "support/small_workloads.h"

namespace tensorsmith::record::metaschedule_export_test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kFolder = "data/metaschedule_export/";

TaskInfo task_of(const ir::Workload& workload) {
  return {ir::structural_key(workload), ir::print(workload), "task", 1e6};
}

Record record_of(const TaskInfo& task, const sched::Trace& trace) {
  Record record;
  record.task_key = task.key;
  record.trace = sched::print(trace);
  record.result.seconds = {1e-3, 2e-3};
  return record;
}

// Drops what a module does not tell: which inputs are constants.
ir::Workload all_inputs(const ir::Workload& workload) {
  std::string text = ir::print(workload);
  for (size_t at = 0; (at = text.find("\n  const ", at)) != std::string::npos;)
    text.replace(at + 3, 5, "input");
  return ir::parse_workload(text).value();
}

// The program as TVM keeps it: tails are guarded, constants are not packed, and on CPUs copies have no memory
// of their own.
sched::Trace as_in_tvm(sched::Trace trace, target::DeviceKind device) {
  std::erase_if(trace.steps,
                [](const sched::Step& step) { return std::holds_alternative<sched::PackLayout>(step); });
  for (sched::Step& step : trace.steps) {
    if (auto* split = std::get_if<sched::Split>(&step)) split->tail = sched::TailPolicy::kPredicate;
    if (device == target::DeviceKind::kGpu) continue;
    if (auto* write = std::get_if<sched::CacheWrite>(&step)) write->scope = ir::MemoryScope::kGlobal;
    if (auto* read = std::get_if<sched::CacheRead>(&step)) read->scope = ir::MemoryScope::kGlobal;
  }
  return trace;
}

// The axes of a block are named "v_i" for the loop "i".
std::string lowered_text(const sched::Schedule& schedule) {
  std::string text = ir::print(lower::lower(schedule).value().program);
  for (size_t at = 0; (at = text.find("v_", at)) != std::string::npos;) {
    const bool begins =
        at == 0 || (std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0 && text[at - 1] != '_');
    if (begins) text.erase(at, 2);
    at += begins ? 0 : 2;
  }
  return text;
}

MetaScheduleWorkloads read_workloads(const MetaScheduleExporter& exporter) {
  const testing::TempDir folder;
  testing::write_file(folder.file("w.json"), exporter.workloads() + "\n");
  auto loaded = MetaScheduleWorkloads::load(folder.file("w.json"));
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  return *std::move(loaded);
}

// Modules compute what their workloads do.
TEST(WriteTirModule, IsReadWithTheSameValues) {
  Rng rng(3);
  int read = 0, refused = 0;
  for (int i = 0; i < 150; ++i) {
    const ir::Workload workload = test::small::random(rng);
    SCOPED_TRACE(ir::print(workload));
    const auto written = write_tir_module(workload);
    if (!written.ok()) {
      EXPECT_EQ(written.error().code, ErrorCode::kUnsupported);
      EXPECT_THAT(written.error().reason, HasSubstr("TVM's format"));
      ++refused;
      continue;
    }
    const auto module = read_tir_module(*written);
    if (!module.ok()) {
      EXPECT_EQ(module.error().code, ErrorCode::kUnsupported) << module.error().message();
      continue;
    }
    ++read;
    std::vector<lower::Tensor> inputs;
    for (const ir::Buffer& input : workload.inputs())
      inputs.push_back(lower::random_tensor(input->dtype, input->shape, rng, 2));
    const auto expected = lower::evaluate(workload, inputs),
               values = lower::evaluate(module->workload, inputs);
    ASSERT_TRUE(expected.ok() && values.ok());
    ASSERT_EQ(expected->size(), values->size());
    for (size_t output = 0; output < expected->size(); ++output)
      EXPECT_EQ((*expected)[output].data, (*values)[output].data);
  }
  EXPECT_GT(read, 100) << refused << " refused";
}

TEST(WriteTirModule, KeepsInfinitiesAndSaysWhatItCannotExpress) {
  const auto module_of = [](const std::string& body) {
    const auto workload = ir::parse_workload("workload {\n  input a: f32[4]\n" + body + "  output b\n}\n");
    EXPECT_TRUE(workload.ok()) << workload.error().message();
    return write_tir_module(*workload);
  };
  const auto padded = module_of("  b: f32[i: 6] = select(i < 4, a[i], f32(-inf))\n");
  ASSERT_TRUE(padded.ok()) << padded.error().message();
  EXPECT_THAT(*padded, HasSubstr("-Infinity"));
  EXPECT_THAT(ir::print(read_tir_module(*padded)->workload), HasSubstr("f32(-inf)"));
  EXPECT_THAT(module_of("  b: f32[i: 4] = round_tf32(a[i])\n").error().message(),
              HasSubstr("operation 'b': the function round_tf32 cannot be written in TVM's format"));
  EXPECT_THAT(write_tir_module(test::small::arg_max(4, 5)).error().message(),
              HasSubstr("reduction of two values"));
}

// Exports schedules of the design space: the program that is read is the one that was measured.
TEST(MetaScheduleExporter, ProgramsAreReadAsTheyWere) {
  for (const char* name : {"core-i9-12900k:threads=1", "core-i9-12900k:threads=4", "h100"}) {
    const target::Device device = target::find_device(name).value();
    int written = 0, left_out = 0;
    for (const ir::Workload& workload :
         {test::small::matmul(32, 24, 40, true), test::small::conv2d(6, 10, 8, 3, 1, 1),
          test::small::depthwise(8, 11, 3, 2, 1), test::small::softmax(12, 64)}) {
      MetaScheduleExporter exporter;
      const TaskInfo task = task_of(workload);
      ASSERT_TRUE(exporter.add(task).ok());
      const MetaScheduleWorkloads workloads = read_workloads(exporter);
      const auto space = space::DesignSpace::build(workload, device, {}).value();
      Rng rng(7);
      for (int i = 0; i < 40; ++i) {
        const sched::Trace trace = space.to_trace(space.sample(rng)).value();
        const Record record = record_of(task, trace);
        const auto line = exporter.line(record, device);
        if (!line.ok()) {
          EXPECT_EQ(line.error().code, ErrorCode::kUnsupported) << line.error().message();
          EXPECT_THAT(line.error().reason, StartsWith("TVM's MetaSchedule has no "));
          ++left_out;
          continue;
        }
        ++written;
        const auto read = parse_metaschedule_record(*line);
        ASSERT_TRUE(read.ok()) << read.error().message() << *line;
        EXPECT_EQ(read->seconds, record.result.seconds);
        const auto replayed = workloads.replay(*read);
        ASSERT_TRUE(replayed.ok()) << replayed.error().message() << *line << record.trace;
        const auto original = sched::replay(all_inputs(workload), as_in_tvm(trace, device.kind()));
        ASSERT_TRUE(original.ok()) << original.error().message();
        EXPECT_EQ(lowered_text(replayed->program.schedule), lowered_text(*original)) << *line << record.trace;
      }
    }
    EXPECT_GT(written, 2 * left_out) << name;
  }
}

// The golden files are what TVM 0.27 loaded, replayed and ran, with right values; the loops are its own.
TEST(MetaScheduleExporter, TvmMakesTheSameLoops) {
  auto reader =
      LineReader::open(TENSORSMITH_SOURCE_DIR "/tests/" + kFolder + "records.jsonl", size_t{1} << 20);
  ASSERT_TRUE(reader.ok());
  MetaScheduleExporter exporter;
  std::map<std::string, ir::Workload> workloads;
  target::Device device;
  std::string lines, loops;
  LineReader::Line line;
  while (*(*reader)->next(line)) {
    const auto item = parse_json_line(line.text);
    ASSERT_TRUE(item.ok()) << item.error().message();
    if (const auto* info = std::get_if<DeviceInfo>(&*item)) device = info->device;
    if (const auto* task = std::get_if<TaskInfo>(&*item)) {
      ASSERT_TRUE(exporter.add(*task).ok());
      workloads[task->key] = ir::parse_workload(task->text).value();
    }
    const auto* record = std::get_if<Record>(&*item);
    if (record == nullptr) continue;
    const auto written = exporter.line(*record, device);
    ASSERT_TRUE(written.ok()) << written.error().message();
    lines += *written + "\n";
    const auto schedule =
        sched::replay(workloads.at(record->task_key), sched::parse_trace(record->trace).value()).value();
    const sched::Bounds bounds = sched::infer_bounds(schedule).value();
    std::vector<std::string> blocks;
    for (size_t place = 0; place < schedule.stages.size(); ++place) {
      const sched::StageId s(place);
      if (schedule.stages[s].is_placeholder() || schedule.stages[s].attach == sched::AttachKind::kInlined)
        continue;
      testing::StageLoops around;
      testing::add_stage_loops(schedule, bounds, s, std::nullopt, around);
      blocks.push_back(Json(around).dump());
    }
    std::sort(blocks.begin(), blocks.end());
    loops += "[";
    for (const std::string& block : blocks)
      loops += (loops.back() == '[' && loops.size() > 0 ? "" : ",") + block;
    loops += "]\n";
  }
  test::expect_golden(kFolder + "database_workload.json", exporter.workloads() + "\n");
  test::expect_golden(kFolder + "database_tuning_record.json", lines);
  EXPECT_EQ(loops, testing::read_file(TENSORSMITH_SOURCE_DIR "/tests/" + kFolder + "loops.golden.jsonl"));
}

TEST(MetaScheduleExporter, SaysWhyARecordIsLeftOut) {
  MetaScheduleExporter exporter;
  const TaskInfo task = task_of(test::small::matmul(8, 8, 8, true));
  ASSERT_TRUE(exporter.add(task).ok());
  const char* tf32 = "workload {\n  input a: f32[4]\n  b: f32[i: 4] = round_tf32(a[i])\n  output b\n}\n";
  EXPECT_FALSE(exporter.add({"tf32", tf32, "tf32", 1}).ok());
  EXPECT_EQ(exporter.tasks(), 1u);
  const auto error = [&](const std::string& key, const std::string& trace) {
    Record record;
    record.task_key = key;
    record.trace = trace;
    record.result.seconds = {1e-3};
    const auto line = exporter.line(record, {});
    EXPECT_FALSE(line.ok());
    return line.ok() ? Error{} : line.error();
  };
  EXPECT_EQ(error("tf32", "").reason, "the function round_tf32 cannot be written in TVM's format");
  EXPECT_EQ(error(task.key, "winograd stage=2 m=4\n").reason,
            "TVM's MetaSchedule has no instruction for step winograd");
  EXPECT_EQ(error(task.key, "pack_layout stage=2 layout=[1/1%8,0/1%8]\n").reason,
            "TVM's MetaSchedule has no instruction for step pack_layout on intermediate tensors");
  EXPECT_EQ(
      error(task.key,
            "split stage=2 iter=2 lengths=[3] inner=true tail=predicate\nrfactor stage=2 iter=3 axis=0\n")
          .reason,
      "TVM's MetaSchedule has no reduction in parts whose length does not divide the whole");
  EXPECT_EQ(error(task.key, "split stage=9 iter=0 lengths=[3] inner=true tail=predicate\n").code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error("another", "").code, ErrorCode::kNotFound);
}

TEST(MetaScheduleExporter, FailuresAreThoseOfTvm) {
  MetaScheduleExporter exporter;
  const TaskInfo task = task_of(test::small::matmul(8, 8, 8, true));
  ASSERT_TRUE(exporter.add(task).ok());
  Record record = record_of(task, {});
  record.result.outcome = Outcome::kRunTimeout;
  const auto read = parse_metaschedule_record(exporter.line(record, {}).value());
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->failed());
}

TEST(MetaScheduleExporter, TargetsAreThoseOfTvm) {
  MetaScheduleExporter exporter;
  const TaskInfo task = task_of(test::small::matmul(8, 8, 8));
  ASSERT_TRUE(exporter.add(task).ok());
  const auto target = [&](const char* name) {
    const auto line = exporter.line(record_of(task, {}), target::find_device(name).value());
    return Json::parse(line.value())[1][2];
  };
  const Json cpu = target("core-i9-12900k:threads=4"), gpu = target("h100");
  EXPECT_EQ(cpu["kind"], "llvm");
  EXPECT_EQ(cpu["num-cores"], 4);
  EXPECT_EQ(gpu["kind"], "cuda");
  EXPECT_EQ(gpu["arch"], "sm_90");
}

}  // namespace
}  // namespace tensorsmith::record::metaschedule_export_test
