#include "tools/eval_profiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "lab/kinds/kinds.h"
#include "measure/profile/simulate.h"
#include "tools/console.h"
#include "tools/profiled_data.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

// Returns the profiler whose counters the model was trained on; the simulation for models that read
// none.
std::string profiler_of(const learn::ModelCard& card) {
  const auto parameters = parse_json<nlohmann::json>(card.parameters);
  const auto at = parameters.find("profiler");
  return at != parameters.end() && at->is_string() ? at->get<std::string>() : measure::kSimulation;
}

std::vector<std::string> row(std::vector<std::string> first, const std::vector<std::string>& scores) {
  first.insert(first.end(), scores.begin(), scores.end());
  return first;
}

}  // namespace

Status evaluate_profiled(const ProfiledEvaluation& evaluation) {
  TS_ASSIGN_OR_RETURN(const auto model,
                      lab::cost_model_kinds().load(evaluation.model, learn::QueryProfiles::kGiven));
  const learn::ModelCard& card = model->card();
  const std::string profiler = profiler_of(card);
  TS_ASSIGN_OR_RETURN(const learn::ProfiledPrograms data,
                      read_profiles(evaluation.databases, profiler, evaluation.tasks));
  const int64_t set_size = evaluation.sets.set_size;
  TS_ASSIGN_OR_RETURN(const auto rankings, learn::rank_tasks(data, *model, evaluation.sets));
  if (rankings.size() < data.tasks.size())
    warn(fmt::format(
        "{} of {} tasks are left out because they have fewer than {} profiled programs (--set-size)",
        data.tasks.size() - rankings.size(), data.tasks.size(), set_size));

  Table table(row({"task", "programs"}, rank_headings(set_size)));
  nlohmann::json out = {{"model", card.kind},
                        {"profiler", profiler},
                        {"set_size", set_size},
                        {"tasks", nlohmann::json::array()}};
  learn::RankScores mean;
  int64_t seen = 0, programs = 0;
  for (const learn::TaskRanking& ranking : rankings) {
    const learn::StoredWorkload& task = data.tasks[ranking.task];
    const bool known = std::binary_search(card.workloads.begin(), card.workloads.end(), task.key);
    seen += known ? 1 : 0;
    programs += ranking.programs;
    learn::add(mean, ranking.scores, 1.0 / rankings.size());
    table.add(row({task.name, std::to_string(ranking.programs)}, rank_cells(ranking.scores)));
    nlohmann::json entry = rank_json(ranking.scores);
    entry.update({{"task", task.name}, {"programs", ranking.programs}, {"seen", known}});
    out["tasks"].push_back(std::move(entry));
  }
  if (rankings.size() > 1)
    table.add(
        row({"mean of " + std::to_string(rankings.size()), std::to_string(programs)}, rank_cells(mean)));
  out["mean"] = rank_json(mean);
  out["seen_tasks"] = seen;
  if (seen > 0) warn(fmt::format("the model was trained on {} of these {} workloads", seen, rankings.size()));
  if (evaluation.json) {
    print_json(out);
  } else {
    print_lines(table.text());
  }
  return {};
}

}  // namespace tensorsmith::tools
