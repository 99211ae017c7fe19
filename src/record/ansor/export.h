// Records of ours as those of TVM's auto-scheduler, with the compute DAGs that they refer to.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/workload.h"
#include "record/ansor/ansor_record.h"
#include "record/database.h"

namespace tensorsmith::record {

// TVM's target and hardware parameters of a device: "cuda -keys=cuda,gpu -arch=sm_90 ...", "llvm -keys=cpu -mcpu=...".
std::string tvm_target(const target::Device& device);

class AnsorExporter {
 public:
  // Workloads come before their records. kUnsupported: the task has no form in TVM (to_dag_text), nor have its records.
  Status add(const TaskInfo& task);
  // The line, without the newline. Failures are TVM's: 1e10 seconds and a number that says where it failed. kNotFound: the
  // task is none that was added; kUnsupported: a step that TVM does not have. How tails are computed is not told: TVM guards
  // them.
  Result<std::string> line(const Record& record, const target::Device& device) const;
  // {"WORKLOAD KEY": {"compute_dag": text, "flops": number}}, which `dataset import --workloads` reads.
  std::string workloads() const;
  size_t tasks() const { return tasks_.size(); }

 private:
  struct Task {
    std::string workload_key, dag;
    double flops = 0;
    sched::Schedule fresh;
  };
  std::map<std::string, Task> tasks_;  // by our key
};

}  // namespace tensorsmith::record
