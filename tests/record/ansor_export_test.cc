// Records exported to TVM's format: the texts of workloads are those that TVM prints, and exported
// records are read back unchanged.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/structural.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "record/ansor/export.h"
#include "record/ansor/workloads.h"
#include "record/ansor/write_dag.h"
#include "space/design_space.h"
#include "support/small_workloads.h"

namespace tensorsmith::record::ansor_export_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kData = TENSORSMITH_SOURCE_DIR "/tests/data/ansor/";

// Drops what the text does not tell: which inputs are constants.
ir::Workload without_constants(const ir::Workload& workload) {
  std::string text = ir::print(workload);
  for (size_t at = 0; (at = text.find("\n  const ", at)) != std::string::npos;)
    text.replace(at + 3, 5, "input");
  return ir::parse_workload(text).value();
}

// Texts that TVM printed for networks are written back unchanged.
TEST(WriteDag, GivesTheTextsOfTvm) {
  std::ifstream file(kData + "workloads.json");
  const auto all = nlohmann::json::parse(file);
  int same = 0;
  for (const auto& [key, entry] : all.items()) {
    SCOPED_TRACE(key);
    const std::string text = entry.is_string() ? entry : entry["compute_dag"];
    const auto workload = parse_dag(text, key);
    ASSERT_TRUE(workload.ok()) << workload.error().message();
    const auto written = to_dag_text(*workload);
    ASSERT_TRUE(written.ok()) << written.error().message();
    const auto again = parse_dag(*written, key);
    ASSERT_TRUE(again.ok()) << again.error().message() << *written;
    EXPECT_EQ(ir::print(*again), ir::print(*workload));
    same += *written == text ? 1 : 0;
  }
  EXPECT_GT(same, static_cast<int>(all.size()) * 9 / 10) << all.size();
}

TEST(WriteDag, RefusesWhatTheTextHasNoFormFor) {
  const auto refused = [](const char* text) {
    const auto workload = ir::parse_workload(text);
    EXPECT_TRUE(workload.ok()) << workload.error().message();
    const auto written = to_dag_text(*workload);
    EXPECT_FALSE(written.ok());
    return written.ok() ? *written : written.error().message();
  };
  EXPECT_THAT(refused("workload {\n  input a: f16[4]\n  b: f16[i: 4] = a[i]\n  output b\n}\n"),
              HasSubstr("operation 'a': a tensor that is not f32"));
  EXPECT_THAT(
      refused("workload {\n  input a: f32[4]\n  b: f32[i: 4] = max(a[i], f32(-inf))\n  output b\n}\n"),
      HasSubstr("operation 'b': an infinity"));
  EXPECT_THAT(
      refused("workload {\n  input a: f32[4, 3]\n  b: f32[] = sum{i: 3, j: 4} a[j, i]\n  output b\n}\n"),
      HasSubstr("not first used in their order"));
}

