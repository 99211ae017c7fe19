#include "record/jsonl.h"

#include <gmock/gmock.h>

#include "record_testing.h"

namespace tensorsmith::record::jsonl_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_record;
using testing::TempDir;

std::unique_ptr<Database> must_open(const std::string& path) {
  auto opened = Database::open(path);
  EXPECT_TRUE(opened.ok());
  return std::move(opened).value();
}

TEST(JsonLinesTest, LinesRoundTrip) {
  Rng rng(5);
  for (int i = 0; i < 500; ++i) {
    const Record record = testing::random_record(rng);
    const std::string line = to_json_line(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    auto parsed = parse_json_line(line);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    EXPECT_TRUE(testing::same(std::get<Record>(*parsed), record)) << line;
  }
  const TaskInfo task{"key", "text\nwith lines", "name \"x\"", 1.25e9};
  auto parsed = parse_json_line(to_json_line(task));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(std::get<TaskInfo>(*parsed).text, task.text);
  EXPECT_EQ(std::get<TaskInfo>(*parsed).name, task.name);
  EXPECT_EQ(std::get<TaskInfo>(*parsed).flops, task.flops);
}

// Programs of earlier versions refuse no line without a disturbance, and neither does this one.
TEST(JsonLinesTest, TheDisturbanceIsOptional) {
  Record record = make_record(1);
  EXPECT_EQ(to_json_line(record).find("disturbance"), std::string::npos);
  record.result.disturbance = 0.125;
  const std::string line = to_json_line(record);
  EXPECT_THAT(line, HasSubstr("\"disturbance\":0.125"));
  EXPECT_EQ(std::get<Record>(*parse_json_line(line)).result.disturbance, 0.125);
}

TEST(JsonLinesTest, ErrorsNameTheField) {
  const std::string good = to_json_line(make_record(1));
  const auto expect_error = [&](const std::string& from, const std::string& to, const std::string& what) {
    std::string line = good;
    const size_t at = line.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    line.replace(at, from.size(), to);
    auto parsed = parse_json_line(line);
    ASSERT_FALSE(parsed.ok()) << line;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(parsed.error().reason, HasSubstr(what));
  };
  expect_error("\"threads\":2", "\"threads\":0", "threads");
  expect_error("\"threads\":2", "\"threads\":1e300", "threads");
  expect_error("\"threads\":2", "\"threads\":99999999999999999999", "threads");
  expect_error("\"threads\":2", "\"threads\":\"2\"", "threads");
  expect_error("\"threads\":2", "\"threads\":3", "content key");
  expect_error("\"threads\":2,", "", "threads");
  expect_error("\"outcome\":\"ok\"", "\"outcome\":\"fine\"", "outcome");
  expect_error("\"seconds\":[", "\"seconds\":[null,", "seconds");
  expect_error("\"seconds\":[", "\"seconds\":[-1,", "seconds");
  expect_error("\"seconds\":[", "\"seconds\":[1e999,", "");
  for (const char* share : {"1.5", "-0.1", "null", "\"0\""})
    expect_error("\"v\":2", std::string("\"disturbance\":") + share + ",\"v\":2", "disturbance");
  expect_error("\"type\":\"record\"", "\"type\":\"cat\"", "type");
  expect_error("\"v\":2", "\"v\":3", "version 3");
  expect_error("\"v\":2", "\"v\":0", "version 0");
  expect_error("\"v\":2", "\"v\":1", "origin");
  expect_error("\"reason\":\"predicted\"", "\"reason\":\"because\"", "candidate");
  expect_error("\"sketch\":1", "\"sketch\":-1", "sketch");
  expect_error("\"sketch\":1", "\"sketch\":4294967296", "sketch");
  expect_error("\"decisions\":[1,", "\"decisions\":[1.5,", "decisions");
  expect_error("\"strategy\":\"evolutionary\"", "\"strategy\":null", "strategy");
  expect_error("\"candidate\":{", "\"candidate\":3,\"other\":{", "candidate");
  expect_error("split", "fuse", "content key");
  for (const char* line : {"", "{", "[]", "null", "3", "\"x\"", "{}", "{\"type\":1}"})
    EXPECT_FALSE(parse_json_line(line).ok()) << line;
  EXPECT_FALSE(parse_json_line(std::string(1 << 20, '[')).ok());
}

// Mutated lines are parsed or refused, never a crash; an accepted record agrees with its own key.
TEST(JsonLinesTest, MutatedLinesNeverCrash) {
  Rng rng(23);
  const std::string good = to_json_line(make_record(1));
  for (int i = 0; i < 20000; ++i) {
    std::string line = good;
    for (uint64_t k = 0, n = 1 + rng.below(3); k < n; ++k) {
      const size_t at = rng.below(line.size());
      if (rng.bernoulli(0.3)) {
        line.erase(at, rng.below(20));
      } else {
        line[at] = static_cast<char>(rng.next());
      }
      if (line.empty()) break;
    }
    auto parsed = parse_json_line(line);
    if (parsed.ok() && std::holds_alternative<Record>(*parsed)) {
      EXPECT_EQ(std::get<Record>(*parsed).key(), make_record(1).key());
    }
  }
}

TEST(JsonLinesTest, ExportImportIsIdempotent) {
  const TempDir dir;
  Rng rng(7);
  auto source = must_open(dir.file("source.db"));
  std::vector<Record> records;
  for (int i = 0; i < 1300; ++i) records.push_back(testing::random_record(rng));
  ASSERT_TRUE(source->add(records).ok());
  ASSERT_TRUE(source->add_task({"k", "t", "n", 5}).ok());
  ASSERT_TRUE(source->export_jsonl(dir.file("a.jsonl")).ok());
  auto target = must_open(dir.file("target.db"));
  auto report = target->import_jsonl(dir.file("a.jsonl"));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->tasks, 1);
  EXPECT_EQ(report->records, source->record_count().value());
  EXPECT_EQ(report->duplicates, 0);
  EXPECT_EQ(report->corrupt, 0);
  ASSERT_TRUE(target->export_jsonl(dir.file("b.jsonl")).ok());
  EXPECT_EQ(testing::read_file(dir.file("a.jsonl")), testing::read_file(dir.file("b.jsonl")));
  auto again = target->import_jsonl(dir.file("b.jsonl"));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->records + again->tasks, 0);
  EXPECT_EQ(again->duplicates, report->records + 1);
  EXPECT_THAT(dir.names(), ElementsAre("a.jsonl", "b.jsonl", "source.db", "target.db"));
}

