// `profile transfer`: evaluates how much profiles help to rank programs of a workload that a model
// has not seen.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "learn/profile/transfer.h"
#include "measure/profile/simulate.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/profiled_data.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct TransferCommand {
  std::string database;
  std::vector<std::string> tasks;
  std::string profiler = measure::kSimulation;
  learn::RankSetOptions sets;
  int64_t seeds = 3;
  bool mlp = false, json = false, quiet = false;
};

nlohmann::json to_json(const learn::ProfiledPrograms& data, const learn::TransferRow& row) {
  nlohmann::json out = rank_json(row.mean);
  out.update({{"train", data.tasks[row.train].name},
              {"test", data.tasks[row.test].name},
              {"features", learn::to_string(row.features)},
              {"learner", learn::to_string(row.learner)},
              {"top_half_sd", row.top_half_sd}});
  return out;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Status transfer(const TransferCommand& command) {
  TS_ASSIGN_OR_RETURN(const learn::ProfiledPrograms data,
                      read_profiles({command.database}, command.profiler, command.tasks));
  learn::TransferOptions options;
  options.sets = command.sets;
  options.seeds = command.seeds;
  if (command.mlp) options.learners = {learn::Learner::kMlp};
  const auto progress = [&](const learn::TransferRow& row) {
    if (!command.quiet)
      print_error("{} -> {}, {}: {:.1f} %\n", data.tasks[row.train].name, data.tasks[row.test].name,
                  learn::to_string(row.features), 100 * row.mean.top_half);
  };
  TS_ASSIGN_OR_RETURN(const auto rows, learn::compare_features(data, options, progress));
  std::map<std::pair<std::string, std::string>, std::vector<learn::RankScores>> groups;
  nlohmann::json out = {{"programs", data.programs.size()}, {"pairs", nlohmann::json::array()}};
  const std::vector<std::string> headings = rank_headings(options.sets.set_size);
  Table pairs(joined({"trained on", "tested on", "features", "std. dev. over seeds"}, headings));
  for (const learn::TransferRow& row : rows) {
    out["pairs"].push_back(to_json(data, row));
    pairs.add(
        joined({data.tasks[row.train].name, data.tasks[row.test].name,
                std::string(learn::to_string(row.features)), fmt::format("{:.1f}", 100 * row.top_half_sd)},
               rank_cells(row.mean)));
    groups[{std::string(learn::to_string(row.learner)), std::string(learn::to_string(row.features))}]
        .push_back(row.mean);
  }
  Table summary(joined({"learner", "features", "pairs"}, headings));
  for (const auto& [names, scores] : groups) {
    learn::RankScores mean;
    for (const auto& one : scores) learn::add(mean, one, 1.0 / scores.size());
    summary.add(joined({names.first, names.second, std::to_string(scores.size())}, rank_cells(mean)));
    nlohmann::json entry = rank_json(mean);
    entry.update({{"learner", names.first}, {"features", names.second}, {"pairs", scores.size()}});
    out["means"].push_back(std::move(entry));
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
      "Train models on one task and rank the programs of another, to compare static features with profiles");
  command->add_option("database", o->database, "Record database with profiled programs")->required();
  command->add_option("--task", o->tasks, "Use only tasks whose name begins with this text (repeatable)")
      ->allow_extra_args(false);
  command
      ->add_option("--profiler", o->profiler, "Profiler whose counters are used (see `tensorsmith profile`)")
      ->capture_default_str();
  add_set_options(*command, o->sets);
  add_whole(*command, "--seeds", o->seeds, 1, 1000,
            "Number of trainings for each pair of tasks, each with another seed");
  command->add_flag("--mlp", o->mlp, "Train a small neural network instead of XGBoost");
  command->add_flag("--json", o->json, "Print the result as JSON on standard output");
  command->add_flag("--quiet", o->quiet, "Show no progress on standard error");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return transfer(*o); }); });
}

}  // namespace tensorsmith::tools
