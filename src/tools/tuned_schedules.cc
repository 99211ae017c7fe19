#include "tools/tuned_schedules.h"

#include "record/database.h"

namespace tensorsmith::tools {

Result<size_t> apply_best_records(const graph::Partition& partition, const target::Device& device,
                                  const std::string& database, std::vector<TaskSchedule>& schedules) {
  TS_ASSIGN_OR_RETURN(auto db, record::Database::open_read_only(database));
  record::MeasureSettings settings;
  settings.threads = device.cores;
  size_t found = 0;
  for (size_t t = 0; t < partition.tasks.size(); ++t) {
    TS_ASSIGN_OR_RETURN(const auto best, db->best(partition.tasks[t].key, device.key(), settings));
    if (!best) continue;
    auto trace = sched::parse_trace(best->trace);
    if (!trace.ok() || !sched::replay(partition.tasks[t].workload, *trace).ok()) continue;
    schedules[t] = {std::move(trace).value(), best->result.best_estimate()};
    ++found;
  }
  return found;
}

}  // namespace tensorsmith::tools