TEST(JsonLinesTest, ImportSkipsAndNamesCorruptLines) {
  const TempDir dir;
  std::string text = to_json_line(make_record(1)) + "\n";
  text += "not json\n\n  \r\n";
  text += to_json_line(make_record(2)) + "\r\n";
  text += std::string("\0\0", 2) + "\n";
  text += to_json_line(make_record(2)) + "\n";
  text += std::string(Database::kMaxJsonLine + 10, '7') + "\n";
  text += to_json_line(make_record(3)).substr(0, 40) + "\n";
  text += to_json_line(make_record(4));  // no newline at the end
  testing::write_file(dir.file("in.jsonl"), text);
  auto db = must_open(":memory:");
  auto report = db->import_jsonl(dir.file("in.jsonl"));
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->records, 3);
  EXPECT_EQ(report->duplicates, 1);
  EXPECT_EQ(report->corrupt, 4);
  EXPECT_THAT(report->problems,
              ElementsAre(HasSubstr("line 2: "), HasSubstr("line 6: "),
                          HasSubstr("line 8: longer than 16777216 bytes"), HasSubstr("line 9: ")));
  EXPECT_EQ(db->record_count().value(), 3);

  std::string many;
  for (int i = 0; i < 50; ++i) many += "x\n";
  testing::write_file(dir.file("many.jsonl"), many);
  report = db->import_jsonl(dir.file("many.jsonl"));
  EXPECT_EQ(report->corrupt, 50);
  EXPECT_EQ(report->problems.size(), 20U);
}

TEST(JsonLinesTest, FilesThatCannotBeUsed) {
  const TempDir dir;
  auto db = must_open(":memory:");
  auto missing = db->import_jsonl(dir.file("none"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().place, dir.file("none"));
  auto folder = db->import_jsonl(dir.file(""));
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
  auto no_folder = db->export_jsonl(dir.file("no/a.jsonl"));
  ASSERT_FALSE(no_folder.ok());
  EXPECT_EQ(no_folder.error().code, ErrorCode::kNotFound);
  auto over_folder = db->export_jsonl(dir.file(""));
  ASSERT_FALSE(over_folder.ok());
  EXPECT_EQ(over_folder.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(dir.names().empty());
}

// Printing nested values, for the parser of devices, takes one call per level.
TEST(JsonLines, DeepNestingIsRefused) {
  for (const char* brackets : {"[]", "{}"}) {
    std::string deep;
    for (int i = 0; i < 1'000'000; ++i) deep += brackets[0] == '{' ? "{\"a\":" : "[";
    deep += "1" + std::string(1'000'000, brackets[1]);
    const auto line = parse_json_line(R"({"type":"device","v":1,"key":"k","attributes":)" + deep + "}");
    ASSERT_FALSE(line.ok());
    EXPECT_EQ(line.error().code, ErrorCode::kCorrupt);
    EXPECT_FALSE(target::parse_device(R"({"name":)" + deep + "}", "device").ok());
  }
}

}  // namespace
}  // namespace tensorsmith::record::jsonl_test
