#include "lab/task_records.h"

#include <map>
#include <utility>

namespace tensorsmith::lab {

std::vector<TaskRecords> records_by_task(const learn::Store& store, const std::vector<int64_t>& records) {
  std::map<std::pair<uint32_t, uint32_t>, TaskRecords> tasks;
  for (const int64_t i : records) {
    const learn::Store::Entry entry = store.entry(i);
    TaskRecords& task = tasks[{entry.device, entry.workload}];
    task.workload = entry.workload;
    task.device = entry.device;
    task.records.push_back(i);
    task.ran += entry.failed() ? 0 : 1;
  }
  std::vector<TaskRecords> out;
  for (auto& [key, task] : tasks) out.push_back(std::move(task));
  return out;
}

}  // namespace tensorsmith::lab
