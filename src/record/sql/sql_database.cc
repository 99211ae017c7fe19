#include "record/sql/sql_database.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "record/jsonl.h"
#include "record/sql/columns.h"

namespace tensorsmith::record {

namespace {

// Rows per INSERT, because a round trip to a server costs more than a row.
constexpr size_t kRowsAtOnce = 32;
constexpr int64_t kBeforeAll = std::numeric_limits<int64_t>::min();

constexpr const char* kOfTask =
    " FROM record WHERE task_key=$1 AND device_key=$2 AND threads=$3 AND flush_cache=$4 AND code_version=$5";

SqlValues task_values(const std::string& task_key, const std::string& device_key,
                      const MeasureSettings& settings) {
  return {task_key, device_key, settings.threads, settings.flush_cache, kCodeVersion};
}

TaskInfo read_task(const SqlRows& row) { return {row.text(0), row.text(1), row.text(2), row.real(3)}; }

Result<DeviceInfo> read_device(const SqlRows& row, const std::string& place) {
  TS_ASSIGN_OR_RETURN(target::Device device,
                      target::parse_device(row.text(1), place + ", device " + row.text(0)));
  return DeviceInfo{row.text(0), std::move(device)};
}

constexpr const char* kTaskColumns = "key, text, name, flops";
constexpr const char* kDeviceColumns = "key, json";

}  // namespace

Status SqlDatabase::check(const Record& record) const {
  if (auto status = check_record(record); !status.ok())
    return Error{status.error().code, session_->place(), status.error().reason};
  return {};
}

Status SqlDatabase::check(const Profile& profile) const {
  if (auto status = check_profile(profile); !status.ok())
    return Error{status.error().code, session_->place(), status.error().reason};
  return {};
}

Status SqlDatabase::add_task(const TaskInfo& task) {
  const std::lock_guard lock(mutex_);
  return session_->transaction([&]() -> Status {
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool added, insert(task));
    return {};
  });
}

Status SqlDatabase::add_device(const DeviceInfo& device) {
  const std::lock_guard lock(mutex_);
  return session_->transaction([&]() -> Status {
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool added, insert(device));
    return {};
  });
}

Status SqlDatabase::add(const std::vector<Record>& records) {
  std::vector<const Record*> pointers;
  for (const Record& record : records) {
    TS_RETURN_IF_ERROR(check(record));
    pointers.push_back(&record);
  }
  const std::lock_guard lock(mutex_);
  return session_->transaction([&]() -> Status {
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const int64_t added, insert_records(pointers));
    return {};
  });
}

Status SqlDatabase::add(const std::vector<Profile>& profiles) {
  for (const Profile& profile : profiles) TS_RETURN_IF_ERROR(check(profile));
  const std::lock_guard lock(mutex_);
  return session_->transaction([&]() -> Status {
    for (const Profile& profile : profiles) {
      TS_ASSIGN_OR_RETURN(const bool there, has_record(profile.record_key));
      if (!there)
        return Error{ErrorCode::kInvalidArgument, session_->place(),
                     "profile of record " + profile.record_key + ", which is not in the database"};
      TS_ASSIGN_OR_RETURN([[maybe_unused]] const bool added, insert(profile));
    }
    return {};
  });
}

Result<std::optional<Record>> SqlDatabase::find(const std::string& record_key) {
  const std::lock_guard lock(mutex_);
  TS_ASSIGN_OR_RETURN(const std::string columns, record_columns());
  return first_of("SELECT " + columns + " FROM record WHERE key=$1", {record_key});
}

Result<std::vector<Record>> SqlDatabase::records_of(const std::string& task_key,
                                                    const std::string& device_key,
                                                    const MeasureSettings& settings) {
  const std::lock_guard lock(mutex_);
  TS_ASSIGN_OR_RETURN(const std::string columns, record_columns());
  TS_ASSIGN_OR_RETURN(const auto rows, session_->query("SELECT " + columns + kOfTask + " ORDER BY id",
                                                       task_values(task_key, device_key, settings)));
  std::vector<Record> records;
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return records;
    TS_ASSIGN_OR_RETURN(records.emplace_back(), read_record(*rows, session_->place()));
  }
}

