// Ansor's records as answers of a language model: nothing is lost, and the grammar allows exactly
// the legal answers.
#include "search/ansor_answer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/rng.h"
#include "record/ansor/workloads.h"
#include "record/line_reader.h"

namespace tensorsmith::search::ansor_answer_test {
namespace {

using record::AnsorParts;
using record::AnsorRecord;
using record::AnsorWorkloads;

const std::string kSamples = TENSORSMITH_SOURCE_DIR "/tests/data/ansor/";

target::Device device_of(const std::string& name) { return *target::find_device(name); }

// Calls function(record, line) for each record of a file.
template <class Function>
void for_each_record(const std::string& path, const Function& function) {
  auto reader = record::LineReader::open(path, size_t{1} << 24);
  ASSERT_TRUE(reader.ok()) << path;
  record::LineReader::Line line;
  AnsorRecord record;
  while (true) {
    const auto more = (*reader)->next(line);
    ASSERT_TRUE(more.ok());
    if (!*more) return;
    const auto status = record::parse_ansor_record(line.text, record);
    ASSERT_TRUE(status.ok()) << path << ":" << line.number;
    ASSERT_NO_FATAL_FAILURE(function(record, line.text));
  }
}

// The sketches of a file with their contexts.
class Contexts {
 public:
  Contexts(const AnsorWorkloads& workloads, target::Device device)
      : workloads_(workloads), device_(std::move(device)) {}

  void add(const AnsorRecord& record) {
    auto parts = record::split_trace(record.trace);
    auto& sketches = found_[record.workload_key];
    if (sketches.empty() && !workloads_.replay(record).ok()) return;
    auto known = std::find_if(sketches.begin(), sketches.end(),
                              [&](const auto& s) { return s.sketch == parts.sketch; });
    if (known == sketches.end()) known = sketches.insert(known, Sketch{parts.sketch, {}, nullptr});
    if (std::find(known->placements.begin(), known->placements.end(), parts.placement) ==
        known->placements.end())
      known->placements.push_back(parts.placement);
  }
  const AnsorContext* of(const AnsorRecord& record, const AnsorParts& parts) {
    for (Sketch& sketch : found_[record.workload_key]) {
      if (sketch.sketch != parts.sketch) continue;
      if (sketch.context == nullptr) {
        const auto task = workloads_.find(record.workload_key);
        if (task == nullptr) return nullptr;
        auto made = AnsorContext::create(task->fresh, sketch.sketch, sketch.placements, device_);
        if (!made.ok()) return nullptr;
        sketch.context = *made;
      }
      return sketch.context.get();
    }
    return nullptr;
  }
  template <class Function>
  void for_each(const Function& function) {
    for (auto& [key, sketches] : found_)
      for (auto& sketch : sketches)
        if (sketch.context != nullptr) function(key, *sketch.context);
  }

