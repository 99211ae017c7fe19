#include "record/database.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cmath>
#include <set>

#include "postgresql_server.h"
#include "record_testing.h"

namespace tensorsmith::record::database_test {
namespace {

using ::testing::HasSubstr;
using testing::make_record;
using testing::random_record;
using testing::TempDir;

using tensorsmith::testing::PostgresqlServer;

std::unique_ptr<Database> must_open(const std::string& path) {
  auto opened = Database::open(path);
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message());
  return opened.ok() ? std::move(opened).value() : nullptr;
}

void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

void expect_open_error(const std::string& path, ErrorCode code, const std::string& what) {
  for (const bool read_only : {false, true}) {
    auto opened = read_only ? Database::open_read_only(path) : Database::open(path);
    ASSERT_FALSE(opened.ok()) << "read_only " << read_only;
    EXPECT_EQ(opened.error().code, code) << opened.error().message();
    EXPECT_EQ(opened.error().place, path);
    EXPECT_THAT(opened.error().reason, HasSubstr(what));
    EXPECT_EQ(opened.error().reason.find('\n'), std::string::npos);
  }
}

// Tests that apply to databases in a file and on a server alike.
class AnyDatabase : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (on_server() && PostgresqlServer::get() == nullptr) GTEST_SKIP() << PostgresqlServer::why_not();
  }
  static bool on_server() { return GetParam(); }
  // Returns the location of the database of this name.
  std::string place(const std::string& name) {
    if (!on_server()) return dir_.file(name);
    auto [at, fresh] = addresses_.emplace(name, "");
    if (fresh) at->second = PostgresqlServer::get()->new_database();
    return at->second;
  }
  void run_on(const std::string& name, const std::string& sql) {
    if (on_server()) {
      PostgresqlServer::run(place(name), "SET search_path=tensorsmith; " + sql);
    } else {
      run_sql(place(name), sql);
    }
  }
  const TempDir dir_;

 private:
  std::map<std::string, std::string> addresses_;
};
INSTANTIATE_TEST_SUITE_P(, AnyDatabase, ::testing::Bool(),
                         [](const auto& kind) { return kind.param ? "PostgreSQL" : "SQLite"; });

TEST(RecordTest, BestEstimateIsTheMedian) {
  MeasureResult result;
  EXPECT_TRUE(std::isinf(result.best_estimate()));
  result.seconds = {3};
  EXPECT_EQ(result.best_estimate(), 3);
  result.seconds = {5, 1};
  EXPECT_EQ(result.best_estimate(), 3);
  result.seconds = {9, 1, 4};
  EXPECT_EQ(result.best_estimate(), 4);
  result.seconds = {8, 1, 6, 2};
  EXPECT_EQ(result.best_estimate(), 4);
  result.outcome = Outcome::kCrash;
  EXPECT_TRUE(std::isinf(result.best_estimate()));
}

TEST(RecordTest, OutcomeNamesRoundTrip) {
  std::set<std::string_view> names;
  for (int i = 0; i < 9; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    names.insert(to_string(outcome));
    EXPECT_EQ(parse_outcome(to_string(outcome)), outcome);
  }
  EXPECT_EQ(names.size(), 9U);
  EXPECT_EQ(parse_outcome("OK"), std::nullopt);
}

TEST(RecordTest, KeyDependsOnExactlyTheContent) {
  const Record base = make_record(1);
  std::set<std::string> keys = {base.key()};
  const auto expect_new = [&](auto change) {
    Record record = base;
    change(record);
    EXPECT_TRUE(keys.insert(record.key()).second);
  };
  expect_new([](Record& r) { r.task_key = "other"; });
  expect_new([](Record& r) { r.device_key = "other"; });
  expect_new([](Record& r) { r.settings.threads = 1; });
  expect_new([](Record& r) { r.settings.flush_cache = false; });
  expect_new([](Record& r) { r.trace += "fuse"; });
  expect_new([](Record& r) { r.code_version += 1; });
  // Moving a byte from one field to the next changes the content.
  expect_new([](Record& r) { r.task_key += "d", r.device_key.erase(0, 1); });
  Record same_content = base;
  same_content.result.seconds = {1};
  same_content.unix_ms = 5;
  same_content.candidate.note = "import:x";
  EXPECT_EQ(same_content.key(), base.key());
}

