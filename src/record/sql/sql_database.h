// The record database on an SQL session. Internal to src/record.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "record/database.h"
#include "record/sql/session.h"

namespace tensorsmith::record {

class SqlDatabase final : public Database {
 public:
  explicit SqlDatabase(std::unique_ptr<SqlSession> session) : session_(std::move(session)) {}

  Status add_task(const TaskInfo& task) override;
  Status add_device(const DeviceInfo& device) override;
  Status add(const std::vector<Record>& records) override;
  Status add(const std::vector<Profile>& profiles) override;
  Result<std::optional<Record>> find(const std::string& record_key) override;
  Result<std::vector<Record>> records_of(const std::string& task_key, const std::string& device_key,
                                         const MeasureSettings& settings) override;
  Result<std::optional<Record>> best(const std::string& task_key, const std::string& device_key,
                                     const MeasureSettings& settings) override;
  Result<std::vector<TaskInfo>> tasks() override;
  Result<std::vector<DeviceInfo>> devices() override;
  Result<int64_t> record_count() override;
  Status for_each(const std::function<Status(const Record&)>& fn) override;
  Status for_each_profile(const std::string& profiler,
                          const std::function<Status(const Profile&)>& fn) override;
  Status check_integrity() override;
  Status for_each_item(const ExportOptions& options, const std::function<Status(const Item&)>& fn) override;
  Result<ImportReport> add_items(const std::vector<Item>& items) override;

 private:
  Status check(const Record& record) const;
  Status check(const Profile& profile) const;
  // Return true if inserted; false if the key existed, for profiles with the same counters.
  Result<bool> insert(const TaskInfo& task);
  Result<bool> insert(const DeviceInfo& device);
  Result<bool> insert(const Profile& profile);
  // Returns the number of inserted records.
  Result<int64_t> insert_records(const std::vector<const Record*>& records);
  Result<bool> has_record(const std::string& key);
  // Returns all columns of records, with NULL in place of one that the database lacks.
  Result<std::string> record_columns();
  // Returns the first record of a query for record_columns().
  Result<std::optional<Record>> first_of(const std::string& sql, const SqlValues& values);
  // which: the end of a query, with one parameter. Only within a snapshot.
  Status read_profiles(const std::string& which, const SqlValue& parameter,
                       const std::function<Status(const Profile&)>& fn);
  struct Walk {
    std::string columns;
    int column_count = 0;
    std::string source, number;  // table, and its column that numbers the rows
    std::string condition;       // empty: all rows
    SqlValues values;            // parameters of the condition
  };
  // Visits the rows whose number is above `last`, in order, and advances `last`, so that a second
  // call continues. Only within a snapshot.
  Status walk(Walk walk, int64_t& last, const std::function<Status(const SqlRows&)>& fn);
  Walk all_tasks() const;
  Walk all_devices() const;
  Result<Walk> records_where(std::string source, std::string condition, SqlValues values);

  std::unique_ptr<SqlSession> session_;
  std::string record_columns_;  // empty: not known yet
  std::mutex mutex_;            // one session allows one transaction at a time
};

}  // namespace tensorsmith::record
