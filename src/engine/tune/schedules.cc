#include "engine/tune/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "record/database.h"
#include "record/energy.h"
#include "sched/device_limits.h"
#include "sched/storage.h"
#include "sched/trace_traits.h"
#include "search/objective.h"
#include "search/plausible.h"

namespace tensorsmith::engine {
namespace {

// Number of alternative schedules kept per task, besides the untuned one.
constexpr size_t kAlternatives = 3;

// Returns the trace of a record if it replays on the workload and the device can run it; imported
// records may come from anywhere.
Result<sched::Trace> replayable_trace(const ir::Workload& workload, const std::string& text,
                                      const target::Device& device) {
  TS_ASSIGN_OR_RETURN(sched::Trace trace, sched::parse_trace(text));
  TS_ASSIGN_OR_RETURN(const sched::Schedule schedule, sched::replay(workload, trace));
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  TS_RETURN_IF_ERROR(sched::check_device_limits(schedule, bounds, device));
  return trace;
}

// The objective that orders records, and the energies that it may need.
struct RecordOrder {
  search::Objective objective;
  // By record key; empty if the objective does not use energy.
  std::unordered_map<std::string, double> joules;
};

// Returns the cost of a successful record of the task; +inf if its program has none.
double cost_of(const record::Record& record, const graph::Task& task, const target::Device& device,
               const search::Objective& objective) {
  search::ProgramFigures figures{record.result.best_estimate(), 0, record.result.joules.value_or(0)};
  if (objective.uses_memory()) {
    const auto trace = sched::parse_trace(record.trace);
    if (!trace.ok()) return std::numeric_limits<double>::infinity();
    const auto bytes = sched::temporary_bytes(task.workload, *trace, device);
    if (!bytes.ok()) return std::numeric_limits<double>::infinity();
    figures.bytes = static_cast<double>(*bytes);
  }
  return objective.cost(figures);
}

// Returns the successful records, those of the lowest cost first, and of equal cost the fastest.
Result<std::vector<record::Record>> ranked_records(record::Database& db, const graph::Task& task,
                                                   const target::Device& device,
                                                   const record::MeasureSettings& settings,
                                                   const ScheduleOptions& options, const RecordOrder& order) {
  TS_ASSIGN_OR_RETURN(auto records, db.records_of(task.key, device.key(), settings));
  std::erase_if(records, [&](record::Record& r) {
    if (order.objective.uses_energy()) {
      const auto joules = order.joules.find(r.key());
      if (joules == order.joules.end()) return true;
      r.result.joules = joules->second;
    }
    return !r.result.ok() || (!options.winograd && sched::uses_winograd(r.trace));
  });
  struct Rank {
    double cost = 0, seconds = 0;
    size_t place = 0;
    auto operator<=>(const Rank&) const = default;
  };
  std::vector<Rank> ranks;
  for (size_t i = 0; i < records.size(); ++i)
    ranks.push_back(
        {cost_of(records[i], task, device, order.objective), records[i].result.best_estimate(), i});
  std::sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) { return a < b; });
  std::vector<record::Record> ranked;
  for (const Rank& rank : ranks) ranked.push_back(std::move(records[rank.place]));
  return ranked;
}

// Usable schedules of a task, the best first, and why the best record is unusable, if it is.
struct Usable {
  std::vector<TaskSchedule> schedules;
  std::string problem;
};
Usable usable_schedules(const graph::Task& task, const std::vector<record::Record>& records,
                        const target::Device& device) {
  Usable usable;
  const double least = search::implausible_below(task.workload, device);
  const auto skip = [&](std::string problem) {
    if (usable.schedules.empty() && usable.problem.empty()) usable.problem = std::move(problem);
  };
  for (const auto& record : records) {
    if (usable.schedules.size() > kAlternatives) break;
    const double seconds = record.result.best_estimate();
    if (!search::is_plausible(record.result, least)) {
      skip(fmt::format("its time of {:.3g} s is less than the device's peak rates allow", seconds));
      continue;
    }
    auto trace = replayable_trace(task.workload, record.trace, device);
    if (!trace.ok()) {
      skip(trace.error().message());
      continue;
    }
    usable.schedules.push_back({std::move(trace).value(), seconds});
  }
  return usable;
}

}  // namespace

TaskSchedule untuned_schedule(const search::PreparedTask& task) {
  return {task.untuned_trace(), 0, {{task.plain_trace()}}, task.untuned_estimate()};
}

Result<std::vector<TaskSchedule>> default_schedules(const graph::Partition& partition,
                                                    const target::Device& device,
                                                    const ScheduleOptions& options) {
  TS_ASSIGN_OR_RETURN(const PreparedTasks tasks, prepare_tasks(partition, device, options));
  std::vector<TaskSchedule> out;
  for (const auto& task : tasks) out.push_back(untuned_schedule(*task));
  return out;
}

Result<size_t> apply_best_records(const graph::Partition& partition, const target::Device& device,
                                  const std::string& database, const ScheduleOptions& options,
                                  std::vector<TaskSchedule>& schedules, LogSink& log) {
  RecordOrder order;
  TS_ASSIGN_OR_RETURN(order.objective, search::Objective::parse(options.objective));
  TS_ASSIGN_OR_RETURN(auto db, record::Database::open_read_only(database));
  if (order.objective.uses_energy()) {
    TS_ASSIGN_OR_RETURN(order.joules, record::energies(*db));
    if (order.joules.empty())
      return Error{ErrorCode::kNotFound, record::shown_database(database),
                   "has no record with energy; measure some with `tensorsmith tune --objective energy`, or "
                   "choose an objective without energy"};
  }
  record::MeasureSettings warm, cold;
  warm.threads = cold.threads = device.compute_units();
  cold.flush_cache = true;
  size_t found = 0, skipped = 0, untuned = 0;
  std::string first_skipped;
  for (size_t t = 0; t < partition.tasks.size(); ++t) {
    const graph::Task& task = partition.tasks[t];
    TS_ASSIGN_OR_RETURN(auto records, ranked_records(*db, task, device, warm, options, order));
    if (records.empty()) {
      TS_ASSIGN_OR_RETURN(records, ranked_records(*db, task, device, cold, options, order));
    }
    Usable usable = usable_schedules(task, records, device);
    if (!usable.problem.empty() && skipped++ == 0)
      first_skipped = fmt::format("task {}: {}", task.name, usable.problem);
    if (usable.schedules.empty()) {
      if (!usable.problem.empty()) ++untuned;
      continue;
    }
    // A trace that replays may still fail to compile.
    usable.schedules.push_back({schedules[t].trace});
    for (TaskSchedule& other : schedules[t].otherwise) usable.schedules.push_back(std::move(other));
    schedules[t] = std::move(usable.schedules.front());
    usable.schedules.erase(usable.schedules.begin());
    schedules[t].otherwise = std::move(usable.schedules);
    ++found;
  }
  if (skipped > 0) {
    log.log(LogLevel::kWarning,
            fmt::format("{}: the best record of {} of {} tasks is not usable; {} of these tasks use the "
                        "next best record, {} use their untuned schedule (tune again to improve them); the "
                        "first unusable record: {}",
                        record::shown_database(database), skipped, partition.tasks.size(), skipped - untuned,
                        untuned, first_skipped));
  }
  return found;
}

}  // namespace tensorsmith::engine
