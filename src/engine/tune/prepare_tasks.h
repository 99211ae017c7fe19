// Prepares the tasks of models for a device: each task's design space and untuned schedule are made once
// and used by all later steps.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/tasks.h"
#include "search/prepared_task.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Tells which schedules are allowed, and which of them is the best.
struct ScheduleOptions {
  bool winograd = true;
  std::string objective = "latency";  // text of a search::Objective
};

using PreparedTasks = std::vector<std::shared_ptr<const search::PreparedTask>>;

// Returns the tasks in order, prepared on `jobs` threads. Errors: those of space::DesignSpace::build;
// the task is the place.
Result<PreparedTasks> prepare_tasks(std::span<const graph::Task* const> tasks, const target::Device& device,
                                    const ScheduleOptions& options = {}, int jobs = 1);
Result<PreparedTasks> prepare_tasks(const graph::Partition& partition, const target::Device& device,
                                    const ScheduleOptions& options = {}, int jobs = 1);
Result<std::shared_ptr<const search::PreparedTask>> prepare_task(const graph::Task& task,
                                                                 const target::Device& device,
                                                                 const ScheduleOptions& options = {});

}  // namespace tensorsmith::engine
