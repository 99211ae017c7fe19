// The record database: one SQLite file, or a team's PostgreSQL server. Safe against kill -9 and against several writers
// (processes, threads, and of a server machines).
//
// Every change is one transaction, on disk when the call returns. Errors (place = the file, or the address without its
// password): kCorrupt damaged or no SQLite file, kMismatch a foreign database or a newer schema, kNotFound, kIo disk full,
// not writable, or a server that is not there, kTimeout another process kept it locked. A connection that is lost is made
// anew, and what was asked for is asked again, for two minutes; then it is an error.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "record/profile.h"
#include "record/record.h"
#include "target/target.h"

namespace tensorsmith::record {

struct TaskInfo {
  std::string key;   // ir::structural_key
  std::string text;  // ir::print(workload)
  std::string name;  // operator sequence, for people: "conv2d_add_relu 1x64x56x56"
  double flops = 0;
};

// What a device key in records stands for. The key is that of the device as it was probed; measured
// attributes (memory bandwidth) may have been added to the device since.
struct DeviceInfo {
  std::string key;
  target::Device device;
};

class Database {
 public:
  // path: a file, or the address of a server, postgresql://USER@HOST:PORT/NAME?sslmode=verify-full, as PostgreSQL's library
  // takes it; of what the address does not say, PGPASSWORD, ~/.pgpass and PostgreSQL's other variables count. On a server
  // the tables are made in a schema of their own, "tensorsmith".
  //
  // Opens, or creates the file (not its folder) or the tables. A file that is no Tensorsmith database, a newer schema
  // version or a damaged file is an error that says which. path ":memory:" for tests. An empty file is an
  // empty database. A file of an earlier schema version is brought to the present one and keeps its records;
  // opened for reading only, it stays as it is and is read as a copy in memory.
  static Result<std::unique_ptr<Database>> open(const std::string& path);
  static Result<std::unique_ptr<Database>> open_read_only(const std::string& path);
  virtual ~Database() = default;

  virtual Status add_task(const TaskInfo& task) = 0;  // idempotent
  // Idempotent: what is known of the key stays.
  virtual Status add_device(const DeviceInfo& device) = 0;
  // Inserts each record whose key is not there yet, all or nothing. A kOk record needs finite positive
  // seconds (kInvalidArgument).
  virtual Status add(const std::vector<Record>& records) = 0;
  virtual Result<std::optional<Record>> find(const std::string& record_key) = 0;
  // Records of the current code version, successful or not, in the order of insertion.
  virtual Result<std::vector<Record>> records_of(const std::string& task_key, const std::string& device_key,
                                                 const MeasureSettings& settings) = 0;
  // The fastest kOk record of the current code version.
  virtual Result<std::optional<Record>> best(const std::string& task_key, const std::string& device_key,
                                             const MeasureSettings& settings) = 0;
  virtual Result<std::vector<TaskInfo>> tasks() = 0;
  // In the order they were added. Records of devices that are not among them are from before devices were
  // kept, or imported.
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  virtual Result<int64_t> record_count() = 0;
  // All records of the current code version in the order of insertion, without holding them in memory. An
  // error of fn ends it. fn must not use the database.
  virtual Status for_each(const std::function<Status(const Record&)>& fn) = 0;
  // What profilers counted of records, by record and profiler; later counters replace earlier ones. kInvalidArgument:
  // names or numbers that no profile has (check_profile), or a record that is not there.
  virtual Status add(const std::vector<Profile>& profiles) = 0;
  // All of the profiler in the order of insertion. fn must not use the database.
  virtual Status for_each_profile(const std::string& profiler,
                                  const std::function<Status(const Profile&)>& fn) = 0;
  // Reads all of it: every record against its content key, and of a file page structure and agreement of the indices.
  virtual Status check_integrity() = 0;

  using Item = std::variant<TaskInfo, DeviceInfo, Record, Profile>;
  struct ImportReport {
    int64_t tasks = 0, devices = 0, records = 0, profiles = 0, duplicates = 0, corrupt = 0;
    std::vector<std::string> problems;  // "line 17: ...", at most 20
  };
  struct ExportOptions {
    int64_t fastest =
        0;  // successful records of the current code version, of each task, device and settings; 0 = all
    std::optional<std::set<std::string>> tasks = {};  // by key: only these
  };
  // All that is there, as it was at one moment: tasks, devices, then records, each with its profiles behind it, in the order
  // of insertion; records of all code versions unless only the fastest are asked for. fn must not use the database.
  virtual Status for_each_item(const ExportOptions& options,
                               const std::function<Status(const Item&)>& fn) = 0;
  // Adds what is not there yet, in one transaction. kInvalidArgument as of add(), but a profile's record may be missing.
  virtual Result<ImportReport> add_items(const std::vector<Item>& items) = 0;

  // JSON lines, one task, device, record or profile a line. Import skips keys already there; a corrupt line is counted
  // and named; lines are limited to kMaxJsonLine bytes. The export replaces the file at once or not at all.
  static constexpr size_t kMaxJsonLine = size_t{16} << 20;
  Status export_jsonl(const std::string& path, const ExportOptions& options);
  Status export_jsonl(const std::string& path) { return export_jsonl(path, {}); }
  // Commits in batches; a repeated import only adds what is missing.
  Result<ImportReport> import_jsonl(const std::string& path);
  // Adds what `from` holds and this database does not, in batches; a repeated call goes on where a killed one was.
  // progress: called after each batch.
  Result<ImportReport> copy_from(Database& from,
                                 const std::function<void(const ImportReport&)>& progress = {});
};

// Whether it is the address of a server rather than a file.
bool is_database_address(std::string_view path);
// For people, reports and logs: the path; of an address all but the password.
std::string shown_database(const std::string& path);
// Whether it is an address, or a file that is there and begins as every database does, whatever its version.
bool is_database_file(const std::string& path);

}  // namespace tensorsmith::record
