// Databases of MetaSchedule: reading modules and records, and replaying instructions.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "record/line_reader.h"
#include "record/metaschedule/workloads.h"
#include "record/record_testing.h"
#include "support/print_schedule.h"

namespace tensorsmith::record::metaschedule_test {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFolder = TENSORSMITH_SOURCE_DIR "/tests/data/metaschedule/";

std::vector<std::string> lines_of(const std::string& name) {
  std::vector<std::string> out;
  auto reader = LineReader::open(kFolder + name, size_t{1} << 26);
  EXPECT_TRUE(reader.ok());
  LineReader::Line line;
  while (*(*reader)->next(line)) out.push_back(line.text);
  return out;
}
const std::vector<std::string>& workload_lines() {
  static const auto lines = lines_of("database_workload.json.zst");
  return lines;
}
const std::vector<std::string>& record_lines() {
  static const auto lines = lines_of("database_tuning_record.json.zst");
  return lines;
}
const MetaScheduleWorkloads& workloads() {
  static const auto loaded = MetaScheduleWorkloads::load(kFolder + "database_workload.json.zst");
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  return *loaded;
}

MetaScheduleRecord must_parse(const std::string& line) {
  auto record = parse_metaschedule_record(line);
  EXPECT_TRUE(record.ok()) << record.error().message();
  return record.ok() ? *std::move(record) : MetaScheduleRecord();
}

// Returns the first record of the workload.
std::string record_of(int workload) {
  const std::string start = "[" + std::to_string(workload) + ",";
  for (const std::string& line : record_lines()) {
    if (line.starts_with(start)) return line;
  }
  ADD_FAILURE() << "no record of workload " << workload;
  return {};
}

// Returns workloads of one line: that line's module, with constants replaced.
MetaScheduleWorkloads with_constants(int line, const std::vector<std::pair<int, int>>& replacements) {
  Json json = Json::parse(workload_lines()[static_cast<size_t>(line)]);
  std::string module = *from_base64(json[1].get<std::string>());
  Json graph = Json::parse(module.substr(8));
  for (Json& node : graph["nodes"]) {
    if (node["type_key"] != "IntImm") continue;
    for (const auto& [from, to] : replacements) {
      if (node["attrs"]["value"] != std::to_string(from)) continue;
      node["attrs"]["value"] = std::to_string(to);
      break;
    }
  }
  json[1] = to_base64(module.substr(0, 8) + graph.dump());
  const testing::TempDir folder;
  testing::write_file(folder.file("workloads.json"), json.dump() + "\n");
  auto loaded = MetaScheduleWorkloads::load(folder.file("workloads.json"));
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  return std::move(*loaded);
}

// Returns the record with other decisions of its SamplePerfectTile instructions, of workload 0.
MetaScheduleRecord with_tiles(const std::string& line, const std::vector<std::vector<int>>& tiles) {
  Json json = Json::parse(line);
  json[0] = 0;
  size_t tile = 0;
  for (Json& decision : json[1][0][1]) {
    const auto number = decision[0].get<size_t>();
    if (json[1][0][0][number][0] == "SamplePerfectTile") decision[1] = tiles.at(tile++);
  }
  return must_parse(json.dump());
}

// Interprets the program and the workload on random inputs.
void expect_right_values(const MetaScheduleWorkloads& from, const MetaScheduleRecord& record) {
  const auto replayed = from.replay(record);
  ASSERT_TRUE(replayed.ok()) << replayed.error().message();
  const auto lowered = lower::lower(replayed->program.schedule);
  ASSERT_TRUE(lowered.ok()) << lowered.error().message();
  const ir::Workload& workload = replayed->task->workload;
  Rng rng(5);
  std::vector<lower::Tensor> inputs;
  for (const auto& input : workload.inputs())
    inputs.push_back(lower::random_tensor(input->dtype, input->shape, rng));
  const auto expected = lower::evaluate(workload, inputs);
  const auto computed = lower::run(lowered->program, inputs);
  ASSERT_TRUE(expected.ok() && computed.ok()) << (computed.ok() ? "" : computed.error().message());
  for (int64_t i = 0; i < expected->front().num_elements(); ++i)
    ASSERT_NEAR(computed->front().at(i).f, expected->front().at(i).f, 1e-4) << i;
}

TEST(MetaScheduleWorkloadsTest, AllModulesAreRead) {
  ASSERT_EQ(workloads().size(), 20u);
  for (int64_t line = 0; line < 20; ++line) EXPECT_NE(workloads().find(line), nullptr) << line;
  EXPECT_EQ(workloads().find(20), nullptr);
  const auto conv = workloads().find(0);
  EXPECT_EQ(conv->name, "conv2d_nchw");
  EXPECT_EQ(conv->key, "74459984568761439");
  EXPECT_DOUBLE_EQ(conv->flops, 512 * 49 * (256 * 2 + 1));
  ASSERT_EQ(conv->blocks.size(), 3u);
  EXPECT_EQ(conv->blocks[2].name, "T_add");
  EXPECT_THAT(conv->workload.outputs.front()->shape, ElementsAre(1, 512, 7, 7));
  EXPECT_EQ(workloads().find(6)->name, "bgemm");
  EXPECT_EQ(workloads().find(19)->name, "T_softmax_maxelem");
}

TEST(MetaScheduleReplayTest, RecordsReplay) {
  int failed = 0;
  for (const std::string& line : record_lines()) {
    const MetaScheduleRecord record = must_parse(line);
    failed += record.failed() ? 1 : 0;
    const auto replayed = workloads().replay(record);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message();
    EXPECT_TRUE(lower::lower(replayed->program.schedule).ok());
    const auto again = sched::replay(replayed->task->workload, replayed->program.trace);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(test::print_schedule(*again), test::print_schedule(replayed->program.schedule));
  }
  EXPECT_EQ(record_lines().size(), 68u);
  EXPECT_EQ(failed, 12);
}

// The tiles in shared memory and in registers are what the decisions say.
TEST(MetaScheduleReplayTest, TilesFollowTheDecisions) {
  const auto replayed = workloads().replay(must_parse(record_of(0)));
  ASSERT_TRUE(replayed.ok());
  EXPECT_THAT(test::print_schedule(replayed->program.schedule),
              HasSubstr("T_add auto_unroll: 512\nblockIdx.x"));
  const auto bounds = sched::infer_bounds(replayed->program.schedule);
  ASSERT_TRUE(bounds.ok());
  const auto region = [&](const char* name) {
    return bounds->stages[*replayed->program.schedule.stage_named(name)].root_extent;
  };
  EXPECT_THAT(region("pad_temp.shared"), ElementsAre(1, 16, 1, 13));
  EXPECT_THAT(region("p1.shared"), ElementsAre(32, 16, 1, 1));
  EXPECT_THAT(region("conv2d_nchw.local"), ElementsAre(1, 4, 1, 1, 256, 1, 1));
}

TEST(MetaScheduleReplayTest, SmallTasksGiveRightValues) {
  for (const int workload : {16, 19}) expect_right_values(workloads(), must_parse(record_of(workload)));
}

TEST(MetaScheduleReplayTest, ConvolutionOfFewChannelsGivesRightValues) {
  const auto small = with_constants(0, {{256, 8}, {512, 16}});
  const std::vector<int> one = {1, 1, 1, 1, 1};
  expect_right_values(
      small,
      with_tiles(record_of(0),
                 {one, {2, 1, 2, 2, 2}, {7, 1, 1, 1, 1}, {1, 1, 7, 1, 1}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}}));
  // The last tiles of a dimension may be shorter.
  expect_right_values(
      small,
      with_tiles(record_of(0),
                 {one, {2, 1, 2, 2, 2}, {4, 1, 2, 1, 1}, {1, 1, 4, 1, 2}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}}));
}

