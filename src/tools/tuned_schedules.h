// Schedules from the record database.
#pragma once

#include <string>
#include <vector>

#include "tools/compile_model.h"

namespace tensorsmith::tools {

// Replaces each schedule for which the database has a fastest record on this device; returns how many. A
// record whose trace no longer replays is skipped: records outlive versions of the scheduler.
Result<size_t> apply_best_records(const graph::Partition& partition, const target::Device& device,
                                  const std::string& database, std::vector<TaskSchedule>& schedules);

}  // namespace tensorsmith::tools
