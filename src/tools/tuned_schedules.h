// Schedules from the record database.
#pragma once

#include <string>
#include <vector>

#include "base/sinks.h"
#include "tools/compile_model.h"

namespace tensorsmith::tools {

// Replaces each schedule for which the database has a fastest record on this device; returns how many. A
// record whose trace no longer parses or replays is skipped, since records outlive versions of the scheduler;
// one warning says how many were and why the first was. Records that the options exclude do not count.
Result<size_t> apply_best_records(const graph::Partition& partition, const target::Device& device,
                                  const std::string& database, const ScheduleOptions& options,
                                  std::vector<TaskSchedule>& schedules, LogSink& log);

}  // namespace tensorsmith::tools
