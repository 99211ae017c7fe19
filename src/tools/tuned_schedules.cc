#include "tools/tuned_schedules.h"

#include <fmt/format.h>

#include "record/database.h"
#include "sched/device_limits.h"
#include "sched/trace_traits.h"

namespace tensorsmith::tools {
namespace {

// The schedule of a record, if the workload still takes it and the device can run it: imported records may
// come from anywhere.
Result<sched::Trace> replayable_trace(const ir::Workload& workload, const std::string& text,
                                      const target::Device& device) {
  TS_ASSIGN_OR_RETURN(sched::Trace trace, sched::parse_trace(text));
  TS_ASSIGN_OR_RETURN(const sched::Schedule schedule, sched::replay(workload, trace));
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  TS_RETURN_IF_ERROR(sched::check_device_limits(schedule, bounds, device));
  return trace;
}

Result<std::optional<record::Record>> best_record(record::Database& db, const std::string& task_key,
                                                  const std::string& device_key,
                                                  const record::MeasureSettings& settings,
                                                  const ScheduleOptions& options) {
  if (options.winograd) return db.best(task_key, device_key, settings);
  TS_ASSIGN_OR_RETURN(auto records, db.records_of(task_key, device_key, settings));
  std::optional<record::Record> best;
  for (auto& record : records) {
    if (!record.result.ok() || sched::uses_winograd(record.trace)) continue;
    if (!best || record.result.best_estimate() < best->result.best_estimate()) best = std::move(record);
  }
  return best;
}

}  // namespace

Result<size_t> apply_best_records(const graph::Partition& partition, const target::Device& device,
                                  const std::string& database, const ScheduleOptions& options,
                                  std::vector<TaskSchedule>& schedules, LogSink& log) {
  TS_ASSIGN_OR_RETURN(auto db, record::Database::open_read_only(database));
  record::MeasureSettings settings;
  settings.threads = device.cores;
  size_t found = 0;
  size_t skipped = 0;
  std::string first_skipped;
  for (size_t t = 0; t < partition.tasks.size(); ++t) {
    TS_ASSIGN_OR_RETURN(const auto best,
                        best_record(*db, partition.tasks[t].key, device.key(), settings, options));
    if (!best) continue;
    auto trace = replayable_trace(partition.tasks[t].workload, best->trace, device);
    if (!trace.ok()) {
      if (skipped++ == 0) {
        first_skipped = fmt::format("task {}: {}", partition.tasks[t].name, trace.error().message());
      }
      continue;
    }
    schedules[t] = {std::move(trace).value(), best->result.best_estimate()};
    ++found;
  }
  if (skipped > 0) {
    log.log(LogLevel::kWarning,
            fmt::format("{}: {} of {} tasks keep their untuned schedule because their fastest record is not "
                        "usable (tune again); the first is {}",
                        database, skipped, partition.tasks.size(), first_skipped));
  }
  return found;
}

}  // namespace tensorsmith::tools
