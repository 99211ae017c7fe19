#include "record/database.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/input_file.h"
#include "record/jsonl.h"
#include "record/line_reader.h"
#include "record/sqlite/candidate_columns.h"
#include "record/sqlite/connection.h"
#include "record/sqlite/schema.h"
#include "record/sqlite/statement.h"

namespace tensorsmith::record {

namespace {

constexpr size_t kImportBatch = 512;
class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(sqlite3* db, std::string path) : connection_(db, path), path_(std::move(path)) {}

  Status prepare(bool writable) { return connection_.prepare(writable); }

  Status add_task(const TaskInfo& task) override {
    const std::lock_guard lock(mutex_);
    return connection_.transaction([&]() -> Status {
      TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool added, insert_task(task));
      return {};
    });
  }

  Status add_device(const DeviceInfo& device) override {
    const std::lock_guard lock(mutex_);
    return connection_.transaction([&]() -> Status {
      TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool added, insert_device(device));
      return {};
    });
  }

  Status add(const std::vector<Record>& records) override {
    for (const Record& record : records) {
      if (auto status = check_record(record); !status.ok())
        return Error{status.error().code, path_, status.error().reason};
    }
    const std::lock_guard lock(mutex_);
    return connection_.transaction([&]() -> Status {
      for (const Record& record : records) {
        TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool added, insert_record(record));
      }
      return {};
    });
  }

  Status add(const std::vector<Profile>& profiles) override {
    for (const Profile& profile : profiles) {
      if (auto status = check_profile(profile); !status.ok())
        return Error{status.error().code, path_, status.error().reason};
    }
    const std::lock_guard lock(mutex_);
    return connection_.transaction([&]() -> Status {
      for (const Profile& profile : profiles) {
        TS_ASSIGN_OR_RETURN(const bool there, has_record(profile.record_key));
        if (!there)
          return Error{ErrorCode::kInvalidArgument, path_,
                       "profile of record " + profile.record_key + ", which is not there"};
        TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool added, insert_profile(profile));
      }
      return {};
    });
  }

  Status for_each_profile(const std::string& profiler,
                          const std::function<Status(const Profile&)>& fn) override {
    const std::lock_guard lock(mutex_);
    return read_profiles("WHERE profiler=?1 ORDER BY rowid", profiler, fn);
  }

  Result<std::optional<Record>> find(const std::string& record_key) override {
    const std::lock_guard lock(mutex_);
    Statement select = connection_.statement(std::string("SELECT ") + kColumns + " FROM record WHERE key=?1");
    select.bind(record_key);
    return first_of(select);
  }

  Result<std::vector<Record>> records_of(const std::string& task_key, const std::string& device_key,
                                         const MeasureSettings& settings) override {
    const std::lock_guard lock(mutex_);
    Statement select =
        connection_.statement(std::string("SELECT ") + kColumns +
                              " FROM record WHERE task_key=?1 AND device_key=?2 AND threads=?3 AND "
                              "flush_cache=?4 AND code_version=?5 ORDER BY id");
    bind_task(select, task_key, device_key, settings);
    std::vector<Record> records;
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return records;
      TS_ASSIGN_OR_RETURN(Record record, read_record(select));
      records.push_back(std::move(record));
    }
  }

  Result<std::optional<Record>> best(const std::string& task_key, const std::string& device_key,
                                     const MeasureSettings& settings) override {
    const std::lock_guard lock(mutex_);
    Statement select =
        connection_.statement(std::string("SELECT ") + kColumns +
                              " FROM record WHERE task_key=?1 AND device_key=?2 AND threads=?3 AND "
                              "flush_cache=?4 AND code_version=?5 AND best_seconds IS NOT NULL "
                              "ORDER BY best_seconds, id LIMIT 1");
    bind_task(select, task_key, device_key, settings);
    return first_of(select);
  }

  Result<std::vector<TaskInfo>> tasks() override {
    const std::lock_guard lock(mutex_);
    Statement select = connection_.statement("SELECT key, text, name, flops FROM task ORDER BY rowid");
    std::vector<TaskInfo> tasks;
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return tasks;
      tasks.push_back(read_task(select));
    }
  }

  Result<std::vector<DeviceInfo>> devices() override {
    const std::lock_guard lock(mutex_);
    return read_devices();
  }

  Status for_each(const std::function<Status(const Record&)>& fn) override {
    const std::lock_guard lock(mutex_);
    Statement select = connection_.statement(std::string("SELECT ") + kColumns +
                                             " FROM record WHERE code_version=?1 ORDER BY id");
    select.bind(static_cast<int64_t>(kCodeVersion));
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return {};
      TS_ASSIGN_OR_RETURN(const Record record, read_record(select));
      TS_RETURN_IF_ERROR(fn(record));
    }
  }

  Result<int64_t> record_count() override {
    const std::lock_guard lock(mutex_);
    return connection_.scalar("SELECT count(*) FROM record");
  }

  Status check_integrity() override {
    const std::lock_guard lock(mutex_);
    TS_RETURN_IF_ERROR(connection_.check("PRAGMA integrity_check(1)"));
    Statement select = connection_.statement(std::string("SELECT ") + kColumns + " FROM record ORDER BY id");
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return {};
      TS_ASSIGN_OR_RETURN(const Record record, read_record(select));
      if (record.key() != select.text(0))
        return Error{ErrorCode::kCorrupt, path_,
                     "record " + select.text(0) + " does not match its content key; restore a copy"};
    }
  }

  using Database::export_jsonl;
  Status export_jsonl(const std::string& path, const ExportOptions& options) override {
    const std::string columns = std::string("SELECT ") + kColumns;
    if (options.fastest == 0) return export_lines(path, columns + " FROM record ORDER BY id", options.tasks);
    return export_lines(path,
                        columns +
                            " FROM (SELECT *, row_number() OVER (PARTITION BY task_key, device_key, "
                            "threads, flush_cache ORDER BY best_seconds, id) AS place FROM record "
                            "WHERE best_seconds IS NOT NULL AND code_version=" +
                            std::to_string(kCodeVersion) +
                            ") WHERE place<=" + std::to_string(options.fastest) + " ORDER BY id",
                        options.tasks);
  }

  Result<ImportReport> import_jsonl(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    TS_ASSIGN_OR_RETURN(auto reader, LineReader::open(path, kMaxJsonLine));
    ImportReport report;
    const auto problem = [&](int64_t number, const std::string& what) {
      ++report.corrupt;
      if (report.problems.size() < 20)
        report.problems.push_back("line " + std::to_string(number) + ": " + what);
    };
    std::vector<JsonLine> batch;
    size_t batch_bytes = 0;
    bool end = false;
    LineReader::Line line;
    while (!end) {
      TS_ASSIGN_OR_RETURN(const bool more, reader->next(line));
      end = !more;
      if (more && line.too_long) {
        problem(line.number, "longer than " + std::to_string(kMaxJsonLine) + " bytes");
      } else if (more && line.text.find_first_not_of(" \t\r") != std::string::npos) {
        auto parsed = parse_json_line(line.text);
        if (parsed.ok()) {
          batch.push_back(std::move(parsed).value());
          batch_bytes += line.text.size();
        } else {
          problem(line.number, parsed.error().reason);
        }
      }
      if (batch.size() < kImportBatch && batch_bytes < kMaxJsonLine && !end) continue;
      ImportReport added = report;
      TS_RETURN_IF_ERROR(connection_.transaction([&]() -> Status {
        for (const auto& item : batch) {
          const bool is_task = std::holds_alternative<TaskInfo>(item);
          const bool is_device = std::holds_alternative<DeviceInfo>(item);
          const bool is_profile = std::holds_alternative<Profile>(item);
          TS_ASSIGN_OR_RETURN(const bool inserted, is_task      ? insert_task(std::get<TaskInfo>(item))
                                                   : is_device  ? insert_device(std::get<DeviceInfo>(item))
                                                   : is_profile ? insert_profile(std::get<Profile>(item))
                                                                : insert_record(std::get<Record>(item)));
          ++(!inserted    ? added.duplicates
             : is_task    ? added.tasks
             : is_device  ? added.devices
             : is_profile ? added.profiles
                          : added.records);
        }
        return {};
      }));
      report = std::move(added);
      batch.clear();
      batch_bytes = 0;
    }
    return report;
  }

 private:
  // True: inserted. False: the key was there.
  Result<bool> insert_task(const TaskInfo& task) {
    Statement insert =
        connection_.statement("INSERT OR IGNORE INTO task(key, text, name, flops) VALUES(?1, ?2, ?3, ?4)");
    insert.bind(task.key).bind(task.text).bind(task.name).bind(task.flops);
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool row, insert.step());
    return connection_.changes() > 0;
  }

  Result<bool> insert_device(const DeviceInfo& device) {
    TS_RETURN_IF_ERROR(connection_.execute(kDeviceSchema));
    Statement insert = connection_.statement("INSERT OR IGNORE INTO device(key, json) VALUES(?1, ?2)");
    insert.bind(device.key).bind(target::to_json(device.device));
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool row, insert.step());
    return connection_.changes() > 0;
  }

  Result<bool> has_record(const std::string& key) {
    Statement select = connection_.statement("SELECT 1 FROM record WHERE key=?1");
    select.bind(key);
    return select.step();
  }

  Result<bool> insert_profile(const Profile& profile) {
    TS_RETURN_IF_ERROR(connection_.execute(kProfileSchema));
    TS_RETURN_IF_ERROR(connection_.execute("PRAGMA user_version=" + std::to_string(kProfileSchemaVersion)));
    const std::string counters = encode_counters(profile.counters);
    Statement known =
        connection_.statement("SELECT counters FROM profile WHERE record_key=?1 AND profiler=?2");
    known.bind(profile.record_key).bind(profile.profiler);
    TS_ASSIGN_OR_RETURN(const bool there, known.step());
    if (there && known.text(0) == counters) return false;
    Statement insert = connection_.statement(
        "INSERT OR REPLACE INTO profile(record_key, profiler, counters) VALUES(?1, ?2, ?3)");
    insert.bind(profile.record_key).bind(profile.profiler).bind(counters);
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool row, insert.step());
    return connection_.changes() > 0;
  }

  // which: the end of a query, with one parameter.
  Status read_profiles(const std::string& which, const std::string& parameter,
                       const std::function<Status(const Profile&)>& fn) {
    TS_ASSIGN_OR_RETURN(
        const int64_t tables,
        connection_.scalar("SELECT count(*) FROM sqlite_master WHERE type='table' AND name='profile'"));
    if (tables == 0) return {};
    Statement select = connection_.statement("SELECT record_key, profiler, counters FROM profile " + which);
    select.bind(parameter);
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return {};
      auto counters = decode_counters(select.text(2));
      if (!counters.ok())
        return Error{
            ErrorCode::kCorrupt, path_,
            "profile of record " + select.text(0) + ": " + counters.error().reason + "; restore a copy"};
      TS_RETURN_IF_ERROR(fn({select.text(0), select.text(1), std::move(*counters)}));
    }
  }

  Result<std::vector<DeviceInfo>> read_devices() {
    std::vector<DeviceInfo> devices;
    TS_ASSIGN_OR_RETURN(
        const int64_t tables,
        connection_.scalar("SELECT count(*) FROM sqlite_master WHERE type='table' AND name='device'"));
    if (tables == 0) return devices;
    Statement select = connection_.statement("SELECT key, json FROM device ORDER BY rowid");
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return devices;
      TS_ASSIGN_OR_RETURN(target::Device device,
                          target::parse_device(select.text(1), path_ + ", device " + select.text(0)));
      devices.push_back({select.text(0), std::move(device)});
    }
  }

  Result<bool> insert_record(const Record& record) {
    Statement insert = connection_.statement(
        std::string("INSERT OR IGNORE INTO record(") + kColumns +
        ") VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21)");
    const MeasureResult& result = record.result;
    const std::string seconds = encode_doubles(result.seconds);
    insert.bind(record.key())
        .bind(record.task_key)
        .bind(record.device_key)
        .bind(static_cast<int64_t>(record.settings.threads))
        .bind(static_cast<int64_t>(record.settings.flush_cache))
        .bind(static_cast<int64_t>(record.code_version))
        .bind(record.trace)
        .bind(to_string(result.outcome))
        .bind(result.reason)
        .bind_blob(seconds.data(), seconds.size());
    if (result.ok()) {
      insert.bind(result.best_estimate());
    } else {
      insert.bind_null();
    }
    insert.bind(static_cast<int64_t>(result.runs_per_repeat))
        .bind(static_cast<int64_t>(result.stopped_early))
        .bind(result.build_seconds)
        .bind(result.measure_seconds)
        .bind(record.unix_ms);
    bind_candidate(insert, record.candidate);
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool row, insert.step());
    return connection_.changes() > 0;
  }

  static void bind_task(Statement& select, const std::string& task_key, const std::string& device_key,
                        const MeasureSettings& settings) {
    select.bind(task_key)
        .bind(device_key)
        .bind(static_cast<int64_t>(settings.threads))
        .bind(static_cast<int64_t>(settings.flush_cache))
        .bind(static_cast<int64_t>(kCodeVersion));
  }

  static TaskInfo read_task(const Statement& select) {
    return {select.text(0), select.text(1), select.text(2), select.real(3)};
  }

  Result<Record> read_record(const Statement& select) const {
    Record record;
    record.task_key = select.text(1);
    record.device_key = select.text(2);
    record.settings.threads = static_cast<int>(select.integer(3));
    record.settings.flush_cache = select.integer(4) != 0;
    record.code_version = static_cast<int>(select.integer(5));
    record.trace = select.text(6);
    const std::string outcome_name = select.text(7);
    const auto outcome = parse_outcome(outcome_name);
    const std::string_view seconds = select.blob(9);
    auto candidate = read_candidate(select, 16);
    if (!outcome || !candidate || seconds.size() % 8 != 0)
      return Error{ErrorCode::kCorrupt, path_,
                   "record " + select.text(0) + " is damaged (outcome '" + outcome_name + "', " +
                       std::to_string(seconds.size()) + " bytes of seconds, measured as '" + select.text(17) +
                       "'); restore a copy"};
    record.result.outcome = *outcome;
    record.result.reason = select.text(8);
    record.result.seconds = decode_doubles(seconds);
    record.result.runs_per_repeat = static_cast<int>(select.integer(11));
    record.result.stopped_early = select.integer(12) != 0;
    record.result.build_seconds = select.real(13);
    record.result.measure_seconds = select.real(14);
    record.unix_ms = select.integer(15);
    record.candidate = std::move(*candidate);
    return record;
  }

  Result<std::optional<Record>> first_of(Statement& select) const {
    TS_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return std::optional<Record>();
    TS_ASSIGN_OR_RETURN(Record record, read_record(select));
    return std::optional<Record>(std::move(record));
  }

  // records: a query for kColumns. only: tasks by key, if given.
  Status export_lines(const std::string& path, const std::string& records,
                      const std::optional<std::set<std::string>>& only) {
    const std::lock_guard lock(mutex_);
    TS_ASSIGN_OR_RETURN(auto writer, AtomicFileWriter::open(path));
    // One read transaction: tasks and records of the same moment.
    TS_RETURN_IF_ERROR(connection_.execute("BEGIN"));
    Status status = write_lines(*writer, records, only);
    if (auto end = connection_.execute("COMMIT"); status.ok() && !end.ok()) status = std::move(end);
    TS_RETURN_IF_ERROR(std::move(status));
    return writer->commit();
  }

  Status write_lines(AtomicFileWriter& writer, const std::string& query,
                     const std::optional<std::set<std::string>>& only) {
    Statement tasks = connection_.statement("SELECT key, text, name, flops FROM task ORDER BY rowid");
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool row, tasks.step());
      if (!row) break;
      const TaskInfo task = read_task(tasks);
      if (only && only->count(task.key) == 0) continue;
      TS_RETURN_IF_ERROR(writer.write_line(to_json_line(task)));
    }
    TS_ASSIGN_OR_RETURN(const auto devices, read_devices());
    for (const DeviceInfo& device : devices) TS_RETURN_IF_ERROR(writer.write_line(to_json_line(device)));
    Statement records = connection_.statement(query);
    while (true) {
      TS_ASSIGN_OR_RETURN(const bool row, records.step());
      if (!row) return {};
      TS_ASSIGN_OR_RETURN(const Record record, read_record(records));
      if (only && only->count(record.task_key) == 0) continue;
      TS_RETURN_IF_ERROR(writer.write_line(to_json_line(record)));
      TS_RETURN_IF_ERROR(
          read_profiles("WHERE record_key=?1 ORDER BY rowid", record.key(),
                        [&](const Profile& profile) { return writer.write_line(to_json_line(profile)); }));
    }
  }

  Connection connection_;
  std::string path_;
  std::mutex mutex_;  // one connection, one transaction at a time
};

