// The workloads that records of Ansor refer to, by key.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "record/ansor/ansor_record.h"
#include "record/ansor/dag.h"
#include "record/foreign_task.h"

namespace tensorsmith::record {

class AnsorWorkloads {
 public:
  // Reads a JSON file: workload key -> {"compute_dag": text, "flops": number}; flops may be
  // missing. A workload whose text is not readable gives an error only for records that use it.
  // Errors: kNotFound, kIo, kCorrupt.
  static Result<AnsorWorkloads> load(const std::string& path);
  static Result<AnsorWorkloads> from_json(std::string_view json);

  // Its name is the function in the key, or else the operation with most of the work.
  using Task = ForeignTask;
  struct Replayed {
    std::shared_ptr<const Task> task;
    sched::Schedule schedule;
  };
  // Replays the record's program. Until a first record of a workload has been replayed, its extents
  // are inferred again from the record's splits if the text leaves extents open or the splits
  // contradict the inferred ones. Errors: kNotFound for an unknown key, those of parse_dag and of
  // replay. Thread-safe.
  Result<Replayed> replay(const AnsorRecord& record) const;
  // Null if the key is unknown or its text not readable.
  std::shared_ptr<const Task> find(std::string_view key) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string text;
    double flops = 0;
    std::mutex mutex;
    std::shared_ptr<const Task> task;  // null: see `error`
    Error error;
    bool confirmed = false;  // a record was replayed, so the task is final
  };
  static Result<std::shared_ptr<const Task>> make_task(const std::string& key, const Entry& entry,
                                                       const AnsorRecord* example);
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_;
};

}  // namespace tensorsmith::record
