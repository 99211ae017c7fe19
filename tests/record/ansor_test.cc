// Records of Ansor: parsing, replay, and the compact form of their steps.
#include <gmock/gmock.h>

#include <map>

#include "ansor_samples.h"
#include "record/ansor/workloads.h"
#include "record/line_reader.h"
#include "record/trace_code.h"
#include "support/random_trace.h"
#include "support/small_workloads.h"

namespace tensorsmith::record::ansor_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kData = TENSORSMITH_SOURCE_DIR "/tests/data/ansor/";

AnsorRecord must_parse(const std::string& line) {
  AnsorRecord record;
  const Status status = parse_ansor_record(line, record);
  EXPECT_TRUE(status.ok()) << status.error().message();
  return record;
}

TEST(AnsorRecordTest, Fields) {
  const AnsorRecord record = must_parse(testing::dense_line());
  EXPECT_EQ(record.workload_key, R"(["dense", 64, 32, 48])");
  EXPECT_EQ(record.target, "llvm");
  EXPECT_EQ(record.cacheline_bytes, 64);
  EXPECT_THAT(record.seconds, ElementsAre(0.001, 0.002, 0.003));
  EXPECT_DOUBLE_EQ(record.mean_seconds(), 0.002);
  EXPECT_FALSE(record.failed());
  EXPECT_EQ(record.unix_seconds, 1700000000);
  ASSERT_EQ(record.trace.steps.size(), 13u);
  EXPECT_EQ(record.trace.steps[0], sched::Step(sched::Split{2, 0, {4, 8}, true}));
  EXPECT_EQ(record.split_extents[0], 64);
  EXPECT_EQ(record.trace.steps[10], sched::Step(sched::Unroll{2, 16}));
}

TEST(AnsorRecordTest, FailuresAreKept) {
  EXPECT_TRUE(must_parse(testing::dense_line(8, "[[1e+10],4,0.5,1700000000]")).failed());
  EXPECT_TRUE(must_parse(testing::dense_line(8, "[[1e+10],0,0.5,1700000000]")).failed());
  EXPECT_TRUE(must_parse(testing::dense_line(8, "[[0.001],6,0.5,1700000000]")).failed());
}

TEST(AnsorRecordTest, OlderRecordsHaveFewerFields) {
  const AnsorRecord record =
      must_parse(R"({"i":[["[\"f\"]","llvm"],[[],[["CI",1],["CR",2]]]],"r":[[1.0],0]})");
  EXPECT_EQ(record.trace.steps.size(), 2u);
  EXPECT_EQ(record.cacheline_bytes, 64);
}

TEST(AnsorRecordTest, ErrorsNameTheColumn) {
  const auto expect_error = [](const std::string& line, ErrorCode code, const std::string& reason) {
    AnsorRecord record;
    const Status status = parse_ansor_record(line, record);
    ASSERT_FALSE(status.ok()) << line;
    EXPECT_EQ(status.error().code, code) << status.error().message();
    EXPECT_THAT(status.error().place, HasSubstr("column "));
    EXPECT_THAT(status.error().reason, HasSubstr(reason)) << line;
  };
  const auto steps = [](const std::string& text) {
    return testing::line(R"(["f"])", "llvm", text, "[[1.0],0,1.0,1]");
  };
  expect_error("", ErrorCode::kCorrupt, "'{'");
  expect_error("{}", ErrorCode::kCorrupt, "not a record");
  expect_error(testing::dense_line() + "x", ErrorCode::kCorrupt, "after the record");
  expect_error(steps(R"([["XX",1]])"), ErrorCode::kUnsupported, "'XX'");
  expect_error(steps(R"([["AN",1,0,11]])"), ErrorCode::kUnsupported, "annotation 11");
  expect_error(steps(R"([["PR",1,0,"unroll_explicit$1"]])"), ErrorCode::kUnsupported, "pragma");
  expect_error(steps(R"([["CHR",1,"texture",[2]]])"), ErrorCode::kUnsupported, "texture");
  expect_error(steps(R"([["SP",1,0,64,[1.5],1]])"), ErrorCode::kCorrupt, "integer");
  expect_error(testing::dense_line(8, "[[],0,1.0,1]"), ErrorCode::kCorrupt, "has no costs");
  expect_error(testing::dense_line(8, "[[-1.0],0,1.0,1]"), ErrorCode::kCorrupt, "not positive");
  expect_error(testing::dense_line(8, "[[nan],0,1.0,1]"), ErrorCode::kCorrupt, "number");
  const std::string good = testing::dense_line();
  for (size_t length = 0; length < good.size(); ++length) {
    AnsorRecord record;
    EXPECT_FALSE(parse_ansor_record(good.substr(0, length), record).ok());
  }
}

TEST(AnsorWorkloadsTest, SamplesReplay) {
  const auto workloads = AnsorWorkloads::from_json(testing::kWorkloads);
  ASSERT_TRUE(workloads.ok()) << workloads.error().message();
  EXPECT_EQ(workloads->size(), 3u);
  for (const std::string& line : {testing::dense_line(), testing::conv_line(), testing::sum_line()}) {
    const auto replayed = workloads->replay(must_parse(line));
    ASSERT_TRUE(replayed.ok()) << replayed.error().message();
    EXPECT_TRUE(sched::infer_bounds(replayed->schedule).ok());
  }
  EXPECT_EQ(workloads->find(R"(["dense", 64, 32, 48])")->name, "dense");
  EXPECT_EQ(workloads->find(R"(["dense", 64, 32, 48])")->flops, 200704);
  AnsorRecord unknown = must_parse(testing::dense_line());
  unknown.workload_key = "[\"other\"]";
  EXPECT_EQ(workloads->replay(unknown).error().code, ErrorCode::kNotFound);
}