// Eleven blocks, most of which are inlined or computed inside loops of others.
TEST(MetaScheduleReplayTest, WinogradOfFewChannelsGivesRightValues) {
  expect_right_values(
      with_constants(6, {{64, 4}}),
      with_tiles(record_of(6),
                 {{1, 1, 6, 1, 1}, {1, 3, 2, 1, 1}, {1, 1, 4, 1, 1}, {28, 1, 1, 7, 1}, {1, 2, 2}}));
}

// A trace as the rules for CPUs write it.
TEST(MetaScheduleReplayTest, InstructionsOfCpusGiveRightValues) {
  const auto line = [](const std::string& location, const std::string& decision) {
    return R"([0,[[[["GetBlock",[],["T_matmul_NT","main"],["b0"]],["GetBlock",[],["T_add","main"],["b1"]],
      ["GetBlock",[],["root","main"],["b2"]],["GetLoops",["b0"],[],["l3","l4","l5"]],
      ["SamplePerfectTile",["l4"],[4,64],["v6","v7","v8","v9"]],
      ["Split",["l4","v6","v7","v8","v9"],[1],["l10","l11","l12","l13"]],
      ["Split",["l5",4,"None",3],[1],["l14","l15","l16"]],
      ["Reorder",["l3","l10","l11","l14","l12","l15","l16","l13"],[],[]],)" +
           location + R"(["Annotate",["b2",64],["meta_schedule.parallel"],[]],
      ["EnterPostproc",[],[],[]],["GetLoops",["b0"],[],["l20","l21","l22","l23","l24","l25","l26","l27"]],
      ["Fuse",["l20","l21"],[1],["l30"]],["Parallel",["l30"],[],[]],
      ["Annotate",["l30",16],["pragma_auto_unroll_max_step"],[]],
      ["Vectorize",["l27"],[],[]],["DecomposeReduction",["b0","l23"],[],["b40"]]],
      [[4,[2,5,5,2]])" +
           decision + R"(]],[0.001],{},[]]])";
  };
  const auto small = with_constants(18, {{1000, 100}, {512, 30}});
  expect_right_values(small, must_parse(line(R"(["ReverseComputeAt",["b1","l11"],[1,-1],[]],)", "")));
  // b1 stays at the root, after all; so may the producer of another block.
  expect_right_values(
      small,
      must_parse(line(R"(["SampleComputeLocation",["b0"],[],["l19"]],["ComputeAt",["b0","l19"],[1,-1],[]],)",
                      ",[8,-1]")));
}

