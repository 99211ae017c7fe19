#include "tools/tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/console.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

// Runs of one model whose quartiles are further apart than this were disturbed by other programs.
constexpr double kBusySpread = 0.10;

std::string speedup(double before, double after) {
  return std::isfinite(before) && std::isfinite(after) && after > 0 ? fmt::format("{:.2f}x", before / after)
                                                                    : "-";
}

// Seconds of all calls of a task in one run of the model: in its place there, or else by itself.
struct TaskSeconds {
  double untuned = 0, tuned = 0;
};

TaskSeconds seconds_of(const engine::TunedModel& tuned, size_t task) {
  if (tuned.in_model) return {tuned.in_model->task_untuned[task], tuned.in_model->task_tuned[task]};
  const auto& progress = tuned.report.final.tasks[task];
  return {progress.weight * progress.default_seconds, progress.weight * progress.best_seconds};
}

// Over the tasks of which both are known.
struct AloneAndInModel {
  double alone = 0, in_model = 0;
};
AloneAndInModel alone_and_in_model(const engine::TunedModel& tuned) {
  AloneAndInModel sums;
  for (size_t t = 0; tuned.in_model && t < tuned.alone.size(); ++t) {
    if (tuned.alone[t] <= 0 || !std::isfinite(tuned.in_model->task_tuned[t])) continue;
    sums.alone += tuned.alone[t];
    sums.in_model += tuned.in_model->task_tuned[t];
  }
  return sums;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void print_table(const engine::TunedModel& tuned) {
  const auto& tasks = tuned.report.final.tasks;
  std::vector<TaskSeconds> seconds;
  TaskSeconds total;
  int64_t trials = 0, failures = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    seconds.push_back(seconds_of(tuned, t));
    trials += tasks[t].trials;
    failures += tasks[t].failures;
    if (!std::isfinite(seconds[t].untuned) || !std::isfinite(seconds[t].tuned)) continue;
    total.untuned += seconds[t].untuned;
    total.tuned += seconds[t].tuned;
  }
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto known = [&](size_t t) { return std::isfinite(seconds[t].tuned) ? seconds[t].tuned : 0; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return known(a) > known(b); });
  const bool any_source = std::any_of(tuned.sources.begin(), tuned.sources.end(),
                                      [](const auto& source) { return source.has_value(); });
  std::vector<std::string> columns{"task",  "calls",    "share",  "untuned",
                                   "tuned", "speed-up", "trials", "failed"};
  if (any_source) columns.emplace_back("schedule of");
  Table table(columns);
  for (const size_t t : order) {
    const auto& task = tasks[t];
    std::vector<std::string> row{task.name,
                                 fmt::format("{:.0f}", task.weight),
                                 total.tuned > 0 ? percent(known(t) / total.tuned) : "-",
                                 format_seconds(seconds[t].untuned / task.weight),
                                 format_seconds(seconds[t].tuned / task.weight),
                                 tuned.kept[t] ? "kept" : speedup(seconds[t].untuned, seconds[t].tuned),
                                 std::to_string(task.trials),
                                 std::to_string(task.failures)};
    if (any_source) row.push_back(tuned.sources[t] ? source_text(*tuned.sources[t]) : "");
    table.add(row);
  }
  std::vector<std::string> sum{"all calls",
                               "",
                               "",
                               format_seconds(total.untuned),
                               format_seconds(total.tuned),
                               speedup(total.untuned, total.tuned),
                               std::to_string(trials),
                               std::to_string(failures)};
  if (any_source) sum.emplace_back();
  table.add(sum);
  print_lines(table.text());
}

void print_sources(const std::vector<engine::SourceScore>& scores) {
  Table table({"schedules of", "tasks", "of the time", "expected gain", "heuristic"});
  for (const engine::SourceScore& score : scores)
    table.add({score.name, std::to_string(score.tasks), percent(score.covered),
               fmt::format("{:.2f}x", score.gain), fmt::format("{:.2f}", score.heuristic)});
  print_lines(table.text());
}

}  // namespace

std::string source_text(const engine::ProgramSource& source) {
  return fmt::format("{}, {}", source.same_task ? "the same task" : source.task, source.device);
}

void print_tune_report(const engine::TunedModel& tuned, const std::string& directory,
                       const std::string& database, double elapsed) {
  const search::TuneProgress& p = tuned.report.final;
  if (!tuned.source_scores.empty()) print_sources(tuned.source_scores);
  print_table(tuned);
  print_out("untuned, tuned: a call {}; kept: runs untuned\n",
            tuned.in_model ? "in its place in the model, both timed in turn" : "measured by itself");
  print_out("{} trials in {} ({} found in {})\n", p.trials, format_duration(elapsed), p.resumed, database);
  if (tuned.report.end == search::SearchEnd::kGain)
    print_out("the search ended: as long again was expected to gain {}\n",
              percent(tuned.report.expected_gain));
  if (tuned.report.end == search::SearchEnd::kExhausted)
    print_out("the search ended: nothing is left to measure\n");
  const auto tried = static_cast<size_t>(
      std::count_if(p.tasks.begin(), p.tasks.end(), [](const auto& task) { return task.trials > 1; }));
  if (tried < p.tasks.size()) {
    print_out("{} of {} tasks were not searched: they take too little time, or were not reached\n",
              p.tasks.size() - tried, p.tasks.size());
  }
  if (tuned.in_model) {
    const engine::InModel& m = *tuned.in_model;
    print_out("end to end:   untuned {}, tuned {} ({}); runs differ by {}{}\n", format_seconds(m.untuned),
              format_seconds(m.tuned), speedup(m.untuned, m.tuned), percent(m.spread),
              m.spread > kBusySpread ? ": the machine is busy" : "");
  }
  if (const auto sums = alone_and_in_model(tuned); sums.in_model > 0 && sums.alone > 0) {
    print_out("its kernels:  {} in their places, {} each by itself ({:+.1f} %)\n",
              format_seconds(sums.in_model), format_seconds(sums.alone),
              100 * (sums.in_model / sums.alone - 1));
  }
  print_out("compiled model: {}\n", directory);
}

}  // namespace tensorsmith::tools
