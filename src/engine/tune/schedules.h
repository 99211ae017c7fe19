// Chooses the schedule of each task of a model: the untuned one or the fastest in a database.
#pragma once

#include <string>
#include <vector>

#include "base/sinks.h"
#include "engine/tune/prepare_tasks.h"
#include "graph/tasks.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::engine {

// The schedule of one task.
struct TaskSchedule {
  sched::Trace trace;
  double measured_seconds = 0;  // 0 = not measured
  // Alternatives if the schedule cannot be built; the first one that can be built is used.
  std::vector<TaskSchedule> otherwise = {};
  // space::DesignSpace::estimate of an untuned schedule; 0 = not known. On GPUs it includes the
  // launches.
  double estimated_seconds = 0;
};

// Returns the untuned schedule of a task, with plain loops as the alternative.
TaskSchedule untuned_schedule(const search::PreparedTask& task);
// Returns the untuned schedules of all tasks. Errors: those of prepare_tasks.
Result<std::vector<TaskSchedule>> default_schedules(const graph::Partition& partition,
                                                    const target::Device& device,
                                                    const ScheduleOptions& options = {});

// Replaces each schedule for which the database has usable records on this device by the best of
// them by the options' objective, and returns the number of replaced schedules. A record is unusable
// if its trace no longer parses or replays, since records outlive versions of the scheduler, or if its
// time is impossible on the device. One warning says how many tasks have an unusable best record, with
// the reason for the first. Further records and the previous schedule become alternatives for
// schedules that do not compile. Records that the options exclude are ignored, and records without
// energy if the objective uses it; records measured with cold caches are used only if there are no
// others.
Result<size_t> apply_best_records(const graph::Partition& partition, const target::Device& device,
                                  const std::string& database, const ScheduleOptions& options,
                                  std::vector<TaskSchedule>& schedules, LogSink& log);

}  // namespace tensorsmith::engine