TEST(MetaScheduleRecordTest, Fields) {
  const MetaScheduleRecord record = must_parse(record_of(0));
  EXPECT_EQ(record.workload, 0);
  EXPECT_EQ(record.instructions.size(), 73u);
  EXPECT_EQ(record.instructions[6].kind, "SamplePerfectTile");
  EXPECT_EQ(record.instructions[6].outputs.size(), 5u);
  EXPECT_EQ(record.instructions[6].decision->list()->size(), 5u);
  EXPECT_EQ(record.seconds.size(), 3u);
  EXPECT_FALSE(record.failed());
  EXPECT_TRUE(looks_like_metaschedule_record(record_of(0)));
  EXPECT_FALSE(looks_like_metaschedule_record(workload_lines()[0]));
  EXPECT_TRUE(looks_like_metaschedule_workload(workload_lines()[0]));
  EXPECT_FALSE(looks_like_metaschedule_workload(record_of(0)));
}

TEST(MetaScheduleRecordTest, DamagedLinesAreRefused) {
  const auto reason = [](const std::string& line) {
    const auto record = parse_metaschedule_record(line);
    return record.ok() ? "" : record.error().message();
  };
  EXPECT_THAT(reason(""), HasSubstr("not JSON"));
  EXPECT_THAT(reason(record_of(0).substr(0, 500)), HasSubstr("ends early"));
  EXPECT_THAT(reason("{}"), HasSubstr("not a record of MetaSchedule"));
  EXPECT_THAT(reason("[0,[[[],[]],null,{},[]]]"), HasSubstr("no measurement"));
  EXPECT_THAT(reason("[0,[[[],[]],[0],{},[]]]"), HasSubstr("not positive"));
  EXPECT_THAT(reason(R"([0,[[[["Split",[],[]]],[]],[1],{},[]]])"),
              HasSubstr("[kind, inputs, attributes, outputs]"));
  EXPECT_THAT(reason("[0,[[[],[[0,1]]],[1],{},[]]]"), HasSubstr("a decision is not"));
  EXPECT_TRUE(must_parse("[0,[[[],[]],[1e10],{},[]]]").failed());
}

