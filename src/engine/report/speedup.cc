#include "engine/report/speedup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "graph/tasks.h"
#include "runtime/model_format.h"
#include "search/tuner.h"

namespace tensorsmith::engine {
namespace {

bool is_time(double seconds) { return std::isfinite(seconds) && seconds > 0; }

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// nullopt: the search has not measured the task yet.
std::optional<TaskTimes> times_of(const search::TaskProgress& task, double calls) {
  if (task.trials == 0 && !is_time(task.default_seconds) && !is_time(task.best_seconds)) {
    if (task.hint_seconds <= 0) return std::nullopt;
    return TaskTimes{calls, task.hint_seconds, task.hint_seconds};
  }
  return TaskTimes{calls, task.default_seconds, task.best_seconds};
}

}  // namespace

std::string ratio_text(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? fmt::format("{:.2f}x", ratio) : "-";
}

std::string spread_text(const Speedup& speedup) { return "the runs differ by " + percent(speedup.spread); }

std::string warning_of(const Speedup& speedup) {
  if (!speedup.busy()) return {};
  return fmt::format(
      "The runs differ by {}, which is more than {:.0f} %: other programs disturbed them, so the speed-up is "
      "uncertain. Tune again while the machine does nothing else.",
      percent(speedup.spread), 100 * kBusySpread);
}

Estimate estimate_of(const std::vector<TaskTimes>& tasks) {
  Estimate sum;
  for (const TaskTimes& task : tasks) {
    const bool untuned = is_time(task.untuned_seconds), tuned = is_time(task.tuned_seconds);
    if (!untuned && !tuned) continue;
    sum.untuned_seconds += task.calls * (untuned ? task.untuned_seconds : task.tuned_seconds);
    sum.tuned_seconds += task.calls * (tuned ? task.tuned_seconds : task.untuned_seconds);
  }
  return sum;
}

Estimate estimate_of(const search::TuneProgress& progress) {
  std::vector<TaskTimes> tasks;
  for (const search::TaskProgress& task : progress.tasks) {
    const auto times = times_of(task, task.weight);
    if (!times) return {};
    tasks.push_back(*times);
  }
  return estimate_of(tasks);
}

Estimate estimate_of(const search::TuneProgress& progress, const graph::Partition& model) {
  std::map<std::string_view, const search::TaskProgress*> by_key;
  for (const search::TaskProgress& task : progress.tasks) by_key[task.key] = &task;
  std::vector<TaskTimes> tasks;
  for (const graph::Task& task : model.tasks) {
    const auto at = by_key.find(task.key);
    const auto times = at == by_key.end() ? std::nullopt : times_of(*at->second, task.calls);
    if (!times) return {};
    tasks.push_back(*times);
  }
  return estimate_of(tasks);
}

std::optional<runtime::TuningTimes> stored(const Speedup& speedup) {
  if (!is_time(speedup.untuned_seconds) || !is_time(speedup.tuned_seconds)) return std::nullopt;
  return runtime::TuningTimes{speedup.untuned_seconds, speedup.tuned_seconds, speedup.spread};
}

std::optional<runtime::TuningTimes> stored(const Estimate& estimate) {
  if (!estimate.known()) return std::nullopt;
  return runtime::TuningTimes{estimate.untuned_seconds, estimate.tuned_seconds, 0};
}

std::optional<Speedup> speedup_of(const runtime::ModelDescription& model) {
  if (!model.end_to_end) return std::nullopt;
  const runtime::TuningTimes& times = *model.end_to_end;
  return Speedup{times.untuned_seconds, times.tuned_seconds, times.spread};
}

Estimate estimate_of(const runtime::ModelDescription& model) {
  if (!model.estimate) return {};
  return {model.estimate->untuned_seconds, model.estimate->tuned_seconds};
}

}  // namespace tensorsmith::engine
