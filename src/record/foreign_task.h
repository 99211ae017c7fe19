// A workload that records of other tuners refer to.
#pragma once

#include <string>

#include "ir/workload.h"
#include "sched/schedule.h"

namespace tensorsmith::record {

struct ForeignTask {
  std::string key;   // as in the records
  std::string name;  // for messages and tables: "conv2d_layer", or the operation with most of the work
  ir::Workload workload;
  std::string structural_key;
  double flops = 0;
  sched::Schedule fresh;  // Schedule::create of the workload
};

}  // namespace tensorsmith::record