TEST_P(AnyDatabase, RoundTripsArbitraryRecords) {
  Rng rng(1);
  std::map<std::string, Record> expected;
  {
    auto db = must_open(place("a.db"));
    for (int i = 0; i < 30; ++i) {
      std::vector<Record> batch;
      for (int k = 0; k < 10; ++k) batch.push_back(random_record(rng));
      ASSERT_TRUE(db->add(batch).ok());
      for (const Record& record : batch) expected.emplace(record.key(), record);
    }
  }
  if (!on_server()) {
    EXPECT_THAT(dir_.names(), ::testing::ElementsAre("a.db"));
  }
  for (const bool read_only : {false, true}) {
    auto opened = read_only ? Database::open_read_only(place("a.db")) : Database::open(place("a.db"));
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    auto& db = *opened.value();
    EXPECT_EQ(db.record_count().value(), static_cast<int64_t>(expected.size()));
    for (const auto& [key, record] : expected) {
      auto found = db.find(key);
      ASSERT_TRUE(found.ok() && found->has_value());
      EXPECT_TRUE(testing::same(**found, record));
    }
    EXPECT_TRUE(db.check_integrity().ok());
    EXPECT_FALSE(db.find("no such key")->has_value());
  }
  // records_of and best, compared with brute force.
  auto db = must_open(place("a.db"));
  for (int task = 0; task < 3; ++task) {
    for (int threads = 1; threads <= 4; ++threads) {
      for (const bool flush : {false, true}) {
        const MeasureSettings settings{threads, flush};
        std::set<std::string> keys;
        double best = INFINITY;
        for (const auto& [key, r] : expected) {
          if (r.task_key != "task" + std::to_string(task) || !(r.settings == settings) ||
              r.code_version != kCodeVersion)
            continue;
          keys.insert(key);
          best = std::min(best, r.result.best_estimate());
        }
        auto records = db->records_of("task" + std::to_string(task), "device0", settings);
        ASSERT_TRUE(records.ok());
        std::set<std::string> got;
        for (const Record& r : *records) got.insert(r.key());
        EXPECT_EQ(got, keys);
        auto fastest = db->best("task" + std::to_string(task), "device0", settings);
        ASSERT_TRUE(fastest.ok());
        EXPECT_EQ(fastest->has_value() ? (*fastest)->result.best_estimate() : INFINITY, best);
        EXPECT_TRUE(db->records_of("task0", "another device", settings)->empty());
      }
    }
  }
}

TEST_P(AnyDatabase, AddingTwiceKeepsTheFirst) {
  auto db = must_open(place("a.db"));
  ASSERT_TRUE(db->add({make_record(1, "t", 1.0), make_record(1, "t", 2.0)}).ok());
  ASSERT_TRUE(db->add({make_record(1, "t", 3.0), make_record(2, "t", 4.0)}).ok());
  EXPECT_EQ(db->record_count().value(), 2);
  EXPECT_EQ(db->find(make_record(1, "t").key()).value()->result.seconds[0], 1.0);
}

TEST_P(AnyDatabase, RecordsComeInTheOrderOfInsertion) {
  auto db = must_open(place("a.db"));
  for (const int i : {5, 3, 9, 1}) ASSERT_TRUE(db->add({make_record(i)}).ok());
  auto records = db->records_of("task0", "device0", {2, true});
  ASSERT_EQ(records->size(), 4U);
  EXPECT_EQ((*records)[0].trace, make_record(5).trace);
  EXPECT_EQ((*records)[3].trace, make_record(1).trace);
}

TEST_P(AnyDatabase, InvalidRecordAddsNothing) {
  auto db = must_open(place("a.db"));
  Record bad = make_record(2);
  bad.result.seconds = {NAN};
  auto status = db->add({make_record(1), bad});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message(), HasSubstr("finite"));
  bad.result.seconds = {};
  EXPECT_FALSE(db->add({bad}).ok());
  EXPECT_EQ(db->record_count().value(), 0);
  bad.result.outcome = Outcome::kBuildError;
  EXPECT_TRUE(db->add({bad}).ok());
}

