#include "engine/report/report_importance.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/thread_pool.h"
#include "engine/report/decision_importance.h"
#include "ir/text.h"
#include "space/design_space.h"

namespace tensorsmith::engine {
namespace {

constexpr size_t kFewestJudged = 12;
constexpr int kShuffles = 200;
constexpr uint64_t kShuffleSeed = 20261128;
constexpr double kRounding = 1e-9;  // tolerance for shares: shuffles may reach exactly the share
constexpr size_t kMostValues = 12;  // most values listed per decision

struct JudgedProgram {
  const record::DesignPoint* point = nullptr;
  double seconds = 0;
};

// Returns the programs that ran and that the space still builds from their decisions.
std::vector<JudgedProgram> judged_programs(const ReportTask& task, const space::DesignSpace& space) {
  std::vector<JudgedProgram> programs;
  for (const ReportRecord& record : task.records) {
    if (record.outcome != record::Outcome::kOk || !record.plausible || !record.point) continue;
    const space::Candidate candidate{record.point->sketch, record.point->decisions};
    if (!space.check(candidate).ok()) continue;
    const auto trace = space.to_trace(candidate);
    if (trace.ok() && sched::print(*trace) == record.trace)
      programs.push_back({&*record.point, record.seconds});
  }
  return programs;
}

// Returns the design space, with or without the optional algorithms, that agrees with more of the
// records.
std::pair<std::optional<space::DesignSpace>, std::vector<JudgedProgram>> matching_space(
    const ReportTask& task, const ReportSetup& setup) {
  std::pair<std::optional<space::DesignSpace>, std::vector<JudgedProgram>> best;
  const auto workload = ir::parse_workload(task.text);
  if (!workload.ok() || !setup.device) return best;
  for (const bool winograd : {true, false}) {
    auto space = space::DesignSpace::build(*workload, *setup.device, {.winograd = winograd});
    if (!space.ok()) continue;
    auto programs = judged_programs(task, *space);
    if (programs.size() <= best.second.size()) continue;
    best = {std::move(space).value(), std::move(programs)};
    if (best.second.size() == task.records.size()) break;
  }
  return best;
}

struct NamedColumn {
  ReportDecision decision;
  DecisionColumn column;
};

// Makes a column for the structure and for each number of each slot; slots with the same name are
// the same decision in all structures.
std::vector<NamedColumn> columns_of(const std::vector<JudgedProgram>& programs,
                                    const space::DesignSpace& space) {
  std::vector<NamedColumn> columns(1);
  columns[0].decision.name = columns[0].decision.role = "structure";
  std::map<std::string, size_t> places;
  for (size_t p = 0; p < programs.size(); ++p) {
    const record::DesignPoint& point = *programs[p].point;
    columns[0].column.group.push_back(0);
    columns[0].column.value.push_back(point.sketch);
    size_t at = 0;
    for (const space::DecisionSlot& slot : space.slots(point.sketch)) {
      const size_t width = slot.kind == space::DecisionKind::kTileLengths ? slot.parts : 1;
      for (size_t k = 0; k < width; ++k, ++at) {
        std::string name = slot.name;
        if (width > 1) name += " " + std::to_string(k + 1) + "/" + std::to_string(width);
        const auto [place, fresh] = places.emplace(name, columns.size());
        if (fresh) {
          NamedColumn& added = columns.emplace_back();
          added.decision.name = name;
          added.decision.role = space::to_string(slot.role);
          added.column.group.assign(programs.size(), -1);
          added.column.value.assign(programs.size(), 0);
        }
        DecisionColumn& column = columns[place->second].column;
        column.group[p] = point.sketch;
        column.value[p] = point.decisions[at];
      }
    }
  }
  return columns;
}

std::vector<ReportDecisionValue> values_of(const std::vector<JudgedProgram>& programs,
                                           const NamedColumn& named) {
  std::map<int64_t, std::vector<double>> seconds;
  for (size_t p = 0; p < programs.size(); ++p)
    if (named.column.group[p] >= 0) seconds[named.column.value[p]].push_back(programs[p].seconds);
  std::vector<ReportDecisionValue> values;
  for (auto& [value, list] : seconds) {
    std::sort(list.begin(), list.end());
    values.push_back({value, static_cast<int64_t>(list.size()), list.front(), list[list.size() / 2]});
  }
  std::stable_sort(values.begin(), values.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  if (values.size() > kMostValues) values.resize(kMostValues);
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  return values;
}

// Whether the decision varies within a group of programs.
bool varies(const DecisionColumn& column) {
  std::map<int, int64_t> first;
  for (size_t p = 0; p < column.group.size(); ++p)
    if (column.group[p] >= 0 &&
        first.emplace(column.group[p], column.value[p]).first->second != column.value[p])
      return true;
  return false;
}

std::optional<ReportImportance> importance_of(const ReportTask& task, const ReportSetup& setup) {
  if (std::count_if(task.records.begin(), task.records.end(), [](const auto& r) {
        return r.point.has_value();
      }) < static_cast<std::ptrdiff_t>(kFewestJudged))
    return std::nullopt;
  const auto [space, programs] = matching_space(task, setup);
  if (programs.size() < kFewestJudged) return std::nullopt;
  std::vector<NamedColumn> named = columns_of(programs, *space);
  std::vector<double> logs;
  for (const JudgedProgram& program : programs) logs.push_back(std::log(program.seconds));
  std::vector<DecisionColumn> columns;
  for (const NamedColumn& one : named) columns.push_back(one.column);
  const auto explained = explained_spread(logs, columns, kShuffles, kShuffleSeed);
  ReportImportance importance;
  importance.programs = programs.size();
  for (size_t c = 0; c < named.size(); ++c) {
    if (!varies(columns[c])) continue;
    ReportDecision& decision = named[c].decision;
    decision.share = explained[c].share;
    decision.chance = explained[c].chance;
    if (decision.share > decision.chance + kRounding) decision.values = values_of(programs, named[c]);
    importance.decisions.push_back(std::move(decision));
  }
  std::stable_sort(importance.decisions.begin(), importance.decisions.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  return importance;
}

}  // namespace

void add_importance(int threads, Report& report) {
  for_each_index(threads, report.tasks.size(), [&](size_t t) {
    report.tasks[t].importance = importance_of(report.tasks[t], report.setups[report.tasks[t].setup]);
  });
}

}  // namespace tensorsmith::engine
