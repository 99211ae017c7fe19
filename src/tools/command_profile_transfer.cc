// `profile transfer`: what profiles are worth for ranking programs of a workload that a model has not seen.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "learn/profile/transfer.h"
#include "measure/profile/simulate.h"
#include "measure/profile/time_kernel.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct TransferCommand {
  std::string database;
  std::vector<std::string> tasks;
  std::string profiler = measure::kSimulation;
  int64_t draws = 20, seeds = 3;
  bool mlp = false, json = false, quiet = false;
};

std::string_view to_string(learn::Learner learner) {
  return learner == learn::Learner::kMlp ? "mlp" : "xgboost";
}

// Only programs of tasks whose name begins with one of the words; none: all.
Status keep_tasks(learn::ProfiledPrograms& data, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  for (const std::string& name : names) {
    const bool known = std::any_of(data.tasks.begin(), data.tasks.end(),
                                   [&](const auto& task) { return task.name.starts_with(name); });
    if (!known) return Error{ErrorCode::kNotFound, "--task " + name, "no profiled task's name begins so"};
  }
  std::erase_if(data.programs, [&](const learn::ProfiledProgram& program) {
    return std::none_of(names.begin(), names.end(), [&](const std::string& name) {
      return data.tasks[program.task].name.starts_with(name);
    });
  });
  return {};
}

struct Mean {
  learn::RankScores sum;
  int rows = 0;
};

nlohmann::json to_json(const learn::ProfiledPrograms& data, const learn::TransferRow& row) {
  return {{"train", data.tasks[row.train].name},
          {"test", data.tasks[row.test].name},
          {"features", learn::to_string(row.features)},
          {"learner", to_string(row.learner)},
          {"top_half", row.mean.top_half},
          {"top_half_sd", row.top_half_sd},
          {"misranked", row.mean.misranked},
          {"top1_gap", row.mean.top1_gap},
          {"rmse", row.mean.rmse}};
}

Status transfer(const TransferCommand& command) {
  TS_ASSIGN_OR_RETURN(learn::ProfiledPrograms data,
                      learn::read_profiled_programs({command.database}, command.profiler, measure::kTiming));
  for (const std::string& problem : data.problems) warn(problem);
  TS_RETURN_IF_ERROR(keep_tasks(data, command.tasks));
  learn::TransferOptions options;
  options.draws = static_cast<int>(command.draws);
  options.seeds = static_cast<int>(command.seeds);
  if (command.mlp) options.learners = {learn::Learner::kMlp};
  const auto progress = [&](const learn::TransferRow& row) {
    if (!command.quiet)
      print_error("{} -> {}, {}: {:.1f} %\n", data.tasks[row.train].name, data.tasks[row.test].name,
                  learn::to_string(row.features), 100 * row.mean.top_half);
  };
  TS_ASSIGN_OR_RETURN(const auto rows, learn::compare_features(data, options, progress));
  std::map<std::pair<std::string, std::string>, Mean> means;
  nlohmann::json out = {{"programs", data.programs.size()}, {"pairs", nlohmann::json::array()}};
  Table pairs({"trained on", "tested on", "features", "top 32 of 64 %", "+- seeds", "misranked %",
               "top-1 gap %", "RMSE"});
  for (const learn::TransferRow& row : rows) {
    out["pairs"].push_back(to_json(data, row));
    pairs.add({data.tasks[row.train].name, data.tasks[row.test].name,
               std::string(learn::to_string(row.features)), fmt::format("{:.1f}", 100 * row.mean.top_half),
               fmt::format("{:.1f}", 100 * row.top_half_sd), fmt::format("{:.1f}", 100 * row.mean.misranked),
               fmt::format("{:.1f}", 100 * row.mean.top1_gap), fmt::format("{:.3f}", row.mean.rmse)});
    Mean& mean = means[{std::string(to_string(row.learner)), std::string(learn::to_string(row.features))}];
    ++mean.rows;
    mean.sum.top_half += row.mean.top_half;
    mean.sum.misranked += row.mean.misranked;
    mean.sum.top1_gap += row.mean.top1_gap;
    mean.sum.rmse += row.mean.rmse;
  }
  Table summary({"learner", "features", "pairs", "top 32 of 64 %", "misranked %", "top-1 gap %", "RMSE"});
  for (const auto& [names, mean] : means) {
    const double n = mean.rows;
    summary.add({names.first, names.second, std::to_string(mean.rows),
                 fmt::format("{:.1f}", 100 * mean.sum.top_half / n),
                 fmt::format("{:.1f}", 100 * mean.sum.misranked / n),
                 fmt::format("{:.1f}", 100 * mean.sum.top1_gap / n),
                 fmt::format("{:.3f}", mean.sum.rmse / n)});
    out["means"].push_back({{"learner", names.first},
                            {"features", names.second},
                            {"pairs", mean.rows},
                            {"top_half", mean.sum.top_half / n},
                            {"misranked", mean.sum.misranked / n},
                            {"top1_gap", mean.sum.top1_gap / n},
                            {"rmse", mean.sum.rmse / n}});
  }
  if (command.json) {
    print_json(out);
  } else {
    print_lines(pairs.text() + "\n" + summary.text());
  }
  return {};
}

}  // namespace

void add_profile_transfer_command(CLI::App& profile, int& exit_code) {
  auto o = std::make_shared<TransferCommand>();
  CLI::App* command = profile.add_subcommand(
      "transfer",
      "Rank a task's programs by models that were trained on another task: static features against profiles");
  command->add_option("database", o->database, "Record database whose programs were profiled")->required();
  command
      ->add_option("--task", o->tasks,
                   "Only tasks whose name begins so (repeatable); without it all that have 64 programs")
      ->allow_extra_args(false);
  command->add_option("--profiler", o->profiler, "Whose counters")->capture_default_str();
  add_whole(*command, "--draws", o->draws, 1, kMaxCount, "Sets of 64 programs of each pair of tasks");
  add_whole(*command, "--seeds", o->seeds, 1, 1000, "Trainings of each pair of tasks");
  command->add_flag("--mlp", o->mlp, "A small neural net in place of XGBoost");
  command->add_flag("--json", o->json, "Machine-readable report on standard output");
  command->add_flag("--quiet", o->quiet, "No progress on standard error");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return transfer(*o); }); });
}

}  // namespace tensorsmith::tools