TEST_P(AnyDatabase, TasksAreIdempotent) {
  auto db = must_open(place("a.db"));
  ASSERT_TRUE(db->add_task({"k1", "workload text", "conv2d", 1e9}).ok());
  ASSERT_TRUE(db->add_task({"k0", "", "", 0}).ok());
  ASSERT_TRUE(db->add_task({"k1", "changed", "changed", 2}).ok());
  auto tasks = must_open(place("a.db"))->tasks();
  ASSERT_EQ(tasks->size(), 2U);
  EXPECT_EQ((*tasks)[0].key, "k1");
  EXPECT_EQ((*tasks)[0].text, "workload text");
  EXPECT_EQ((*tasks)[0].name, "conv2d");
  EXPECT_EQ((*tasks)[0].flops, 1e9);
}

TEST_P(AnyDatabase, ReadOnlyRefusesWrites) {
  must_open(place("a.db"));
  auto db = std::move(Database::open_read_only(place("a.db"))).value();
  auto status = db->add({make_record(1)});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_THAT(status.error().message(), HasSubstr("not writable"));
}

TEST(DatabaseTest, MissingFilesAndFolders) {
  const TempDir dir;
  auto missing = Database::open_read_only(dir.file("none.db"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(dir.names().empty());
  auto no_folder = Database::open(dir.file("no/folder/a.db"));
  ASSERT_FALSE(no_folder.ok());
  EXPECT_EQ(no_folder.error().code, ErrorCode::kNotFound) << no_folder.error().message();
  EXPECT_THAT(no_folder.error().reason, HasSubstr("folder"));
  auto folder = Database::open(dir.file(""));
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
}

TEST_P(AnyDatabase, DevicesAreKeptWithTheirMeasuredAttributes) {
  auto db = must_open(place("a.db"));
  // At first the table of devices is empty.
  ASSERT_TRUE(db->devices().ok());
  EXPECT_TRUE(db->devices()->empty());
  target::Device device = target::registry().front();
  const std::string key = device.key();
  device.memory_bandwidth_gbs = 12.5;
  ASSERT_TRUE(db->add_device({key, device}).ok());
  device.memory_bandwidth_gbs = 99;
  ASSERT_TRUE(db->add_device({key, device}).ok());
  ASSERT_TRUE(db->add_device({"other", device}).ok());
  auto read_only = Database::open_read_only(place("a.db"));
  ASSERT_TRUE(read_only.ok());
  const auto devices = (*read_only)->devices();
  ASSERT_TRUE(devices.ok()) << devices.error().message();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ(devices->front().key, key);
  EXPECT_EQ(devices->front().device.memory_bandwidth_gbs, 12.5);  // the stored entry is kept
  device.memory_bandwidth_gbs = 12.5;
  EXPECT_EQ(target::to_json(devices->front().device), target::to_json(device));

  // Devices are part of an export.
  ASSERT_TRUE(db->export_jsonl(dir_.file("a.jsonl")).ok());
  auto copy = must_open(place("copy.db"));
  const auto report = copy->import_jsonl(dir_.file("a.jsonl"));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->devices, 2);
  EXPECT_EQ(report->corrupt, 0);
  EXPECT_EQ(copy->import_jsonl(dir_.file("a.jsonl"))->duplicates, 2);
  EXPECT_EQ(copy->devices()->back().key, "other");

  run_on("a.db", "UPDATE device SET json='{\"name\": 3}'");
  const auto damaged = db->devices();
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
}

TEST_P(AnyDatabase, ExportOfTheFastest) {
  auto db = must_open(place("a.db"));
  Record failed = make_record(50);
  failed.result = {};
  failed.result.outcome = Outcome::kCrash;
  Record old = make_record(51, "task0", 1e-9);
  old.code_version += 1;
  ASSERT_TRUE(db->add({failed, old}).ok());
  for (int i = 0; i < 6; ++i)
    ASSERT_TRUE(db->add({make_record(i, "task" + std::to_string(i % 2), 1e-3 * (6 - i))}).ok());
  Record other = make_record(7, "task0", 1);
  other.device_key = "device1";
  ASSERT_TRUE(db->add({other}).ok());
  ASSERT_TRUE(db->export_jsonl(dir_.file("fast.jsonl"), {.fastest = 2}).ok());
  auto copy = must_open(place("copy.db"));
  const auto report = copy->import_jsonl(dir_.file("fast.jsonl"));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->records, 5);
  for (int i : {2, 3, 4, 5})
    EXPECT_TRUE(copy->find(make_record(i, "task" + std::to_string(i % 2)).key())->has_value());
  EXPECT_TRUE(copy->find(other.key())->has_value());
}

