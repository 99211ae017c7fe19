// Schedules from the record database.
#pragma once

#include <string>
#include <vector>

#include "base/sinks.h"
#include "tools/compile_model.h"

namespace tensorsmith::tools {

// Replaces each schedule for which the database has a usable record on this device, by the fastest of them;
// returns how many. Not usable: a trace that no longer parses or replays, since records outlive versions of
// the scheduler, and a time that the device cannot reach. One warning says how many tasks have such a fastest
// record and why the first. Further records and the schedule before stand behind, for what does not compile.
// Records that the options exclude do not count.
Result<size_t> apply_best_records(const graph::Partition& partition, const target::Device& device,
                                  const std::string& database, const ScheduleOptions& options,
                                  std::vector<TaskSchedule>& schedules, LogSink& log);

}  // namespace tensorsmith::tools