Result<std::optional<Record>> SqlDatabase::best(const std::string& task_key, const std::string& device_key,
                                                const MeasureSettings& settings) {
  const std::lock_guard lock(mutex_);
  TS_ASSIGN_OR_RETURN(const std::string columns, record_columns());
  return first_of(
      "SELECT " + columns + kOfTask + " AND best_seconds IS NOT NULL ORDER BY best_seconds, id LIMIT 1",
      task_values(task_key, device_key, settings));
}

Result<std::vector<TaskInfo>> SqlDatabase::tasks() {
  const std::lock_guard lock(mutex_);
  std::vector<TaskInfo> tasks;
  int64_t last = kBeforeAll;
  TS_RETURN_IF_ERROR(session_->snapshot([&]() -> Status {
    return walk(all_tasks(), last, [&](const SqlRows& row) -> Status {
      tasks.push_back(read_task(row));
      return {};
    });
  }));
  return tasks;
}

Result<std::vector<DeviceInfo>> SqlDatabase::devices() {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceInfo> devices;
  int64_t last = kBeforeAll;
  TS_RETURN_IF_ERROR(session_->snapshot([&]() -> Status {
    TS_ASSIGN_OR_RETURN(const bool any, session_->has(SqlTable::kDevice));
    if (!any) return {};
    return walk(all_devices(), last, [&](const SqlRows& row) -> Status {
      TS_ASSIGN_OR_RETURN(DeviceInfo device, read_device(row, session_->place()));
      devices.push_back(std::move(device));
      return {};
    });
  }));
  return devices;
}

Result<int64_t> SqlDatabase::record_count() {
  const std::lock_guard lock(mutex_);
  TS_ASSIGN_OR_RETURN(const auto rows, session_->query("SELECT count(*) FROM record", {}));
  TS_ASSIGN_OR_RETURN(const bool row, rows->step());
  return row ? rows->integer(0) : int64_t{0};
}

Status SqlDatabase::walk(Walk walk, int64_t& last, const std::function<Status(const SqlRows&)>& fn) {
  walk.values.emplace_back(last);
  const std::string beyond = walk.number + ">$" + std::to_string(walk.values.size());
  TS_ASSIGN_OR_RETURN(
      const auto rows,
      session_->stream("SELECT " + walk.columns + ", " + walk.number + " FROM " + walk.source + " WHERE " +
                           walk.condition + (walk.condition.empty() ? "" : " AND ") + beyond + " ORDER BY " +
                           walk.number,
                       walk.values));
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return {};
    TS_RETURN_IF_ERROR(fn(*rows));
    last = rows->integer(walk.column_count);
  }
}

SqlDatabase::Walk SqlDatabase::all_tasks() const {
  return {kTaskColumns, 4, "task", session_->row_number(), "", {}};
}

SqlDatabase::Walk SqlDatabase::all_devices() const {
  return {kDeviceColumns, 2, "device", session_->row_number(), "", {}};
}

Result<std::string> SqlDatabase::record_columns() {
  if (!record_columns_.empty()) return record_columns_;
  TS_ASSIGN_OR_RETURN(const bool complete, session_->has_disturbance());
  record_columns_ = std::string(kFirstRecordColumns) + (complete ? ", disturbance" : ", NULL");
  return record_columns_;
}

Result<SqlDatabase::Walk> SqlDatabase::records_where(std::string source, std::string condition,
                                                     SqlValues values) {
  TS_ASSIGN_OR_RETURN(std::string columns, record_columns());
  return Walk{std::move(columns),   kRecordColumnCount, std::move(source), "id",
              std::move(condition), std::move(values)};
}

Status SqlDatabase::for_each(const std::function<Status(const Record&)>& fn) {
  const std::lock_guard lock(mutex_);
  int64_t last = kBeforeAll;
  return session_->snapshot([&]() -> Status {
    TS_ASSIGN_OR_RETURN(Walk all, records_where("record", "code_version=$1", {kCodeVersion}));
    return walk(std::move(all), last, [&](const SqlRows& row) -> Status {
      TS_ASSIGN_OR_RETURN(const Record record, read_record(row, session_->place()));
      return fn(record);
    });
  });
}

Status SqlDatabase::for_each_profile(const std::string& profiler,
                                     const std::function<Status(const Profile&)>& fn) {
  const std::lock_guard lock(mutex_);
  bool begun = false;
  return session_->snapshot([&]() -> Status {
    if (std::exchange(begun, true))
      return Error{ErrorCode::kIo, session_->place(),
                   "the connection was lost while profiles were read; run it again"};
    return read_profiles(std::string("WHERE profiler=$1 ORDER BY ") + session_->row_number(), profiler, fn);
  });
}