// Exports schedules of the design space: the program replayed from the line is the one that was
// measured.
TEST(AnsorExporter, LinesAreReadAsTheyWere) {
  for (const char* name : {"core-i9-12900k:threads=1", "h100"}) {
    const target::Device device = target::find_device(name).value();
    int written = 0, left_out = 0, packed = 0;
    for (const ir::Workload& workload :
         {test::small::matmul(32, 24, 40, true), test::small::conv2d(6, 10, 8, 3, 1, 1)}) {
      AnsorExporter exporter;
      const TaskInfo task{ir::structural_key(workload), ir::print(workload), "task", 1e6};
      ASSERT_TRUE(exporter.add(task).ok());
      const auto space = space::DesignSpace::build(workload, device, {}).value();
      Rng rng(7);
      for (int i = 0; i < 40; ++i) {
        const sched::Trace trace = space.to_trace(space.sample(rng)).value();
        Record record;
        record.task_key = task.key;
        record.trace = sched::print(trace);
        record.result.seconds = {1e-3, 2e-3};
        record.unix_ms = 1'700'000'000'000;
        const auto line = exporter.line(record, device);
        if (!line.ok()) {
          EXPECT_EQ(line.error().code, ErrorCode::kUnsupported) << line.error().message();
          EXPECT_THAT(line.error().reason, StartsWith("TVM's records have no s"));
          ++left_out;
          continue;
        }
        ++written;
        AnsorRecord read;
        ASSERT_TRUE(parse_ansor_record(*line, read).ok()) << *line;
        EXPECT_EQ(read.seconds, record.result.seconds);
        EXPECT_EQ(read.unix_seconds, 1'700'000'000);
        EXPECT_THAT(read.target, StartsWith(std::string(name) == "h100" ? "cuda -keys=cuda,gpu -arch=sm_90"
                                                                        : "llvm -keys=cpu"));
        const auto workloads = AnsorWorkloads::from_json(exporter.workloads());
        ASSERT_TRUE(workloads.ok()) << workloads.error().message();
        const auto replayed = workloads->replay(read);
        ASSERT_TRUE(replayed.ok()) << replayed.error().message() << *line << exporter.workloads();
        // TVM guards all tails and packs constants by itself.
        sched::Trace guarded = trace;
        packed += static_cast<int>(std::erase_if(guarded.steps, [](const sched::Step& step) {
          return std::holds_alternative<sched::PackLayout>(step);
        }));
        for (sched::Step& step : guarded.steps)
          if (auto* split = std::get_if<sched::Split>(&step)) split->tail = sched::TailPolicy::kPredicate;
        const auto original = sched::replay(without_constants(workload), guarded);
        ASSERT_TRUE(original.ok()) << original.error().message();
        EXPECT_EQ(ir::print(lower::lower(replayed->schedule).value().program),
                  ir::print(lower::lower(*original).value().program));
      }
    }
    EXPECT_GT(written, left_out) << name << ": " << left_out << " left out";
    if (device.kind() == target::DeviceKind::kCpu) {
      EXPECT_GT(packed, 10);
    }
  }
}

// A step that is not written moves the steps behind it, which others name by their numbers.
TEST(AnsorExporter, StepsBehindALayoutKeepTheirSources) {
  const ir::Workload workload = test::small::matmul(32, 24, 40, true);
  AnsorExporter exporter;
  const TaskInfo task{ir::structural_key(workload), ir::print(workload), "task", 1e6};
  ASSERT_TRUE(exporter.add(task).ok());
  Record record;
  record.task_key = task.key;
  record.result.seconds = {1e-3};
  const sched::Split split{2, 0, {8}};  // of the product; stage 4 is its activation
  for (const bool fused : {false, true}) {
    const auto follow = [&](int source) {
      return fused ? sched::Step(sched::FollowFusedSplit{4, 0, {source}, 0, true})
                   : sched::Step(sched::FollowSplit{4, 0, source, 1});
    };
    record.trace = sched::print(
        sched::Trace{{sched::parse_trace("pack_layout stage=1 layout=[1/8%3,0/1%40,1/1%8]\n")->steps.front(),
                      split, follow(1)}});
    const auto line = exporter.line(record, {});
    ASSERT_TRUE(line.ok()) << line.error().message();
    AnsorRecord read;
    ASSERT_TRUE(parse_ansor_record(*line, read).ok());
    EXPECT_EQ(read.trace, (sched::Trace{{split, follow(0)}}));
  }
}

// Each reason is the same for all records of its kind, so that they can be counted.
TEST(AnsorExporter, SaysWhyARecordIsLeftOut) {
  AnsorExporter exporter;
  const ir::Workload workload = test::small::matmul(8, 8, 8, true);
  const TaskInfo task{ir::structural_key(workload), ir::print(workload), "task", 1e3};
  ASSERT_TRUE(exporter.add(task).ok());
  const char* half = "workload {\n  input a: f16[4]\n  b: f16[i: 4] = a[i]\n  output b\n}\n";
  EXPECT_FALSE(exporter.add({"half", half, "half", 1}).ok());
  const auto reason = [&](const std::string& key, const std::string& trace) {
    Record record;
    record.task_key = key;
    record.trace = trace;
    record.result.seconds = {1e-3};
    const auto line = exporter.line(record, {});
    EXPECT_FALSE(line.ok());
    return line.ok() ? "" : line.error().reason;
  };
  EXPECT_EQ(reason("half", ""), "a tensor that is not f32 cannot be written in TVM's text");
  EXPECT_EQ(reason(task.key, "decompose_reduction stage=2 iter=2\n"),
            "TVM's records have no step decompose_reduction");
  EXPECT_EQ(reason(task.key, "pack_layout stage=2 layout=[1/1%8,0/1%8]\n"),
            "TVM's records have no step pack_layout for intermediate tensors");
  EXPECT_EQ(reason(task.key, "split stage=2 iter=0 lengths=[9] inner=true tail=predicate\n"),
            "TVM's records have no split by a factor that is larger than its loop");
}

TEST(AnsorExporter, FailuresAreThoseOfTvm) {
  const ir::Workload workload = test::small::matmul(8, 8, 8, true);
  AnsorExporter exporter;
  const TaskInfo task{ir::structural_key(workload), ir::print(workload), "task", 1e3};
  ASSERT_TRUE(exporter.add(task).ok());
  Record record;
  record.task_key = task.key;
  record.result.outcome = Outcome::kRunTimeout;
  AnsorRecord read;
  ASSERT_TRUE(parse_ansor_record(exporter.line(record, {}).value(), read).ok());
  EXPECT_TRUE(read.failed());
  EXPECT_EQ(read.error_no, 7);
  record.task_key = "another";
  EXPECT_EQ(exporter.line(record, {}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tensorsmith::record::ansor_export_test
