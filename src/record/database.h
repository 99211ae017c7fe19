// The record database: one SQLite file, safe against kill -9 and against several writers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/record.h"

namespace tensorsmith::record {

struct TaskInfo {
  std::string key;   // ir::structural_key
  std::string text;  // ir::print(workload)
  std::string name;  // operator sequence, for people: "conv2d_add_relu 1x64x56x56"
  double flops = 0;
};

class Database {
 public:
  // Opens or creates. A file that is no Tensorsmith database, a newer schema version or a damaged file is an
  // error that says which. path ":memory:" for tests.
  static Result<std::unique_ptr<Database>> open(const std::string& path);
  static Result<std::unique_ptr<Database>> open_read_only(const std::string& path);
  virtual ~Database() = default;

  virtual Status add_task(const TaskInfo& task) = 0;  // idempotent
  // Inserts each record whose key is not there yet, all or nothing.
  virtual Status add(const std::vector<Record>& records) = 0;
  virtual Result<std::optional<Record>> find(const std::string& record_key) = 0;
  virtual Result<std::vector<Record>> records_of(const std::string& task_key, const std::string& device_key,
                                                 const MeasureSettings& settings) = 0;
  // The fastest kOk record of the current code version.
  virtual Result<std::optional<Record>> best(const std::string& task_key, const std::string& device_key,
                                             const MeasureSettings& settings) = 0;
  virtual Result<std::vector<TaskInfo>> tasks() = 0;
  virtual Result<int64_t> record_count() = 0;
  virtual Status check_integrity() = 0;

  // JSON lines, one task or record a line. Import skips keys already there; a corrupt line is counted and
  // named.
  struct ImportReport {
    int64_t tasks = 0, records = 0, duplicates = 0, corrupt = 0;
    std::vector<std::string> problems;  // "line 17: ...", at most 20
  };
  virtual Status export_jsonl(const std::string& path) = 0;
  virtual Result<ImportReport> import_jsonl(const std::string& path) = 0;
};

}  // namespace tensorsmith::record