Status SqlDatabase::check_integrity() {
  const std::lock_guard lock(mutex_);
  TS_RETURN_IF_ERROR(session_->check_structure());
  int64_t last = kBeforeAll;
  return session_->snapshot([&]() -> Status {
    TS_ASSIGN_OR_RETURN(Walk all, records_where("record", "", {}));
    return walk(std::move(all), last, [&](const SqlRows& row) -> Status {
      TS_ASSIGN_OR_RETURN(const Record record, read_record(row, session_->place()));
      if (record.key() != row.text(0))
        return Error{ErrorCode::kCorrupt, session_->place(),
                     "record " + row.text(0) + " does not match its content key; restore a copy"};
      return {};
    });
  });
}

Status SqlDatabase::for_each_item(const ExportOptions& options,
                                  const std::function<Status(const Item&)>& fn) {
  const std::lock_guard lock(mutex_);
  const std::string& place = session_->place();
  const auto wanted = [&](const std::string& task) {
    return !options.tasks || options.tasks->count(task) > 0;
  };
  std::string source = "record";
  if (options.fastest > 0)
    source =
        "(SELECT *, row_number() OVER (PARTITION BY task_key, device_key, threads, flush_cache ORDER BY "
        "best_seconds, id) AS place FROM record WHERE best_seconds IS NOT NULL AND code_version=" +
        std::to_string(kCodeVersion) + ") AS ranked";
  const std::string condition =
      options.fastest > 0 ? "place<=" + std::to_string(options.fastest) : std::string();
  // After a lost connection the snapshot runs again; items that were already visited are skipped.
  int64_t last_task = kBeforeAll, last_device = kBeforeAll, last_record = kBeforeAll;
  return session_->snapshot([&]() -> Status {
    TS_RETURN_IF_ERROR(walk(all_tasks(), last_task, [&](const SqlRows& row) -> Status {
      TaskInfo task = read_task(row);
      return wanted(task.key) ? fn(Item(std::move(task))) : Status();
    }));
    TS_ASSIGN_OR_RETURN(const bool devices, session_->has(SqlTable::kDevice));
    if (devices)
      TS_RETURN_IF_ERROR(walk(all_devices(), last_device, [&](const SqlRows& row) -> Status {
        TS_ASSIGN_OR_RETURN(DeviceInfo device, read_device(row, place));
        return fn(Item(std::move(device)));
      }));
    TS_ASSIGN_OR_RETURN(bool profiles, session_->has(SqlTable::kProfile));
    if (profiles) {
      TS_ASSIGN_OR_RETURN(const auto any, session_->query("SELECT 1 FROM profile LIMIT 1", {}));
      TS_ASSIGN_OR_RETURN(profiles, any->step());
    }
    TS_ASSIGN_OR_RETURN(Walk records, records_where(source, condition, {}));
    return walk(std::move(records), last_record, [&](const SqlRows& row) -> Status {
      TS_ASSIGN_OR_RETURN(Record record, read_record(row, place));
      if (!wanted(record.task_key)) return {};
      const std::string key = row.text(0);
      TS_RETURN_IF_ERROR(fn(Item(std::move(record))));
      if (!profiles) return {};
      return read_profiles(std::string("WHERE record_key=$1 ORDER BY ") + session_->row_number(), key,
                           [&](const Profile& profile) { return fn(Item(profile)); });
    });
  });
}

Result<Database::ImportReport> SqlDatabase::add_items(const std::vector<Item>& items) {
  std::vector<const Record*> records;
  for (const Item& item : items) {
    if (const auto* record = std::get_if<Record>(&item)) TS_RETURN_IF_ERROR(check(*record));
    if (const auto* profile = std::get_if<Profile>(&item)) TS_RETURN_IF_ERROR(check(*profile));
    if (const auto* record = std::get_if<Record>(&item)) records.push_back(record);
  }
  const std::lock_guard lock(mutex_);
  ImportReport report;
  TS_RETURN_IF_ERROR(session_->transaction([&]() -> Status {
    report = {};
    TS_ASSIGN_OR_RETURN(report.records, insert_records(records));
    for (const Item& item : items) {
      bool inserted = false;
      if (const auto* task = std::get_if<TaskInfo>(&item)) {
        TS_ASSIGN_OR_RETURN(inserted, insert(*task));
        report.tasks += inserted ? 1 : 0;
      } else if (const auto* device = std::get_if<DeviceInfo>(&item)) {
        TS_ASSIGN_OR_RETURN(inserted, insert(*device));
        report.devices += inserted ? 1 : 0;
      } else if (const auto* profile = std::get_if<Profile>(&item)) {
        TS_ASSIGN_OR_RETURN(inserted, insert(*profile));
        report.profiles += inserted ? 1 : 0;
      }
    }
    report.duplicates = std::ssize(items) - report.records - report.tasks - report.devices - report.profiles;
    return {};
  }));
  return report;
}

