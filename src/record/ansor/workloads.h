// The workloads that records of Ansor refer to, by their keys.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "record/ansor/ansor_record.h"
#include "record/ansor/dag.h"

namespace tensorsmith::record {

class AnsorWorkloads {
 public:
  // A JSON file: workload key -> {"compute_dag": text, "flops": number}; flops may be missing. A workload
  // whose text cannot be read is an error only for the records that name it. Errors: kNotFound, kIo,
  // kCorrupt.
  static Result<AnsorWorkloads> load(const std::string& path);
  static Result<AnsorWorkloads> from_json(std::string_view json);

  struct Task {
    std::string key;   // as in the records
    std::string name;  // the function in the key, or the operation that does the work: "conv2d_layer"
    ir::Workload workload;
    std::string structural_key;
    double flops = 0;
    sched::Schedule fresh;  // Schedule::create of the workload
  };
  struct Replayed {
    std::shared_ptr<const Task> task;
    sched::Schedule schedule;
  };
  // The record's program. Where the text leaves extents open, or the record's splits name others than were
  // guessed, the workload's extents are found anew with what the splits tell, until a first record of it was
  // replayed. Errors: kNotFound for an unknown key, those of parse_dag and of replay. Thread-safe.
  Result<Replayed> replay(const AnsorRecord& record) const;
  // nullptr where the key is unknown or its text not readable.
  std::shared_ptr<const Task> find(std::string_view key) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string text;
    double flops = 0;
    std::mutex mutex;
    std::shared_ptr<const Task> task;  // null: error says why
    Error error;
    bool confirmed = false;  // a record was replayed
  };
  static Result<std::shared_ptr<const Task>> make_task(const std::string& key, const Entry& entry,
                                                       const AnsorRecord* example);
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_;
};

}  // namespace tensorsmith::record
