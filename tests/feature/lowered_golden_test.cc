// Programs of measured Ansor records, lowered by TVM v0.16 and parsed from its text, compared with
// our replay and lowering.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <sstream>

#include "feature/nest_walk.h"
#include "lower/lower.h"
#include "record/ansor/workloads.h"
#include "record/line_reader.h"

namespace tensorsmith::feature::lowered_golden_test {
namespace {

using Json = nlohmann::json;

const std::string kData = TENSORSMITH_SOURCE_DIR "/tests/data/ansor/";

// Properties that can be compared although names differ: the number of writes to each buffer and
// the sizes of temporaries, both in elements and sorted, and the numbers of blocks and threads of a
// GPU kernel.
struct Shape {
  std::vector<int64_t> writes, temporaries;
  int64_t blocks = 0, threads = 0;
};

int64_t product(const std::string& numbers) {
  static const std::regex kNumber("[0-9]+");
  int64_t out = 1;
  for (std::sregex_iterator at(numbers.begin(), numbers.end(), kNumber), end; at != end; ++at)
    out *= std::stoll(at->str());
  return out;
}

// Returns the lanes of an index "a:a + 8", "16:32" or "a:a + 64:4"; 1 for others.
int64_t lanes_of_index(const std::string& index) {
  const size_t colon = index.find(':');
  if (colon == std::string::npos) return 1;
  const size_t step_colon = index.find(':', colon + 1);
  const std::string end = index.substr(colon + 1, step_colon - colon - 1);
  const size_t plus = end.rfind(" + ");
  const bool constant = plus == std::string::npos;
  const int64_t length = constant ? std::stoll(end) - std::stoll(index) : std::stoll(end.substr(plus + 3));
  return step_colon == std::string::npos ? length : length / std::stoll(index.substr(step_colon + 1));
}

Shape read_tvm(const std::string& text) {
  static const std::regex kLoop(R"re((\s*)for .* in (?:range|T\.\w+)\(([0-9, ]+)\):)re");
  static const std::regex kAllocate(
      R"re(\s*(\w+) = T\.allocate\(\[([0-9, ]+)\], "float32(?:x([0-9]+))?".*)re");
  static const std::regex kBuffer(
      R"re(\s*(\w+) = T\.Buffer\(\(([0-9, ]*)\),(?: "float32x([0-9]+)",)? data=(\w+).*)re");
  static const std::regex kStore(R"re((\s*)(\w+)\[(.*?)\] = .*)re");
  static const std::regex kLaunch(R"re(\s*(?:with |\w+ = )T\.launch_thread\("(\w+)\.x", ([0-9]+)\).*)re");
  Shape shape;
  std::vector<std::pair<size_t, int64_t>> loops;  // indentation, iterations
  std::map<std::string, std::string> data;        // data of a buffer
  std::map<std::string, int64_t> lanes, writes;
  std::istringstream lines(text);
  std::smatch m;
  for (std::string line; std::getline(lines, line);) {
    const size_t indentation = line.find_first_not_of(' ');
    while (!loops.empty() && indentation <= loops.back().first) loops.pop_back();
    if (std::regex_match(line, m, kLoop)) {
      loops.emplace_back(indentation, product(m[2]));
    } else if (std::regex_match(line, m, kAllocate)) {
      shape.temporaries.push_back(product(m[2]) * (m[3].matched ? std::stoll(m[3]) : 1));
    } else if (std::regex_match(line, m, kBuffer)) {
      data[m[1]] = m[4];
      lanes[m[1]] = m[3].matched ? std::stoll(m[3]) : 1;
    } else if (std::regex_match(line, m, kLaunch)) {
      int64_t& extent = m[1] == "blockIdx" ? shape.blocks : shape.threads;
      extent = std::max<int64_t>(extent, std::stoll(m[2]));
    } else if (std::regex_match(line, m, kStore)) {
      const std::string buffer = m[2];
      int64_t count = lanes_of_index(m[3]) * (lanes.contains(buffer) ? lanes[buffer] : 1);
      for (const auto& loop : loops) count *= loop.second;
      writes[data.contains(buffer) ? data[buffer] : buffer] += count;
    }
  }
  for (const auto& [name, count] : writes) shape.writes.push_back(count);
  std::sort(shape.writes.begin(), shape.writes.end());
  std::sort(shape.temporaries.begin(), shape.temporaries.end());
  return shape;
}

void add_temporaries(const ir::Stmt& stmt, std::vector<int64_t>& out) {
  if (stmt == nullptr) return;
  std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, ir::Allocate>) {
          int64_t elements = 1;
          for (const int64_t extent : node.buffer->shape) elements *= extent;
          out.push_back(elements);
          add_temporaries(node.body, out);
        } else if constexpr (std::is_same_v<Node, ir::For>) {
          add_temporaries(node.body, out);
        } else if constexpr (std::is_same_v<Node, ir::IfThenElse>) {
          add_temporaries(node.then_body, out);
          add_temporaries(node.else_body, out);
        } else if constexpr (std::is_same_v<Node, ir::Seq>) {
          for (const ir::Stmt& one : node.stmts) add_temporaries(one, out);
        }
      },
      stmt->kind);
}

