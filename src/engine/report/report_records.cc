#include "engine/report/report_records.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ir/text.h"
#include "learn/latency/least_time.h"
#include "lower/lower.h"
#include "sched/step.h"
#include "search/plausible.h"
#include "target/machine.h"

namespace tensorsmith::engine {
namespace {

// Longer pauses between records separate runs and are not counted as time.
constexpr int64_t kPauseMilliseconds = 60'000;

// Indexed by position in the sorted moments.
struct Timeline {
  std::vector<double> seconds;  // since the first moment, without pauses
  std::vector<int> runs;        // number of pauses before the moment
};

Timeline without_pauses(const std::vector<int64_t>& moments) {
  Timeline timeline;
  int64_t elapsed = 0;
  int run = 0;
  for (size_t i = 0; i < moments.size(); ++i) {
    const int64_t step = i == 0 ? 0 : moments[i] - moments[i - 1];
    if (step <= kPauseMilliseconds) {
      elapsed += step;
    } else {
      ++run;
    }
    timeline.seconds.push_back(1e-3 * elapsed);
    timeline.runs.push_back(run);
  }
  return timeline;
}

Result<std::string> loops_of(const ir::Workload& workload, const std::string& trace) {
  TS_ASSIGN_OR_RETURN(const sched::Trace steps, sched::parse_trace(trace));
  TS_ASSIGN_OR_RETURN(const sched::Schedule schedule, sched::replay(workload, steps));
  TS_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::lower(schedule));
  return ir::print(lowered.program);
}

double bytes_of(const ir::Workload& workload) {
  double bytes = 0;
  for (const double read : learn::read_bytes(workload)) bytes += read;
  for (const ir::Buffer& output : workload.outputs) {
    double size = ir::bytes_of(output->dtype);
    for (const int64_t extent : output->shape) size *= extent;
    bytes += size;
  }
  return bytes;
}

// State of one task on one setup while its records are read.
struct Gathered {
  ReportTask task;
  std::vector<int64_t> moments;  // by record
  std::vector<std::string> strategies;
  std::map<std::pair<record::Outcome, std::string>, int64_t> failures;
};

void take(const record::Record& record, Gathered& to) {
  to.task.records.push_back({0, record.result.best_estimate(), record.result.outcome, record.candidate.reason,
                             true, record.trace, record.candidate.point});
  to.task.records.back().disturbance = record.result.disturbance;
  to.moments.push_back(record.unix_ms);
  to.strategies.push_back(record.candidate.strategy);
  if (!record.result.ok()) ++to.failures[{record.result.outcome, record.result.reason}];
}

// Computes the results that need all records of the task.
void finish(const std::optional<target::Device>& device, ReportLoops* loops, Gathered& gathered) {
  ReportTask& task = gathered.task;
  std::optional<ir::Workload> workload;
  auto parsed = ir::parse_workload(task.text);
  if (parsed.ok()) {
    workload = std::move(parsed).value();
    task.bytes = bytes_of(*workload);
  } else {
    task.no_loops_because =
        task.text.empty() ? "the database does not describe the task" : parsed.error().message();
  }
  const double least = workload && device ? search::implausible_below(*workload, *device) : 0;
  for (size_t r = 0; r < task.records.size(); ++r) {
    ReportRecord& record = task.records[r];
    record.plausible = record.outcome != record::Outcome::kOk || record.seconds >= least;
    if (record.outcome != record::Outcome::kOk || !record.plausible) continue;
    if (record.reason == record::Reason::kDefault)
      task.untuned_seconds = std::min(task.untuned_seconds, record.seconds);
    if (record.seconds >= task.best_seconds) continue;
    task.best_seconds = record.seconds;
    task.best = r;
  }
  for (const auto& [what, count] : gathered.failures)
    task.failures.push_back({what.first, what.second, count});
  std::stable_sort(task.failures.begin(), task.failures.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  if (!task.best) return;
  const std::string& trace = task.records[*task.best].trace;
  task.strategy = gathered.strategies[*task.best];
  if (!workload) return;
  const auto known = [&] { return loops->find({task.key, trace}); };
  if (loops != nullptr && known() != loops->end()) {
    std::tie(task.loops, task.no_loops_because) = known()->second;
    return;
  }
  auto made = loops_of(*workload, trace);
  if (made.ok()) {
    task.loops = std::move(made).value();
  } else {
    task.no_loops_because = made.error().message();
  }
  if (loops != nullptr) (*loops)[{task.key, trace}] = {task.loops, task.no_loops_because};
}

// If the filter has tasks and a setup, each task is read by the index; otherwise the whole database
// is read.
Status read(record::Database& database, const ReportFilter& filter,
            const std::function<Status(const record::Record&)>& fn) {
  if (!filter.tasks || !filter.device_key) {
    return database.for_each([&](const record::Record& record) -> Status {
      if (filter.tasks && !filter.tasks->contains(record.task_key)) return {};
      if (filter.device_key &&
          (record.device_key != *filter.device_key || !(record.settings == filter.settings)))
        return {};
      return fn(record);
    });
  }
  for (const std::string& key : *filter.tasks) {
    TS_ASSIGN_OR_RETURN(const auto records, database.records_of(key, *filter.device_key, filter.settings));
    for (const auto& record : records) TS_RETURN_IF_ERROR(fn(record));
  }
  return {};
}

// Computes the curve of the model's tasks, and the estimate if the model does not have that of its
// run.
void add_up(const Report& report, ReportModel& model) {
  std::vector<std::pair<size_t, int>> tasks;
  std::vector<TaskTimes> times;
  for (const ReportModelTask& task : model.tasks) {
    tasks.emplace_back(task.task, task.calls);
    const ReportTask& measured = report.tasks[task.task];
    times.push_back({static_cast<double>(task.calls), measured.untuned_seconds, measured.best_seconds});
    const ReportSetup& setup = report.setups[measured.setup];
    // The bandwidths of the setup were probably measured on an idle machine.
    if (setup.device_key == model.ran_on_key && setup.device) model.roofs = setup.roofs;
  }
  model.best_so_far = best_so_far(report, tasks);
  if (!model.estimate.known()) model.estimate = estimate_of(times);
}

}  // namespace

std::vector<ReportRoof> roofs_of(const target::Device& device) {
  std::vector<ReportRoof> roofs;
  const auto add = [&](std::string name, double flops, double bytes, bool said) {
    roofs.push_back({std::move(name), flops, bytes, !said});
  };
  const target::Machine machine = target::machine_of(device);
  std::visit(
      [&](const auto& m) { add("peak of f32 vectors", m.flops_per_second, 0, device.peak_f32_gflops > 0); },
      machine);
  if (const auto* cpu = std::get_if<target::CpuMachine>(&machine)) {
    const double cycles = cpu->clock_hz * cpu->cores;
    add("L2", 0, cycles * cpu->rates.l2_bytes_per_cycle, device.cpu().rates.l2_bytes_per_cycle > 0);
    if (cpu->l3_bytes > 0)
      add("L3", 0, cycles * cpu->rates.l3_bytes_per_cycle, device.cpu().rates.l3_bytes_per_cycle > 0);
  }
  std::visit([&](const auto& m) { add("memory", 0, m.bytes_per_second, device.memory_bandwidth_gbs > 0); },
             machine);
  return roofs;
}

Status add_records(record::Database& database, const ReportFilter& filter, ReportLoops* loops,
                   Report& report) {
  TS_ASSIGN_OR_RETURN(const auto infos, database.tasks());
  TS_ASSIGN_OR_RETURN(const auto devices, database.devices());
  std::map<std::string, const record::TaskInfo*> info_of;
  for (const auto& info : infos) info_of[info.key] = &info;
  std::vector<Gathered> gathered;
  std::map<std::tuple<std::string, int, bool>, size_t> setups;  // device, threads, cold caches
  std::map<std::pair<size_t, std::string>, size_t> places;      // setup, task
  TS_RETURN_IF_ERROR(read(database, filter, [&](const record::Record& record) -> Status {
    const auto [setup, new_setup] = setups.emplace(
        std::tuple(record.device_key, record.settings.threads, record.settings.flush_cache), setups.size());
    if (new_setup) {
      ReportSetup& added = report.setups.emplace_back();
      added.device_key = record.device_key;
      added.settings = record.settings;
      for (const auto& known : devices)
        if (known.key == record.device_key) added.device = known.device;
      if (added.device) added.roofs = roofs_of(*added.device);
    }
    const auto [place, new_task] = places.emplace(std::pair(setup->second, record.task_key), gathered.size());
    if (new_task) {
      ReportTask& task = gathered.emplace_back().task;
      task.key = record.task_key;
      task.setup = setup->second;
      const auto info = info_of.find(record.task_key);
      task.name = record.task_key;
      if (info != info_of.end()) {
        task.name = info->second->name;
        task.text = info->second->text;
        task.flops = info->second->flops;
      }
    }
    take(record, gathered[place->second]);
    return {};
  }));
  std::vector<int64_t> moments;
  for (const Gathered& g : gathered) moments.insert(moments.end(), g.moments.begin(), g.moments.end());
  std::sort(moments.begin(), moments.end());
  const Timeline timeline = without_pauses(moments);
  for (Gathered& g : gathered) {
    for (size_t r = 0; r < g.moments.size(); ++r) {
      const auto at = std::lower_bound(moments.begin(), moments.end(), g.moments[r]) - moments.begin();
      g.task.records[r].at_seconds = timeline.seconds[at];
      g.task.records[r].run = timeline.runs[at];
    }
    finish(report.setups[g.task.setup].device, loops, g);
    report.tasks.push_back(std::move(g.task));
  }
  for (size_t s = 0; s < report.setups.size(); ++s) {
    std::vector<std::pair<size_t, int>> tasks;
    std::vector<TaskTimes> times;
    for (size_t t = 0; t < report.tasks.size(); ++t) {
      if (report.tasks[t].setup != s) continue;
      tasks.emplace_back(t, 1);
      times.push_back({1, report.tasks[t].untuned_seconds, report.tasks[t].best_seconds});
    }
    report.best_so_far.push_back(best_so_far(report, tasks));
    report.setups[s].estimate = estimate_of(times);
  }
  return {};
}

std::vector<ReportPoint> best_so_far(const Report& report, const std::vector<std::pair<size_t, int>>& tasks) {
  struct Event {
    double at_seconds = 0, seconds = 0;  // of a call
    size_t task = 0;                     // in `tasks`
  };
  std::vector<Event> events;
  std::vector<double> best;
  double last = 0;
  for (size_t k = 0; k < tasks.size(); ++k) {
    const ReportTask& task = report.tasks[tasks[k].first];
    best.push_back(task.untuned_seconds);
    for (const ReportRecord& record : task.records) {
      last = std::max(last, record.at_seconds);
      if (record.outcome != record::Outcome::kOk || !record.plausible) continue;
      if (!std::isfinite(best[k])) best[k] = record.seconds;
      events.push_back({record.at_seconds, record.seconds, k});
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.at_seconds < b.at_seconds; });
  double sum = 0;
  bool any = false;
  for (size_t k = 0; k < tasks.size(); ++k) {
    if (!std::isfinite(best[k])) continue;
    sum += tasks[k].second * best[k];
    any = true;
  }
  std::vector<ReportPoint> points;
  if (!any) return points;
  points.push_back({0, sum});
  for (const Event& event : events) {
    if (event.seconds >= best[event.task]) continue;
    sum -= tasks[event.task].second * (best[event.task] - event.seconds);
    best[event.task] = event.seconds;
    points.push_back({event.at_seconds, sum});
  }
  if (points.back().at_seconds < last) points.push_back({last, sum});
  return points;
}

void connect_records(const Report& report, ReportModel& model) {
  for (ReportKernel& kernel : model.kernels) {
    double nearest = std::numeric_limits<double>::infinity();
    for (size_t t = 0; t < report.tasks.size(); ++t) {
      const ReportTask& task = report.tasks[t];
      if (task.name != kernel.task || task.flops != kernel.flops) continue;
      if (model.threads > 0 && report.setups[task.setup].settings.threads != model.threads) continue;
      const double distance = std::abs(std::log(task.best_seconds / kernel.seconds));
      if (kernel.place && !(distance < nearest)) continue;
      nearest = distance;
      kernel.place = t;
    }
  }
  for (const ReportKernel& kernel : model.kernels) {
    if (!kernel.place) continue;
    const auto at = std::find_if(model.tasks.begin(), model.tasks.end(),
                                 [&](const ReportModelTask& task) { return task.task == *kernel.place; });
    if (at == model.tasks.end()) {
      model.tasks.push_back({*kernel.place, 1});
    } else {
      ++at->calls;
    }
  }
  add_up(report, model);
}

void connect_run(const Report& report, const LoadedModel& loaded, const TunedModel* tuned,
                 const search::TuneProgress* progress, ReportModel& model) {
  std::vector<std::optional<size_t>> places;  // by task of the partition
  for (size_t t = 0; t < loaded.partition.tasks.size(); ++t) {
    const graph::Task& task = loaded.partition.tasks[t];
    const auto at = std::find_if(report.tasks.begin(), report.tasks.end(),
                                 [&](const ReportTask& known) { return known.key == task.key; });
    if (at == report.tasks.end()) {
      places.emplace_back();
      continue;
    }
    places.emplace_back(static_cast<size_t>(at - report.tasks.begin()));
    ReportModelTask part{*places.back(), task.calls};
    part.kept_untuned = tuned != nullptr && tuned->kept[t] != 0;
    if (tuned != nullptr && tuned->in_model) {
      part.untuned_in_model = tuned->in_model->task_untuned[t];
      part.tuned_in_model = tuned->in_model->task_tuned[t];
    }
    model.tasks.push_back(part);
  }
  for (size_t c = 0; c < model.kernels.size() && c < loaded.partition.calls.size(); ++c)
    if (const auto task = loaded.partition.calls[c].task) model.kernels[c].place = places[*task];
  if (tuned != nullptr) {
    model.estimate = tuned->estimate;
    if (tuned->in_model) model.end_to_end = tuned->in_model->whole;
  } else if (progress != nullptr) {
    model.estimate = estimate_of(*progress, loaded.partition);
  }
  add_up(report, model);
}

}  // namespace tensorsmith::engine