 private:
  struct Sketch {
    sched::Trace sketch;
    std::vector<sched::Trace> placements;
    std::shared_ptr<const AnsorContext> context;
  };
  const AnsorWorkloads& workloads_;
  target::Device device_;
  std::map<std::string, std::vector<Sketch>> found_;
};

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// Expects that the record as TVM would read it is unchanged: its steps to the byte except for
// spaces, its times and flags.
void expect_written_as_it_was(const AnsorRecord& record, const std::string& line) {
  const std::string written = record::to_ansor_line(record);
  const auto steps_of = [](const std::string& text) { return text.substr(0, text.find("],\"r\":")); };
  ASSERT_EQ(steps_of(without_spaces(written)), steps_of(without_spaces(line)));
  AnsorRecord again;
  ASSERT_TRUE(record::parse_ansor_record(written, again).ok());
  ASSERT_EQ(again.seconds, record.seconds);
  ASSERT_EQ(again.error_no, record.error_no);
  ASSERT_EQ(again.unix_seconds, record.unix_seconds);
}

// Returns why an answer made without a record could not have these decisions; empty if it could.
std::string why_not(const AnsorContext& context, const std::vector<int64_t>& decisions) {
  AnsorAnswer answer(context);
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (answer.take(decisions[i])) continue;
    if (i >= context.slots().size()) return "the placement";
    const AnsorSlot& slot = context.slots()[i];
    if (slot.parts == 0) return "a limit of unrolling";
    if (slot.extent == 0) return "a copy that was split for another tile";
    if (slot.part == slot.parts - 1 && decisions[i] > kMostInnermost)
      return "an innermost loop that is too long";
    return slot.extent % decisions[i] == 0 ? "more threads than the device has"
                                           : "a length that divides nothing";
  }
  return "";
}

struct Counts {
  int records = 0;
  std::map<std::string, int> not_free;  // by reason
};

// Takes every record, failed ones too, through text -> steps -> sketch and decisions -> answer ->
// steps -> text.
void round_trip(const std::string& folder, const std::string& workloads_file, const std::string& name,
                Counts& counts) {
  const auto workloads = AnsorWorkloads::load(folder + workloads_file);
  ASSERT_TRUE(workloads.ok());
  Contexts contexts(*workloads, device_of(name));
  const std::string path = folder + name + ".jsonl.zst";
  for_each_record(path, [&](const AnsorRecord& record, const std::string&) { contexts.add(record); });
  for_each_record(path, [&](const AnsorRecord& record, const std::string& line) {
    ASSERT_NO_FATAL_FAILURE(expect_written_as_it_was(record, line));
    const AnsorParts parts = record::split_trace(record.trace);
    const auto joined = record::join_trace(parts);
    ASSERT_TRUE(joined.has_value());
    ASSERT_EQ(*joined, record.trace);
    const AnsorContext* context = contexts.of(record, parts);
    ASSERT_NE(context, nullptr) << line;
    const auto decisions = decisions_in_order(*context, parts);
    ASSERT_TRUE(decisions.has_value()) << line;
    const auto again = from_decisions(*context, *decisions);
    ASSERT_TRUE(again.has_value());
    ASSERT_EQ(*again, parts);
    ++counts.records;
    const std::string reason = why_not(*context, *decisions);
    if (!reason.empty()) ++counts.not_free[reason];
  });
}

TEST(AnsorAnswer, RecordsComeBackAsTheyWere) {
  for (const char* name : {"v100", "k80", "mi50", "xeon8358"}) {
    SCOPED_TRACE(name);
    Counts counts;
    ASSERT_NO_FATAL_FAILURE(round_trip(kSamples, "workloads.json", name, counts));
    EXPECT_GT(counts.records, 100);
  }
}

// All records from which the samples were taken, if TENSORSMITH_ANSOR_RECORDS names their folder.
TEST(AnsorAnswer, AllRecordsComeBackAsTheyWere) {
  const char* folder = std::getenv("TENSORSMITH_ANSOR_RECORDS");
  if (folder == nullptr) GTEST_SKIP() << "TENSORSMITH_ANSOR_RECORDS is not set";
  const std::pair<const char*, const char*> files[] = {{"v100", "workloads.json"},
                                                       {"k80", "workloads.json"},
                                                       {"mi50", "workloads.json"},
                                                       {"xeon8358", "workloads.json"},
                                                       {"rtx2080ti", "workloads.rtx2080ti.json"}};
  for (const auto& [name, workloads] : files) {
    SCOPED_TRACE(name);
    Counts counts;
    ASSERT_NO_FATAL_FAILURE(round_trip(std::string(folder) + "/", workloads, name, counts));
    EXPECT_GT(counts.records, 4000);
    std::printf("%s: %d records came back; no free answer may be:", name, counts.records);
    for (const auto& [reason, count] : counts.not_free) std::printf(" %d, for %s;", count, reason.c_str());
    std::printf("\n");
  }
}

// A matrix product on a GPU with a result of 4 x 2 and sums of 2 terms; both operands are copied to
// shared memory.
constexpr const char* kSmallWorkload = R"JSON({
  "[\"product\"]": {"compute_dag": "A = PLACEHOLDER [4, 2]\nB = PLACEHOLDER [2, 2]\nC(i, j) += (A[i, k]*B[k, j])"}
})JSON";
constexpr const char* kSmallRecord =
    R"({"i":[["[\"product\"]","cuda",[-1,16,64,49152,2147483647,1024,8,32],"",0,[]],[[],[["CHW",2,"local"],["SP",2,0,4,[1,1,1,1],1],["SP",2,5,2,[1,1,1,1],1],["SP",2,10,2,[1,1],1],["RE",2,[0,5,1,6,2,7,10,11,3,8,12,4,9]],["FSP",3,0,1,3],["FSP",3,4,2,3],["RE",3,[0,4,1,5,2,6,3,7]],["CA",2,3,5],["CHR",1,"shared",[2]],["CA",2,3,6],["CHR",0,"shared",[3]],["CA",1,4,6],["FU",5,[0,1]],["AN",5,0,5],["FU",5,[1,2]],["AN",5,1,4],["FU",5,[2,3]],["AN",5,2,6],["FU",3,[0,1]],["SP",3,0,4,[1],1],["AN",3,1,2],["FFSP",3,0,[2,1],1,1],["AN",3,1,6],["FU",1,[0,1]],["SP",1,0,4,[1],1],["AN",1,1,2],["FFSP",1,0,[2,1],1,1],["AN",1,1,6],["PR",4,0,"auto_unroll_max_step$0"]]]],"r":[[0.1],0,1,1],"v":"v0.6"})";

void collect(const AnsorAnswer& answer, std::set<std::vector<int64_t>>& out) {
  if (answer.done()) {
    EXPECT_TRUE(out.insert(answer.parts().numbers).second) << "an answer is written in two ways";
    return;
  }
  int allowed = 0;
  for (int64_t value = answer.least(); value <= answer.most(); ++value) {
    if (!answer.allows(value)) continue;
    AnsorAnswer next = answer;
    ASSERT_TRUE(next.take(value));
    ++allowed;
    collect(next, out);
  }
  EXPECT_GT(allowed, 0) << "a dead end";
}