TEST_P(AnyDatabase, ForEachGivesTheRecordsOfThisVersionInOrder) {
  auto db = must_open(place("a.db"));
  for (int i = 0; i < 5; ++i) {
    Record record = make_record(i, "task" + std::to_string(i % 2));
    if (i == 3) record.code_version += 1;
    ASSERT_TRUE(db->add({record}).ok());
  }
  std::vector<std::string> traces;
  ASSERT_TRUE(db->for_each([&](const Record& r) -> Status {
                  traces.push_back(r.trace);
                  return {};
                }).ok());
  EXPECT_THAT(traces, ::testing::ElementsAre(make_record(0).trace, make_record(1).trace, make_record(2).trace,
                                             make_record(4).trace));
  const Status stopped =
      db->for_each([](const Record&) -> Status { return Error{ErrorCode::kCancelled, "", "enough"}; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

TEST(DatabaseTest, ForeignDatabases) {
  const TempDir dir;
  run_sql(dir.file("foreign.db"), "CREATE TABLE cats(name TEXT)");
  expect_open_error(dir.file("foreign.db"), ErrorCode::kMismatch, "another program");
  run_sql(dir.file("id.db"), "PRAGMA application_id=77");
  expect_open_error(dir.file("id.db"), ErrorCode::kMismatch, "application id 77");
  must_open(dir.file("newer.db"));
  run_sql(dir.file("newer.db"), "PRAGMA user_version=6");
  expect_open_error(dir.file("newer.db"), ErrorCode::kMismatch, "schema version 6");
  run_sql(dir.file("newer.db"), "PRAGMA user_version=-1");
  expect_open_error(dir.file("newer.db"), ErrorCode::kCorrupt, "schema version -1");
  // A foreign file is left exactly as it was.
  const std::string before = testing::read_file(dir.file("foreign.db"));
  EXPECT_FALSE(Database::open(dir.file("foreign.db")).ok());
  EXPECT_EQ(testing::read_file(dir.file("foreign.db")), before);
}

// A foreign view, trigger or computed column in place of one of our tables is code: reading it
// would run it.
TEST(DatabaseTest, ForeignPartsOfTheSchema) {
  const char* endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r";
  const std::pair<std::string, std::string> parts[] = {
      {"DROP TABLE task; CREATE VIEW task AS SELECT n AS key, '' AS text, '' AS name, 0 AS flops FROM (" +
           std::string(endless) + ")",
       "contains the view task"},
      {"CREATE TRIGGER t AFTER INSERT ON task BEGIN DELETE FROM record; END", "contains the trigger t"},
      {"ALTER TABLE task ADD COLUMN extra TEXT AS (upper(text))", "contains the computed column extra"},
      {"CREATE TABLE notes(text TEXT)", "contains the table notes"},
      {"CREATE INDEX more ON task(upper(text))", "contains the index more"}};
  for (const auto& [sql, message] : parts) {
    const TempDir folder;
    const std::string path = folder.file("a.db");
    ASSERT_TRUE((*Database::open(path))->add({make_record(1)}).ok());
    run_sql(path, sql);
    for (const auto& opened : {Database::open(path), Database::open_read_only(path)}) {
      ASSERT_FALSE(opened.ok()) << sql;
      EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
      EXPECT_THAT(opened.error().message(), HasSubstr(message));
    }
  }
}

// zeroblob() writes a large blob without memory for it, but reading it takes all of it.
TEST(DatabaseTest, LargeValuesAreRefused) {
  const TempDir folder;
  const std::string path = folder.file("a.db");
  ASSERT_TRUE((*Database::open(path))->add({make_record(1)}).ok());
  run_sql(path, "UPDATE record SET seconds=zeroblob(67108864)");
  const auto database = Database::open_read_only(path);
  ASSERT_TRUE(database.ok());
  EXPECT_FALSE((*database)->check_integrity().ok());
  EXPECT_FALSE((*database)->for_each([](const Record&) { return Status(); }).ok());
}

TEST(DatabaseTest, RandomBytesAndTruncatedFiles) {
  const TempDir dir;
  Rng rng(3);
  std::string bytes(5000, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.next());
  testing::write_file(dir.file("random.db"), bytes);
  expect_open_error(dir.file("random.db"), ErrorCode::kCorrupt, "not an SQLite database");
  testing::write_file(dir.file("short.db"), "hello\n");
  expect_open_error(dir.file("short.db"), ErrorCode::kCorrupt, "not an SQLite database");

  {
    auto db = must_open(dir.file("whole.db"));
    std::vector<Record> records;
    for (int i = 0; i < 400; ++i) records.push_back(make_record(i));
    ASSERT_TRUE(db->add(records).ok());
  }
  const std::string whole = testing::read_file(dir.file("whole.db"));
  ASSERT_GT(whole.size(), 40000U);
  for (const size_t size :
       {whole.size() / 2, whole.size() - 1, whole.size() - 4096, size_t{4096}, size_t{100}}) {
    testing::write_file(dir.file("cut.db"), whole.substr(0, size));
    for (const bool read_only : {false, true}) {
      auto opened =
          read_only ? Database::open_read_only(dir.file("cut.db")) : Database::open(dir.file("cut.db"));
      ASSERT_FALSE(opened.ok()) << "cut at " << size;
      EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt) << opened.error().message();
    }
  }
}

// Whichever byte is damaged, the result is an error or a sound answer, never a crash, and a changed
// record is detected.
TEST(DatabaseTest, DamagedBytesNeverCrash) {
  const TempDir dir;
  {
    auto db = must_open(dir.file("whole.db"));
    std::vector<Record> records;
    for (int i = 0; i < 60; ++i) records.push_back(make_record(i));
    ASSERT_TRUE(db->add(records).ok());
  }
  const std::string whole = testing::read_file(dir.file("whole.db"));
  Rng rng(11);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 8; ++k) damaged[rng.below(damaged.size())] = static_cast<char>(rng.next());
    testing::write_file(dir.file("damaged.db"), damaged);
    auto opened = Database::open(dir.file("damaged.db"));
    if (!opened.ok()) {
      ++refused;
      continue;
    }
    [[maybe_unused]] auto checked = (*opened)->check_integrity();
    [[maybe_unused]] auto records = (*opened)->records_of("task0", "device0", {2, true});
    [[maybe_unused]] auto best = (*opened)->best("task0", "device0", {2, true});
  }
  EXPECT_GT(refused, 10);
}

TEST_P(AnyDatabase, IntegrityCheckNoticesAChangedTrace) {
  ASSERT_TRUE(must_open(place("a.db"))->add({make_record(1)}).ok());
  run_on("a.db", "UPDATE record SET trace='changed'");
  auto status = must_open(place("a.db"))->check_integrity();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(status.error().message(), HasSubstr("content key"));
  run_on("a.db", "UPDATE record SET outcome='nonsense'");
  auto found = must_open(place("a.db"))->find(make_record(1).key());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
}

TEST(DatabaseTest, EmptyFileBecomesADatabase) {
  const TempDir dir;
  testing::write_file(dir.file("a.db"), "");
  auto read_only = Database::open_read_only(dir.file("a.db"));
  ASSERT_FALSE(read_only.ok());
  EXPECT_EQ(read_only.error().code, ErrorCode::kMismatch);
  EXPECT_TRUE(must_open(dir.file("a.db"))->add({make_record(1)}).ok());
}

}  // namespace
}  // namespace tensorsmith::record::database_test