Result<sqlite3*> open_handle(const std::string& path, int flags) {
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (code == SQLITE_OK) return db;
  Error error = sqlite_error(db, code, path);
  sqlite3_close_v2(db);
  return error;
}

Status recover(const std::string& path) {
  TS_ASSIGN_OR_RETURN(sqlite3 * db, open_handle(path, SQLITE_OPEN_READWRITE));
  return Connection(db, path).recover();
}

Result<std::unique_ptr<Database>> open_with(const std::string& path, int flags) {
  struct stat info = {};
  const bool existed = stat(path.c_str(), &info) == 0;
  if (existed && !S_ISREG(info.st_mode))
    return Error{ErrorCode::kInvalidArgument, path, "is no regular file; name a database file"};
  TS_ASSIGN_OR_RETURN(sqlite3 * db, open_handle(path, flags));
  auto database = std::make_unique<SqliteDatabase>(db, path);
  if (Status prepared = database->prepare((flags & SQLITE_OPEN_READWRITE) != 0); !prepared.ok()) {
    database.reset();
    // A file that this call made and could not fill (disk full) is not left behind.
    struct stat after = {};
    if (!existed && stat(path.c_str(), &after) == 0 && after.st_size == 0) unlink(path.c_str());
    return prepared.error();
  }
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace

bool is_database_file(const std::string& path) {
  // SQLite's file format, section 1.3.1: 16 bytes with the closing zero.
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::string begin(kMagic.size(), '\0');
  const auto file = open_input(path);
  const auto bytes = static_cast<int64_t>(begin.size());
  return file.ok() && read_exactly(*file, path, 0, begin.data(), bytes).ok() && begin == kMagic;
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path) {
  return open_with(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Result<std::unique_ptr<Database>> Database::open_read_only(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    const int code = errno;
    return Error{code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path,
                 std::string("cannot be opened: ") + std::strerror(code)};
  }
  // A writer that was killed leaves a journal that the next writer rolls back; a reader cannot. So be a
  // writer for a moment where that is allowed.
  struct stat journal = {};
  if (stat((path + "-journal").c_str(), &journal) == 0) {
    [[maybe_unused]] const Status recovered = recover(path);
  }
  return open_with(path, SQLITE_OPEN_READONLY);
}

}  // namespace tensorsmith::record
