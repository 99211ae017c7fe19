// Which schedule each task of a model runs with: the untuned one, or the fastest that a database holds.
#pragma once

#include <string>
#include <vector>

#include "base/sinks.h"
#include "graph/tasks.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Which schedules may be used.
struct ScheduleOptions {
  bool winograd = true;
};

// How one task is to run.
struct TaskSchedule {
  sched::Trace trace;
  double measured_seconds = 0;  // 0 = not measured
  // What takes its place where it cannot be built, the first that can.
  std::vector<TaskSchedule> otherwise = {};
  // space::DesignSpace::estimate of an untuned schedule; 0 = not of the space. On GPUs the launches are in it.
  double estimated_seconds = 0;
};

// The untuned schedule of every task, with plain loops behind it.
Result<std::vector<TaskSchedule>> default_schedules(const graph::Partition& partition,
                                                    const target::Device& device,
                                                    const ScheduleOptions& options = {});

// Replaces each schedule for which the database has a usable record on this device, by the fastest of them;
// returns how many. Not usable: a trace that no longer parses or replays, since records outlive versions of
// the scheduler, and a time that the device cannot reach. One warning says how many tasks have such a fastest
// record and why the first. Further records and the schedule before stand behind, for what does not compile.
// Records that the options exclude do not count; those measured with cold caches count where there are no others.
Result<size_t> apply_best_records(const graph::Partition& partition, const target::Device& device,
                                  const std::string& database, const ScheduleOptions& options,
                                  std::vector<TaskSchedule>& schedules, LogSink& log);

}  // namespace tensorsmith::engine