TEST(MetaScheduleReplayTest, ErrorsNameTheInstruction) {
  const auto message = [](const std::string& instructions, const std::string& decisions = "") {
    const auto replayed =
        workloads().replay(must_parse("[18,[[[" + instructions + "],[" + decisions + "]],[0.001],{},[]]]"));
    return replayed.ok() ? "" : replayed.error().message();
  };
  const std::string block = R"(["GetBlock",[],["T_matmul_NT","main"],["b0"]],)";
  const std::string loops = block + R"(["GetLoops",["b0"],[],["l1","l2","l3"]],)";
  EXPECT_EQ(message(block + R"(["Tensorize",["b0","x"],[1],[]])"),
            "instruction 1 (Tensorize): this instruction is not supported");
  EXPECT_EQ(message(R"(["GetBlock",[],["conv","main"],["b0"]])"),
            "instruction 0 (GetBlock): there is no block 'conv'");
  EXPECT_EQ(message(block + R"(["GetLoops",["b0"],[],["l1"]])"),
            "instruction 1 (GetLoops): it has 1 outputs where the program gives 3");
  EXPECT_EQ(message(R"(["GetLoops",["b0"],[],["l1"]])"), "instruction 0 (GetLoops): 'b0' is no block");
  EXPECT_EQ(message(loops + R"(["Fuse",["l1","l2"],[1],["l4"]],["Unroll",["l1"],[],[]])"),
            "instruction 3 (Unroll): loop 'l1' does not exist any more");
  EXPECT_THAT(message(loops + R"(["Fuse",["l1","l3"],[1],["l4"]])"),
              HasSubstr("not directly inside each other"));
  EXPECT_THAT(message(loops + R"(["Split",["l1","None","None"],[1],["l4","l5"]])"),
              HasSubstr("two loops open"));
  EXPECT_THAT(message(loops + R"(["Split",["l1","None",0],[1],["l4","l5"]])"), HasSubstr("not positive"));
  EXPECT_THAT(message(loops + R"(["Reorder",["l1","l2","l1"],[],[]])"), HasSubstr("named twice"));
  EXPECT_THAT(message(loops + R"(["SamplePerfectTile",["l2"],[2,64],["v4","v5"]])"),
              HasSubstr("list of factors"));
  EXPECT_THAT(message(R"(["SampleCategorical",[],[[1,2],[0.5,0.5]],["v4"]])", "[0,2]"),
              HasSubstr("none of its candidates"));
  EXPECT_THAT(message(loops + R"(["Bind",["l1"],["warp"],[]])"), HasSubstr("thread axis 'warp'"));
  EXPECT_THAT(message(block + R"(["CacheRead",["b0",["b0"]],[7,"shared"],["b1"]])"),
              HasSubstr("does not read 7"));
  EXPECT_THAT(message(block + R"(["CacheRead",["b0",["b0"]],[0,"wmma.matrix_a"],["b1"]])"),
              HasSubstr("wmma"));
  EXPECT_THAT(message(block + R"(["SetScope",["b0"],[0,"shared"],[]])"), HasSubstr("memory"));
  EXPECT_THAT(message(loops + R"(["Vectorize",["l3"],[],[]])"), HasSubstr("is a reduce loop"));
  EXPECT_THAT(message(block + R"(["GetBlock",[],["T_add","main"],["b1"]],["GetLoops",["b1"],[],["l4","l5"]],
      ["DecomposeReduction",["b0","l4"],[],["b2"]])"),
              HasSubstr("none of the block's own"));
  EXPECT_EQ(workloads().replay(must_parse("[99,[[[],[]],[1],{},[]]]")).error().code, ErrorCode::kNotFound);
}

// The loops and the memory of a block that was inlined no longer matter.
TEST(MetaScheduleReplayTest, InlinedBlocksAreForgotten) {
  const auto replayed = workloads().replay(must_parse(
      R"([0,[[[["GetBlock",[],["pad_temp","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2","l3","l4"]],
      ["Fuse",["l1","l2"],[1],["l5"]],["Parallel",["l5"],[],[]],["SetScope",["b0"],[0,"shared"],[]],
      ["ComputeInline",["b0"],[],[]]],[]],[0.001],{},[]]])"));
  ASSERT_TRUE(replayed.ok()) << replayed.error().message();
  EXPECT_EQ(sched::print(replayed->program.trace), "compute_inline stage=3\n");
}

TEST(MetaScheduleWorkloadsTest, DamagedModulesAreRefused) {
  const testing::TempDir folder;
  const std::string path = folder.file("workloads.json");
  const auto load = [&](const std::string& text) {
    testing::write_file(path, text);
    return MetaScheduleWorkloads::load(path);
  };
  EXPECT_THAT(load("[1,2]\n").error().message(),
              HasSubstr("workloads.json:1: is not a workload of MetaSchedule"));
  const MetaScheduleRecord record = must_parse("[0,[[[],[]],[1],{},[]]]");
  const auto reason = [&](const std::string& module) {
    const auto loaded = load(Json({"1", to_base64("12345678" + module)}).dump() + "\n");
    const auto replayed = loaded->replay(record);
    return replayed.ok() ? "" : replayed.error().message();
  };
  EXPECT_THAT(load("[\"1\",\"*\"]\n")->replay(record).error().message(), HasSubstr("not base64"));
  EXPECT_THAT(reason("{}"), HasSubstr("databases of TVM 0.13 to 0.19"));
  EXPECT_THAT(reason(R"({"root":0,"nodes":[{"type_key":"IRModule"}]})"), HasSubstr("has no \"functions\""));
  EXPECT_THAT(reason(R"({"root":3,"nodes":[{"type_key":"IRModule"}]})"), HasSubstr("root does not exist"));
  // Each node in turn gets another type, loses its attributes, or refers to itself: an error, or a
  // workload that is still well-formed, but no crash.
  const Json json = Json::parse(workload_lines()[19]);
  const Json graph = Json::parse(from_base64(json[1].get<std::string>())->substr(8));
  for (size_t n = 0; n < graph["nodes"].size(); ++n) {
    for (const int damage : {0, 1, 2}) {
      Json other = graph;
      Json& node = other["nodes"][n];
      if (damage == 0) node["type_key"] = "tir.Add";
      if (damage == 1) node.erase("attrs");
      if (damage == 2 && node.contains("attrs")) {
        for (Json& attribute : node["attrs"]) attribute = std::to_string(n);
      }
      (void)read_tir_module(other.dump());
    }
  }
}

}  // namespace
}  // namespace tensorsmith::record::metaschedule_test
