// Exports our records in the format of TVM's auto-scheduler, with the compute DAGs that they refer
// to.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/workload.h"
#include "record/ansor/ansor_record.h"
#include "record/database.h"

namespace tensorsmith::record {

// TVM's target string of a device: "cuda -keys=cuda,gpu -arch=sm_90 ...", "llvm -keys=cpu
// -mcpu=...".
std::string tvm_target(const target::Device& device);

class AnsorExporter {
 public:
  // Must be called for a workload before its records. kUnsupported: the task cannot be expressed in
  // TVM (to_dag_text), and neither can its records.
  Status add(const TaskInfo& task);
  // Returns the line of a record, without the newline. Failures are written as in TVM: 1e10 seconds
  // and an error number. kNotFound: the task was not added; kUnsupported: a step that TVM lacks, or a
  // task that add() refused, whose reason it repeats. Two choices that TVM makes by itself are not
  // written: the tail handling of loops, since it always guards tails, and the layouts of constants.
  Result<std::string> line(const Record& record, const target::Device& device) const;
  // Returns {"WORKLOAD KEY": {"compute_dag": text, "flops": number}}, which `dataset import
  // --workloads` reads.
  std::string workloads() const;
  size_t tasks() const { return tasks_.size(); }

 private:
  struct Task {
    std::string workload_key, dag;
    double flops = 0;
    sched::Schedule fresh;
  };
  std::map<std::string, Task> tasks_;           // by our key
  std::map<std::string, std::string> refused_;  // reasons, by our key
};

}  // namespace tensorsmith::record
