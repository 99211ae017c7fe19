// Databases and JSON lines of earlier versions keep all their contents. tests/data/record holds a
// database of schema 1, written by the code of commit c4bc85f, and its export.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "record/jsonl.h"
#include "record_testing.h"

namespace tensorsmith::record::migration_test {
namespace {

using ::testing::HasSubstr;
using testing::read_file;
using testing::TempDir;
using Row = std::vector<std::string>;

const std::string kData = TENSORSMITH_SOURCE_DIR "/tests/data/record/";

// Returns the rows that SQLite itself reads, blobs as hexadecimal numbers.
std::vector<Row> rows(const std::string& path, const std::string& sql) {
  std::vector<Row> out;
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  const auto add = [](void* to, int columns, char** values, char**) {
    auto& row = static_cast<std::vector<Row>*>(to)->emplace_back();
    for (int i = 0; i < columns; ++i) row.emplace_back(values[i] == nullptr ? "NULL" : values[i]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), add, &out, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
  return out;
}

// All columns but the candidate's, which both schemas have.
constexpr const char* kKept =
    "SELECT id, key, task_key, device_key, threads, flush_cache, code_version, trace, outcome, reason, "
    "hex(seconds), hex(best_seconds), runs_per_repeat, stopped_early, hex(build_seconds), "
    "hex(measure_seconds), "
    "unix_ms FROM record ORDER BY id";

std::vector<Record> all(Database& database) {
  std::vector<Record> records;
  EXPECT_TRUE(database
                  .for_each([&](const Record& r) -> Status {
                    records.push_back(r);
                    return {};
                  })
                  .ok());
  return records;
}

class Schema1 : public ::testing::Test {
 protected:
  Schema1() : path_(dir_.file("old.db")) { std::filesystem::copy_file(kData + "schema1.db", path_); }
  void set_origin(int id, const std::string& text) {
    rows(path_, "UPDATE record SET origin='" + text + "' WHERE id=" + std::to_string(id));
  }
  const TempDir dir_;
  const std::string path_;
};

TEST_F(Schema1, KeepsEveryRecord) {
  const auto before = rows(path_, kKept), origins = rows(path_, "SELECT origin FROM record ORDER BY id");
  const auto tasks = rows(path_, "SELECT * FROM task"), devices = rows(path_, "SELECT * FROM device");
  ASSERT_EQ(rows(path_, "PRAGMA user_version"), std::vector<Row>{{"1"}});
  ASSERT_GE(before.size(), 20U);
  for (int round = 0; round < 2; ++round) {  // the second time, nothing is left to do
    const auto opened = Database::open(path_);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    EXPECT_TRUE((*opened)->check_integrity().ok());
    const auto records = all(**opened);
    ASSERT_EQ(records.size(), origins.size());
    size_t points = 0;
    for (size_t i = 0; i < records.size(); ++i) {
      const CandidateOrigin& c = records[i].candidate;
      EXPECT_EQ(c.note, "");
      EXPECT_EQ(c.strategy, "");
      EXPECT_EQ(c.reason == Reason::kDefault, origins[i][0] == "default");
      if (c.reason == Reason::kDefault) continue;
      EXPECT_EQ(c.reason, Reason::kUnstated);
      ASSERT_TRUE(c.point) << origins[i][0];
      EXPECT_EQ("search:" + std::to_string(c.point->sketch) + "/" + print_decisions(c.point->decisions),
                origins[i][0]);
      ++points;
    }
    EXPECT_GE(points, 5U);
  }
  EXPECT_EQ(rows(path_, "PRAGMA user_version"), std::vector<Row>{{"5"}});
  EXPECT_EQ(rows(path_, kKept), before);
  EXPECT_EQ(rows(path_, "SELECT * FROM task"), tasks);
  EXPECT_EQ(rows(path_, "SELECT * FROM device"), devices);
}

// An upgraded database and a new one have the same columns.
TEST_F(Schema1, BecomesTheSchemaOfNewDatabases) {
  ASSERT_TRUE(Database::open(path_).ok());
  ASSERT_TRUE(Database::open(dir_.file("new.db")).ok());
  const char* columns = "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('record')";
  EXPECT_EQ(rows(path_, columns), rows(dir_.file("new.db"), columns));
}

TEST_F(Schema1, KeepsTextThatIsNoCandidate) {
  const std::map<int, std::string> texts = {
      {1, ""}, {2, "search"}, {3, "import:tvm"}, {4, "search:1/2,x"}, {5, "search:1/2,"}, {6, "search:-1/2"}};
  for (const auto& [id, text] : texts) set_origin(id, text);
  // These texts start with a candidate that is understood, but two of them hold more than it.
  set_origin(7, "transfer:3/1,16,0");
  set_origin(8, "search:3/01");
  set_origin(9, "search:4/");
  const auto opened = Database::open(path_);
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  const auto records = all(**opened);
  for (const auto& [id, text] : texts) {
    EXPECT_EQ(records[static_cast<size_t>(id) - 1].candidate,
              (CandidateOrigin{Reason::kUnstated, "", {}, text}));
  }
  EXPECT_EQ(records[6].candidate,
            (CandidateOrigin{Reason::kUnstated, "", DesignPoint{3, {1, 16, 0}}, "transfer:3/1,16,0"}));
  EXPECT_EQ(records[7].candidate,
            (CandidateOrigin{Reason::kUnstated, "", DesignPoint{3, {1}}, "search:3/01"}));
  EXPECT_EQ(records[8].candidate, (CandidateOrigin{Reason::kUnstated, "", DesignPoint{4, {}}, ""}));
}

// Reading changes no file, even with a journal beside it: a reader only rolls back what a killed
// writer left, here nothing.
TEST_F(Schema1, IsReadAsItIs) {
  const std::string before = read_file(path_);
  std::ofstream(path_ + "-journal").close();
  ASSERT_TRUE(Database::open_read_only(path_).ok());
  EXPECT_EQ(read_file(path_), before);
  std::filesystem::remove(path_ + "-journal");
  const auto reader = Database::open_read_only(path_);
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  const auto records = all(**reader);
  EXPECT_FALSE((*reader)->add({testing::make_record(1)}).ok());
  EXPECT_EQ(read_file(path_), before);
  EXPECT_EQ(dir_.names(), std::vector<std::string>{"old.db"});
  const auto writer = Database::open(path_);
  ASSERT_TRUE(writer.ok());
  const auto upgraded = all(**writer);
  ASSERT_EQ(records.size(), upgraded.size());
  for (size_t i = 0; i < records.size(); ++i) EXPECT_TRUE(testing::same(records[i], upgraded[i]));
}

// A file that cannot be upgraded to the present schema stays as it was.
TEST_F(Schema1, AFailureChangesNothing) {
  rows(path_, "ALTER TABLE record ADD COLUMN why TEXT");
  const auto before = rows(path_, "SELECT * FROM record");
  EXPECT_FALSE(Database::open(path_).ok());
  EXPECT_EQ(rows(path_, "PRAGMA user_version"), std::vector<Row>{{"1"}});
  EXPECT_EQ(rows(path_, "SELECT * FROM record"), before);
}

TEST_F(Schema1, ItsExportImports) {
  const auto upgraded = Database::open(path_), imported = Database::open(dir_.file("imported.db"));
  ASSERT_TRUE(upgraded.ok() && imported.ok());
  const auto report = (*imported)->import_jsonl(kData + "version1.jsonl.zst");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_THAT(report->problems, ::testing::IsEmpty());
  const auto expected = all(**upgraded), actual = all(**imported);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(testing::same(actual[i], expected[i]));
  // The present version writes the same lines for both.
  ASSERT_TRUE((*upgraded)->export_jsonl(dir_.file("a.jsonl")).ok());
  ASSERT_TRUE((*imported)->export_jsonl(dir_.file("b.jsonl")).ok());
  EXPECT_EQ(read_file(dir_.file("a.jsonl")), read_file(dir_.file("b.jsonl")));
  EXPECT_THAT(read_file(dir_.file("a.jsonl")), HasSubstr("\"candidate\":{"));
}

// Files of schemas 2 to 4 have no disturbances.
TEST(Schema4, IsReadAsItIsAndUpgraded) {
  const TempDir dir;
  const std::string path = dir.file("old.db");
  Record quiet = testing::make_record(1), disturbed = testing::make_record(2);
  disturbed.result.disturbance = 0.25;
  ASSERT_TRUE(Database::open(path).value()->add({quiet}).ok());
  rows(path, "ALTER TABLE record DROP COLUMN disturbance; PRAGMA user_version=4");
  const std::string before = read_file(path);
  const auto reader = Database::open_read_only(path);
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  const auto read = all(**reader);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_TRUE(testing::same(read[0], quiet));
  EXPECT_TRUE((*reader)->find(quiet.key()).value().has_value());
  EXPECT_EQ((*reader)->records_of("task0", "device0", quiet.settings).value().size(), 1U);
  EXPECT_TRUE((*reader)->export_jsonl(dir.file("old.jsonl")).ok());
  EXPECT_EQ(read_file(path), before);
  const auto writer = Database::open(path);
  ASSERT_TRUE(writer.ok()) << writer.error().message();
  ASSERT_TRUE((*writer)->add({disturbed}).ok());
  const auto upgraded = all(**writer);
  ASSERT_EQ(upgraded.size(), 2U);
  EXPECT_TRUE(testing::same(upgraded[0], quiet));
  EXPECT_TRUE(testing::same(upgraded[1], disturbed));
  EXPECT_EQ(rows(path, "SELECT disturbance FROM record ORDER BY id"), (std::vector<Row>{{"NULL"}, {"0.25"}}));
}

TEST(Reasons, NamesRoundTrip) {
  for (int i = 0; i < 9; ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_EQ(parse_reason(to_string(reason)), reason);
  }
  EXPECT_EQ(parse_reason("because"), std::nullopt);
}

TEST(Decisions, RoundTripAndRefuseGarbage) {
  for (const std::vector<int64_t>& d : {std::vector<int64_t>{}, {7}, {1, 16, -3, 0}, {INT64_MIN, INT64_MAX}})
    EXPECT_EQ(parse_decisions(print_decisions(d)), d);
  EXPECT_EQ(print_decisions({1, 16, 0, 7}), "1,16,0,7");
  for (const char* bad : {"x", "1,", "1,x", ",1", "1 ,2", "1;2", "99999999999999999999"})
    EXPECT_FALSE(parse_decisions(bad)) << bad;
}

}  // namespace
}  // namespace tensorsmith::record::migration_test