// The text omits the padding behind the data, which leaves extents open; the splits determine them.
// Later records must agree.
TEST(AnsorWorkloadsTest, SplitsTellOpenExtents) {
  const auto workloads = AnsorWorkloads::from_json(
      R"({"[\"f\"]": "data = PLACEHOLDER [8, 6]\npad(i0, i1) = select((i1 < 6), data[i0, i1], 0f)\nconv(i, j) += pad[i, ((j*2) + r)]"})");
  ASSERT_TRUE(workloads.ok());
  EXPECT_EQ(workloads->find("[\"f\"]"), nullptr);
  const auto record = [](int64_t j, int64_t r) {
    return must_parse(testing::line(
        "[\"f\"]", "llvm",
        R"([["SP",2,1,)" + std::to_string(j) + R"(,[1],1],["SP",2,3,)" + std::to_string(r) + ",[1],1]]",
        "[[1.0],0,1.0,1]"));
  };
  ASSERT_TRUE(workloads->replay(record(3, 3)).ok());
  const auto task = workloads->find("[\"f\"]");
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->workload.operations[1]->spatial[1].extent, 7);
  const auto other = workloads->replay(record(4, 3));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(other.error().reason, HasSubstr("extent 4"));
}

// TVM guards tails: neither a factor nor the product of factors need fit the loop evenly. A factor beyond the
// loop is an error, whether the record states the loop's extent, or only the compute DAG does.
TEST(AnsorWorkloadsTest, AFactorLargerThanItsLoopIsRefused) {
  const auto workloads = AnsorWorkloads::from_json(testing::kWorkloads);
  ASSERT_TRUE(workloads.ok());
  const auto replayed = [&](const std::string& split) {
    return workloads->replay(must_parse(
        testing::line(R"(["sum", 256, 100])", "llvm", "[[\"SP\",1,1," + split + "]]", "[[1.0],0,1.0,1]")));
  };
  for (const char* legal : {"100,[32],1", "100,[7,32],1", "100,[100],1", "0,[100],1", "100,[3,7],0"}) {
    const auto result = replayed(legal);
    EXPECT_TRUE(result.ok()) << legal << ": " << result.error().message();
  }
  for (const char* excessive :
       {"100,[16777216],1", "100,[101],1", "0,[101],1", "100,[101,1],1", "100,[1,101],0"}) {
    const auto result = replayed(excessive);
    ASSERT_FALSE(result.ok()) << excessive;
    EXPECT_EQ(result.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(result.error().place, "step 0 (split)");
    EXPECT_THAT(result.error().reason, HasSubstr("a loop of extent 100 by the factor 1"));
  }
  // A loop of a fused stage: only the record knows its extent.
  std::string line = testing::conv_line();
  const std::string vectors = R"(["SP",4,0,72,[1],1])";
  line.replace(line.find(vectors), vectors.size(), R"(["SP",4,0,72,[73],1])");
  const auto fused = workloads->replay(must_parse(line));
  ASSERT_FALSE(fused.ok());
  EXPECT_THAT(fused.error().reason, HasSubstr("a loop of extent 72 by the factor 73"));
}

TEST(AnsorWorkloadsTest, RecordsOfFourDevicesReplay) {
  const auto workloads = AnsorWorkloads::load(kData + "workloads.json");
  ASSERT_TRUE(workloads.ok()) << workloads.error().message();
  for (const char* name : {"v100", "k80", "mi50", "xeon8358"}) {
    auto reader = LineReader::open(kData + name + ".jsonl.zst", size_t{1} << 24);
    ASSERT_TRUE(reader.ok()) << reader.error().message();
    LineReader::Line line;
    AnsorRecord record;
    int failures = 0;
    int64_t count = 0;
    while (*(*reader)->next(line)) {
      ++count;
      const Status parsed = parse_ansor_record(line.text, record);
      const auto replayed = parsed.ok() ? workloads->replay(record) : parsed.error();
      const bool ok = replayed.ok() && sched::infer_bounds(replayed->schedule).ok();
      if (!ok && ++failures <= 3)
        ADD_FAILURE() << name << ":" << line.number << ": "
                      << (replayed.ok() ? "bounds" : replayed.error().message());
      std::string bytes;
      encode_trace(record.trace, bytes);
      ASSERT_EQ(*decode_trace(bytes), record.trace);
    }
    EXPECT_EQ(failures, 0) << name;
    EXPECT_GT(count, 300) << name;
  }
}

TEST(TraceCodeTest, RoundTrip) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const auto builder = test::random_schedule(test::small::random(rng), rng, {});
    std::string bytes;
    encode_trace(builder.trace(), bytes);
    const auto decoded = decode_trace(bytes);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, builder.trace());
    // Damaged bytes give an error or another trace, never a crash.
    for (int i = 0; i < 20; ++i) {
      std::string damaged = bytes;
      damaged[rng.below(damaged.size())] = static_cast<char>(rng.next());
      (void)decode_trace(damaged);
    }
    EXPECT_FALSE(decode_trace(bytes + '\0').ok());
    EXPECT_FALSE(decode_trace(bytes.substr(0, bytes.size() - 1)).ok());
  }
}

}  // namespace
}  // namespace tensorsmith::record::ansor_test
