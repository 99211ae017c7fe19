#include "engine/tune/prepare_tasks.h"

#include <optional>

#include "base/thread_pool.h"

namespace tensorsmith::engine {

Result<PreparedTasks> prepare_tasks(std::span<const graph::Task* const> tasks, const target::Device& device,
                                    const ScheduleOptions& options, int jobs) {
  const auto shared_device = std::make_shared<const target::Device>(device);
  const space::DesignSpace::Options space_options{.winograd = options.winograd};
  std::vector<std::optional<Result<std::shared_ptr<const search::PreparedTask>>>> made(tasks.size());
  for_each_index(jobs, tasks.size(), [&](size_t t) {
    made[t] = search::PreparedTask::create({tasks[t]->key, tasks[t]->name}, tasks[t]->workload, shared_device,
                                           space_options);
  });
  PreparedTasks out;
  for (auto& task : made) {
    if (!task->ok()) return task->error();
    out.push_back(std::move(**task));
  }
  return out;
}

Result<PreparedTasks> prepare_tasks(const graph::Partition& partition, const target::Device& device,
                                    const ScheduleOptions& options, int jobs) {
  std::vector<const graph::Task*> tasks;
  for (const graph::Task& task : partition.tasks) tasks.push_back(&task);
  return prepare_tasks(tasks, device, options, jobs);
}

Result<std::shared_ptr<const search::PreparedTask>> prepare_task(const graph::Task& task,
                                                                 const target::Device& device,
                                                                 const ScheduleOptions& options) {
  const graph::Task* const one[] = {&task};
  TS_ASSIGN_OR_RETURN(PreparedTasks made, prepare_tasks(one, device, options));
  return std::move(made.front());
}

}  // namespace tensorsmith::engine