Result<bool> SqlDatabase::insert(const TaskInfo& task) {
  TS_ASSIGN_OR_RETURN(const int64_t changed,
                      session_->change("INSERT INTO task(key, text, name, flops) VALUES($1, $2, $3, $4) ON "
                                       "CONFLICT DO NOTHING",
                                       {task.key, task.text, task.name, task.flops}));
  return changed > 0;
}

Result<bool> SqlDatabase::insert(const DeviceInfo& device) {
  TS_RETURN_IF_ERROR(session_->ensure(SqlTable::kDevice));
  TS_ASSIGN_OR_RETURN(const int64_t changed,
                      session_->change("INSERT INTO device(key, json) VALUES($1, $2) ON CONFLICT DO NOTHING",
                                       {device.key, target::to_json(device.device)}));
  return changed > 0;
}

Result<bool> SqlDatabase::insert(const Profile& profile) {
  TS_RETURN_IF_ERROR(session_->ensure(SqlTable::kProfile));
  TS_ASSIGN_OR_RETURN(
      const int64_t changed,
      session_->change("INSERT INTO profile(record_key, profiler, counters) VALUES($1, $2, $3) ON CONFLICT "
                       "(record_key, profiler) DO UPDATE SET counters=excluded.counters WHERE "
                       "profile.counters<>excluded.counters",
                       {profile.record_key, profile.profiler, encode_counters(profile.counters)}));
  return changed > 0;
}

Result<int64_t> SqlDatabase::insert_records(const std::vector<const Record*>& records) {
  int64_t inserted = 0;
  for (size_t begin = 0; begin < records.size(); begin += kRowsAtOnce) {
    const size_t rows = std::min(kRowsAtOnce, records.size() - begin);
    SqlValues values;
    for (size_t i = 0; i < rows; ++i)
      for (SqlValue& value : record_values(*records[begin + i])) values.push_back(std::move(value));
    TS_ASSIGN_OR_RETURN(const int64_t changed, session_->change(insert_records_sql(rows), values));
    inserted += changed;
  }
  return inserted;
}

Result<bool> SqlDatabase::has_record(const std::string& key) {
  TS_ASSIGN_OR_RETURN(const auto rows, session_->query("SELECT 1 FROM record WHERE key=$1", {key}));
  return rows->step();
}

Result<std::optional<Record>> SqlDatabase::first_of(const std::string& sql, const SqlValues& values) {
  TS_ASSIGN_OR_RETURN(const auto rows, session_->query(sql, values));
  TS_ASSIGN_OR_RETURN(const bool row, rows->step());
  if (!row) return std::optional<Record>();
  TS_ASSIGN_OR_RETURN(Record record, read_record(*rows, session_->place()));
  return std::optional<Record>(std::move(record));
}

Status SqlDatabase::read_profiles(const std::string& which, const SqlValue& parameter,
                                  const std::function<Status(const Profile&)>& fn) {
  TS_ASSIGN_OR_RETURN(const bool any, session_->has(SqlTable::kProfile));
  if (!any) return {};
  TS_ASSIGN_OR_RETURN(
      const auto rows,
      session_->stream("SELECT record_key, profiler, counters FROM profile " + which, {parameter}));
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool row, rows->step());
    if (!row) return {};
    auto counters = decode_counters(rows->text(2));
    if (!counters.ok())
      return Error{
          ErrorCode::kCorrupt, session_->place(),
          "profile of record " + rows->text(0) + ": " + counters.error().reason + "; restore a copy"};
    TS_RETURN_IF_ERROR(fn({rows->text(0), rows->text(1), std::move(*counters)}));
  }
}

}  // namespace tensorsmith::record