Shape shape_of(const ir::Program& program) {
  Shape shape;
  const NestTree tree = walk_nests(program);
  std::map<const void*, double> writes;
  for (const NestLeaf& leaf : tree.leaves) {
    double count = leaf.share * leaf.accesses[0].count;
    for (const NestLoopId loop : leaf.path) count *= tree.loops[loop].extent;
    writes[leaf.accesses[0].buffer.get()] += count;
  }
  for (const auto& [buffer, count] : writes) shape.writes.push_back(std::llround(count));
  add_temporaries(program.body, shape.temporaries);
  std::sort(shape.writes.begin(), shape.writes.end());
  std::sort(shape.temporaries.begin(), shape.temporaries.end());
  return shape;
}

int64_t largest_extent(const sched::Schedule& schedule, const sched::Bounds& bounds,
                       sched::Annotation annotation) {
  int64_t largest = 0;
  for (const sched::StageId s : schedule.stages.ids()) {
    const sched::Stage& stage = schedule.stages[s];
    for (const sched::IteratorId leaf : stage.leaves) {
      if (stage.iterators[leaf].annotation == annotation)
        largest = std::max(largest, bounds.stages[s].extents[leaf]);
    }
  }
  return largest;
}

TEST(LoweredGolden, ProgramsHaveTheShapeOfTvms) {
  const auto workloads = record::AnsorWorkloads::load(kData + "workloads.json");
  ASSERT_TRUE(workloads.ok()) << workloads.error().message();
  auto reader = record::LineReader::open(kData + "lowered.golden.jsonl.zst", size_t{1} << 24);
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  record::LineReader::Line line;
  int on_cpu = 0, on_gpu = 0, shared = 0;
  while (*(*reader)->next(line)) {
    const Json json = Json::parse(line.text);
    record::AnsorRecord record;
    ASSERT_TRUE(record::parse_ansor_record(json["record"].dump(), record).ok());
    SCOPED_TRACE(json["device"].get<std::string>() + " " + record.workload_key + "\n" +
                 json["tir"].get<std::string>());
    const auto replayed = workloads->replay(record);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message();
    const Shape tvm = read_tvm(json["tir"]);
    if (json["device"] == "xeon8358") {
      const auto lowered = lower::lower(replayed->schedule);
      ASSERT_TRUE(lowered.ok()) << lowered.error().message();
      const Shape ours = shape_of(lowered->program);
      const auto total = [](const std::vector<int64_t>& v) {
        return std::accumulate(v.begin(), v.end(), int64_t{0});
      };
      EXPECT_EQ(total(ours.writes), total(tvm.writes));
      // TVM may store two tensors with disjoint lifetimes in one buffer.
      if (tvm.temporaries.size() < ours.temporaries.size()) {
        ++shared;
      } else {
        EXPECT_EQ(ours.writes, tvm.writes);
        EXPECT_EQ(ours.temporaries, tvm.temporaries);
      }
      ++on_cpu;
    } else {
      const auto bounds = sched::infer_bounds(replayed->schedule);
      ASSERT_TRUE(bounds.ok()) << bounds.error().message();
      EXPECT_EQ(largest_extent(replayed->schedule, *bounds, sched::Annotation::kBlockX), tvm.blocks);
      EXPECT_EQ(largest_extent(replayed->schedule, *bounds, sched::Annotation::kThreadX), tvm.threads);
      ++on_gpu;
    }
  }
  EXPECT_EQ(on_cpu, 44);
  EXPECT_EQ(on_gpu, 290);
  EXPECT_LE(shared, 3);
}

}  // namespace
}  // namespace tensorsmith::feature::lowered_golden_test
