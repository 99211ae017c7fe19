// Exports our records as a database of TVM's MetaSchedule (JSONDatabase): a file of workloads and one of
// records, which refer to lines of the first.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "record/database.h"
#include "sched/schedule.h"

namespace tensorsmith::record {

class MetaScheduleExporter {
 public:
  // Must be called for a workload before its records. kUnsupported: the task cannot be expressed in
  // TVM (write_tir_module), and neither can its records.
  Status add(const TaskInfo& task);
  // Returns the line of a record, without the newline. Failures are written as in TVM, as 1e10 seconds.
  // kNotFound: the task was not added; kUnsupported: a step that TVM lacks (to_instructions), or a task that
  // add() refused, whose reason it repeats.
  Result<std::string> line(const Record& record, const target::Device& device) const;
  // Returns the lines of database_workload.json, each ["hash", "base64"]. The hash is one of our own: TVM
  // computes its structural hash again when it reads the module.
  std::string workloads() const;
  size_t tasks() const { return workloads_.size(); }

 private:
  struct Task {
    size_t workload = 0;    // its line
    std::string arguments;  // JSON text: [["TENSOR", "float32", [128, 96]], ...]
    sched::Schedule fresh;
  };
  std::map<std::string, Task> tasks_;           // by our key
  std::map<std::string, std::string> refused_;  // reasons, by our key
  std::vector<std::string> workloads_;          // lines
};

}  // namespace tensorsmith::record