// Returns all lists of `parts` lengths whose product divides the extent.
std::vector<std::vector<int64_t>> tilings(int64_t extent, int parts) {
  if (parts == 0) return {{}};
  std::vector<std::vector<int64_t>> out;
  for (int64_t length = 1; length <= extent; ++length) {
    if (extent % length != 0) continue;
    for (auto rest : tilings(extent / length, parts - 1)) {
      rest.insert(rest.begin(), length);
      out.push_back(rest);
    }
  }
  return out;
}

int64_t product(const std::vector<int64_t>& lengths) {
  int64_t out = 1;
  for (const int64_t length : lengths) out *= length;
  return out;
}

TEST(AnsorAnswer, AllowsExactlyTheLegalLengths) {
  const auto workloads = AnsorWorkloads::from_json(kSmallWorkload);
  ASSERT_TRUE(workloads.ok());
  AnsorRecord record;
  ASSERT_TRUE(record::parse_ansor_record(kSmallRecord, record).ok());
  const auto replayed = workloads->replay(record);
  ASSERT_TRUE(replayed.ok()) << replayed.error().message();
  const AnsorParts parts = record::split_trace(record.trace);
  for (const int limit : {2, 4, 1024}) {
    target::Device device = device_of("v100");
    device.gpu().max_threads_per_block = limit;
    const auto context = AnsorContext::create(replayed->task->fresh, parts.sketch, {parts.placement}, device);
    ASSERT_TRUE(context.ok()) << context.error().message();
    std::set<std::vector<int64_t>> found, legal;
    collect(AnsorAnswer(**context), found);
    // By hand: the tile of a block is the axis without the blocks' part, and the second length is
    // the threads' part; a block copies its rows of A and columns of B for one step of k.
    for (const auto& i : tilings(4, 4))
      for (const auto& j : tilings(2, 4))
        for (const auto& k : tilings(2, 2)) {
          if (i[1] * j[1] > limit) continue;
          for (const auto& b : tilings(product(k) * product(j), 1))
            for (const auto& a : tilings(product(i) * product(k), 1))
              for (const int64_t unroll : {0, 16, 64, 512, 1024}) {
                std::vector<int64_t> numbers;
                for (const auto* lengths : {&i, &j, &k, &b, &a})
                  numbers.insert(numbers.end(), lengths->begin(), lengths->end());
                numbers.push_back(unroll);
                legal.insert(numbers);
              }
        }
    EXPECT_EQ(found.size(), legal.size()) << "threads " << limit;
    EXPECT_TRUE(found == legal) << "threads " << limit;
  }
}

// Draws answers token by token among the allowed ones, for all sketches of the sample records.
TEST(AnsorAnswer, WhateverIsWrittenReplays) {
  const uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const auto workloads = AnsorWorkloads::load(kSamples + "workloads.json");
  ASSERT_TRUE(workloads.ok());
  for (const char* name : {"v100", "mi50", "xeon8358"}) {
    Contexts contexts(*workloads, device_of(name));
    const std::string path = kSamples + name + ".jsonl.zst";
    std::map<std::string, std::string> tasks;
    for_each_record(path, [&](const AnsorRecord& record, const std::string&) {
      contexts.add(record);
      tasks[record.workload_key] = record.task;
    });
    for_each_record(path, [&](const AnsorRecord& record, const std::string&) {
      contexts.of(record, record::split_trace(record.trace));
    });
    int written = 0;
    contexts.for_each([&](const std::string& key, const AnsorContext& context) {
      for (int i = 0; i < 3; ++i) {
        AnsorAnswer answer(context);
        learn::lm::TokenWalk walk(answer);
        while (!walk.done()) {
          const auto allowed = walk.allowed();
          ASSERT_TRUE(allowed.any()) << "a dead end";
          size_t token = rng.below(learn::lm::kOutputs);
          while (!allowed[token]) token = rng.below(learn::lm::kOutputs);
          ASSERT_TRUE(walk.take(static_cast<uint8_t>(token)));
        }
        AnsorRecord record;
        record.task = tasks[key];
        record.trace = *record::join_trace(answer.parts());
        record.split_extents = answer.split_extents();
        record.seconds = {0};
        AnsorRecord again;
        const auto status = record::parse_ansor_record(record::to_ansor_line(record), again);
        ASSERT_TRUE(status.ok()) << status.error().message();
        EXPECT_TRUE(again.unmeasured());
        EXPECT_EQ(again.trace, record.trace);
        const auto replayed = workloads->replay(again);
        ASSERT_TRUE(replayed.ok()) << replayed.error().message();
        ++written;
      }
    });
    EXPECT_GT(written, 30) << name;
  }
}

}  // namespace
}  // namespace tensorsmith::search::ansor_answer_test
