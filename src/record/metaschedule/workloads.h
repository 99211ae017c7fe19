// The workloads of a database of MetaSchedule, database_workload.json: one JSON line each,
//   ["structural hash", "base64 of a length of 8 bytes and of the module's node graph"]
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "record/foreign_task.h"
#include "record/metaschedule/replay.h"

namespace tensorsmith::record {

class MetaScheduleWorkloads {
 public:
  struct Task : ForeignTask {  // its key is the structural hash
    std::vector<TirBlock> blocks;
  };
  struct Replayed {
    std::shared_ptr<const Task> task;
    MetaScheduleProgram program;
  };

  // Reads the file, plain or compressed with zstd. A workload that is not readable gives an error
  // only for records that use it. Errors (place "file:line"): kNotFound, kIo; kCorrupt for a line
  // that is no workload.
  static Result<MetaScheduleWorkloads> load(const std::string& path);

  // Replays the record's program. Errors: kNotFound for a workload that the file does not have,
  // that of the workload if it is not readable, and those of record::replay. Thread-safe.
  Result<Replayed> replay(const MetaScheduleRecord& record) const;
  // Null if the workload is not readable or does not exist. `line` counts from 0, as in records.
  std::shared_ptr<const Task> find(int64_t line) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::shared_ptr<const Task> task;  // null: see `error`
    Error error;
  };
  std::vector<Entry> entries_;
};

}  // namespace tensorsmith::record
