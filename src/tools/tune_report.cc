#include "tools/tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tools/console.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

// Seconds of all calls of a task in one run of the model: measured in such a run, else measured
// alone. For a task that keeps its untuned schedule both times are equal.
struct TaskSeconds {
  double untuned = 0, tuned = 0;
};

TaskSeconds seconds_of(const engine::TunedModel& tuned, size_t task) {
  if (tuned.in_model) return {tuned.in_model->task_untuned[task], tuned.in_model->task_tuned[task]};
  const auto& progress = tuned.report.final.tasks[task];
  const double untuned = progress.weight * progress.default_seconds;
  const double alone = progress.weight * tuned.alone[task];
  return {untuned, tuned.kept[task] != 0 ? untuned
                   : alone > 0           ? alone
                                         : std::numeric_limits<double>::infinity()};
}

// Seconds of the compiled model's kernels, over the tasks for which both are known.
struct AloneAndInModel {
  double alone = 0, in_model = 0;
};
AloneAndInModel alone_and_in_model(const engine::TunedModel& tuned) {
  AloneAndInModel sums;
  for (size_t t = 0; tuned.in_model && t < tuned.alone.size(); ++t) {
    if (tuned.alone[t] <= 0 || !std::isfinite(tuned.in_model->task_tuned[t])) continue;
    sums.alone += tuned.report.final.tasks[t].weight * tuned.alone[t];
    sums.in_model += tuned.in_model->task_tuned[t];
  }
  return sums;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// Returns "-" for a cost that is not known, because the program failed.
std::string cost_text(double cost) { return std::isfinite(cost) ? fmt::format("{:.4g}", cost) : "-"; }

// Returns why the search spent its time on a task, such as "1 first, 4 gain" or "none, small".
std::string rounds_text(const search::TaskAllocation& allocation) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const search::RoundReason reason : search::kRoundReasons)
    if (const int64_t rounds = allocation.rounds[static_cast<size_t>(reason)]; rounds > 0)
      add(fmt::format("{} {}", rounds, to_string(reason)));
  if (text.empty()) add("none");
  if (allocation.end != search::TaskEnd::kOpen) add(std::string(to_string(allocation.end)));
  return text;
}

void print_table(const engine::TunedModel& tuned) {
  const auto& tasks = tuned.report.final.tasks;
  std::vector<TaskSeconds> seconds;
  for (size_t t = 0; t < tasks.size(); ++t) seconds.push_back(seconds_of(tuned, t));
  const auto known = [&](size_t t) { return std::isfinite(seconds[t].tuned) ? seconds[t].tuned : 0; };
  double total = 0;
  for (size_t t = 0; t < tasks.size(); ++t) total += known(t);
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return known(a) > known(b); });
  const bool any_source = std::any_of(tuned.sources.begin(), tuned.sources.end(),
                                      [](const auto& source) { return source.has_value(); });
  std::vector<std::string> columns{"task",     "calls",  "share",  "untuned", "tuned",
                                   "speed-up", "trials", "failed", "search",  "rounds"};
  const bool by_cost = tuned.report.objective != "latency";
  if (by_cost) columns.insert(columns.end(), {"untuned cost", "cost"});
  if (any_source) columns.emplace_back("schedule of");
  Table table(columns);
  for (const size_t t : order) {
    const auto& task = tasks[t];
    const bool kept = tuned.kept[t] != 0;
    std::vector<std::string> row{task.name,
                                 fmt::format("{:.0f}", task.weight),
                                 total > 0 ? percent(known(t) / total) : "-",
                                 format_seconds(seconds[t].untuned / task.weight),
                                 kept ? "-" : format_seconds(seconds[t].tuned / task.weight),
                                 kept ? "kept" : engine::ratio_text(seconds[t].untuned / seconds[t].tuned),
                                 std::to_string(task.trials),
                                 std::to_string(task.failures),
                                 format_duration(tuned.report.allocation[t].seconds),
                                 rounds_text(tuned.report.allocation[t])};
    if (by_cost) {
      row.push_back(cost_text(task.default_cost));
      row.push_back(kept ? "-" : cost_text(task.best_cost));
    }
    if (any_source) row.push_back(tuned.sources[t] ? source_text(*tuned.sources[t]) : "");
    table.add(row);
  }
  print_lines(table.text());
  print_out("{}\n", tuned.in_model ? "Times are of one call during a run of the model; the untuned and the "
                                     "tuned model ran in turn."
                                   : "Times are of one call; each task was measured alone.");
  print_out("trials: schedules that were measured; failed: those of them that gave no valid time.\n");
  print_out(
      "search: time for measuring and proposing. rounds: first: each task that matters gets one; gain: the "
      "task promised the\nlargest gain for its time; random: the task was chosen at random; small: the task "
      "takes too little of the model's time\nfor more; exhausted: all of its schedules were measured.\n");
  if (by_cost)
    print_out("cost: {}, of one call; the schedule of the lowest cost is used.\n", tuned.report.objective);
  const auto kept = static_cast<size_t>(std::count(tuned.kept.begin(), tuned.kept.end(), char{1}));
  const char* better = by_cost ? "better" : "faster";
  if (kept > 0 && kept == tasks.size()) {
    print_out("No schedule made the model {}, so the compiled model runs the untuned ones.\n", better);
  } else if (kept > 0) {
    print_out("kept: no schedule was {}, so the compiled model runs the untuned one.\n", better);
  }
}

// Prints the speed-up of the whole model or, without one, the estimate.
void print_gain(const engine::TunedModel& tuned) {
  if (tuned.in_model) {
    const engine::Speedup& whole = tuned.in_model->whole;
    print_out("speed-up:       {}, end to end: untuned {}, tuned {}; {}\n", engine::ratio_text(whole.ratio()),
              format_seconds(whole.untuned_seconds), format_seconds(whole.tuned_seconds),
              engine::spread_text(whole));
    if (const std::string warning = engine::warning_of(whole); !warning.empty())
      print_out("warning: {}\n", warning);
  } else if (tuned.estimate.known()) {
    print_out(
        "estimate:       {}: untuned {}, tuned {}; the whole model was not run, so these are sums of the "
        "tasks' times\n",
        engine::ratio_text(tuned.estimate.ratio()), format_seconds(tuned.estimate.untuned_seconds),
        format_seconds(tuned.estimate.tuned_seconds));
  }
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
  print_out("{} trials in {}, {} of them failed; {} earlier records were found in {}\n", p.trials,
            format_duration(elapsed), p.failures, p.resumed, database);
  if (tuned.report.end == search::SearchEnd::kGain)
    print_out("The search ended because searching for as long again was expected to gain only {}.\n",
              percent(tuned.report.expected_gain));
  if (tuned.report.end == search::SearchEnd::kExhausted)
    print_out("The search ended because nothing was left to measure.\n");
  const auto tried = static_cast<size_t>(
      std::count_if(p.tasks.begin(), p.tasks.end(), [](const auto& task) { return task.trials > 1; }));
  if (tried < p.tasks.size()) {
    print_out(
        "{} of {} tasks were not searched: they take too little time, or the search did not reach them.\n",
        p.tasks.size() - tried, p.tasks.size());
  }
  if (const auto sums = alone_and_in_model(tuned); sums.in_model > 0 && sums.alone > 0) {
    print_out("kernels:        {} in a run of the model, {} where each was measured alone\n",
              format_seconds(sums.in_model), format_seconds(sums.alone));
  }
  print_gain(tuned);
  print_out("compiled model: {}\n", directory);
}

}  // namespace tensorsmith::tools
