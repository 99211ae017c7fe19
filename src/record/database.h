// The record database: an SQLite file, or a team's PostgreSQL server. Safe against kill -9 and
// against concurrent writers (processes, threads, and with a server other machines).
//
// Every change is one transaction, which is on disk when the call returns. Errors (place = the
// file, or the address without its password): kCorrupt for a damaged file or one that is not an
// SQLite file, kMismatch for a foreign database or a newer schema, kNotFound, kIo if the disk is
// full, the file not writable, or the server not reachable, kTimeout if another process keeps the
// database locked. A lost connection is reopened and the request repeated, for up to two minutes;
// then it is an error.
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
  std::string name;  // operator sequence, for display: "conv2d_add_relu 1x64x56x56"
  double flops = 0;
};

// The device that a device key in records stands for. The key is that of the device as it was
// probed; measured attributes (memory bandwidth) may have been added to the device later.
struct DeviceInfo {
  std::string key;
  target::Device device;
};

class Database {
 public:
  // path: a file, or the address of a server, postgresql://USER@HOST:PORT/NAME?sslmode=verify-full,
  // in the syntax of PostgreSQL's library; PGPASSWORD, ~/.pgpass and PostgreSQL's other variables
  // supply missing parts. On a server the tables are in a schema of their own, "tensorsmith".
  //
  // Opens the database; creates the file (but not its directory) or the tables if they are missing.
  // The error says whether a file is not a Tensorsmith database, has a newer schema version or is
  // damaged. ":memory:" is for tests. An empty file is an empty database. A file of an earlier
  // schema version is upgraded and keeps its records. Opened read-only, it stays unchanged: a file of
  // schema 1 is read from a copy in memory, later ones as they are.
  static Result<std::unique_ptr<Database>> open(const std::string& path);
  static Result<std::unique_ptr<Database>> open_read_only(const std::string& path);
  virtual ~Database() = default;

  virtual Status add_task(const TaskInfo& task) = 0;  // idempotent
  // Idempotent: an existing description of the key is kept.
  virtual Status add_device(const DeviceInfo& device) = 0;
  // Inserts each record whose key is missing, all or nothing. A kOk record needs finite positive
  // seconds (kInvalidArgument).
  virtual Status add(const std::vector<Record>& records) = 0;
  virtual Result<std::optional<Record>> find(const std::string& record_key) = 0;
  // Records of the current code version, successful or not, in insertion order.
  virtual Result<std::vector<Record>> records_of(const std::string& task_key, const std::string& device_key,
                                                 const MeasureSettings& settings) = 0;
  // The fastest kOk record of the current code version.
  virtual Result<std::optional<Record>> best(const std::string& task_key, const std::string& device_key,
                                             const MeasureSettings& settings) = 0;
  virtual Result<std::vector<TaskInfo>> tasks() = 0;
  // In insertion order. Records of devices that are not listed were imported or added before
  // devices were stored.
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  virtual Result<int64_t> record_count() = 0;
  // Streams all records of the current code version in insertion order. Stops at an error of `fn`,
  // which must not use the database.
  virtual Status for_each(const std::function<Status(const Record&)>& fn) = 0;
  // Adds profiles, which replace earlier ones of the same record and profiler. kInvalidArgument:
  // names or numbers that check_profile() rejects, or a missing record.
  virtual Status add(const std::vector<Profile>& profiles) = 0;
  // Visits all profiles of the profiler in insertion order. `fn` must not use the database.
  virtual Status for_each_profile(const std::string& profiler,
                                  const std::function<Status(const Profile&)>& fn) = 0;
  // Reads the whole database: checks every record against its content key, and for a file the page
  // structure and the consistency of the indices.
  virtual Status check_integrity() = 0;

  using Item = std::variant<TaskInfo, DeviceInfo, Record, Profile>;
  struct ImportReport {
    int64_t tasks = 0, devices = 0, records = 0, profiles = 0, duplicates = 0, corrupt = 0;
    std::vector<std::string> problems;  // "line 17: ...", at most 20
  };
  struct ExportOptions {
    int64_t fastest =
        // Number of successful records of the current code version per task, device and settings; 0
        // = all.
        0;
    std::optional<std::set<std::string>> tasks = {};  // by key: only these tasks
  };
  // Visits the whole content as a snapshot: tasks, devices, then records, each followed by its
  // profiles, in insertion order. Includes records of all code versions unless only the fastest are
  // requested. `fn` must not use the database.
  virtual Status for_each_item(const ExportOptions& options,
                               const std::function<Status(const Item&)>& fn) = 0;
  // Adds missing items in one transaction. kInvalidArgument as for add(), but a profile's record
  // may be missing.
  virtual Result<ImportReport> add_items(const std::vector<Item>& items) = 0;

  // JSON lines with one task, device, record or profile each. The import skips existing keys, and
  // counts and reports corrupt lines; lines are limited to kMaxJsonLine bytes. The export replaces
  // the file atomically.
  static constexpr size_t kMaxJsonLine = size_t{16} << 20;
  Status export_jsonl(const std::string& path, const ExportOptions& options);
  Status export_jsonl(const std::string& path) { return export_jsonl(path, {}); }
  // Commits in batches; a repeated import adds only what is missing.
  Result<ImportReport> import_jsonl(const std::string& path);
  // Adds the items of `from` that are missing here, in batches; a repeated call resumes a killed
  // one. `progress` is called after each batch.
  Result<ImportReport> copy_from(Database& from,
                                 const std::function<void(const ImportReport&)>& progress = {});
};

// The file of records that commands use if none is named; it need not exist.
inline constexpr const char* kDefaultDatabase = "tensorsmith.db";
// Whether the path is the address of a server rather than a file.
bool is_database_address(std::string_view path);
// The path for display, reports and logs; an address without its password.
std::string shown_database(const std::string& path);
// True for an address, and for an existing file that begins like an SQLite database, whatever its
// version.
bool is_database_file(const std::string& path);

}  // namespace tensorsmith::record
