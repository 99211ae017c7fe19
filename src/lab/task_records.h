// Groups the records of a store by task.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/dataset/store.h"

namespace tensorsmith::lab {

// A workload on a device, with its records.
struct TaskRecords {
  uint32_t workload = 0, device = 0;  // index in the store
  std::vector<int64_t> records;       // record numbers, in the order that they were given in
  int64_t ran = 0;                    // number of records whose programs did not fail
};

// Returns the tasks of these records by device, then by workload.
std::vector<TaskRecords> records_by_task(const learn::Store& store, const std::vector<int64_t>& records);

}  // namespace tensorsmith::lab
