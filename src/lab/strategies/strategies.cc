#include "lab/strategies/strategies.h"

namespace tensorsmith::lab {

namespace {

// Returns the reason why `tune` does not offer the strategy; empty if it offers the strategy.
std::string instead_of(const search::StrategyKind& kind) {
  if (kind.only_seeds) return "is a command of its own: `tensorsmith transfer MODEL --from FILE`";
  if (kind.needs_writer)
    return "is for comparisons (`tensorsmith compare`); with --lm, a language model writes schedules for the "
           "search";
  return "";
}

Result<const search::StrategyKind*> find(std::string_view name, const std::string& offered) {
  for (const auto* kind : kStrategies)
    if (kind->name == name) return kind;
  return Error{ErrorCode::kInvalidArgument, "strategy",
               "'" + std::string(name) + "' is not one of " + offered};
}

}  // namespace

std::string strategy_names() {
  std::string names;
  for (const auto* kind : kStrategies) names += (names.empty() ? "" : ", ") + std::string(kind->name);
  return names;
}

std::string tuning_strategy_names() {
  std::string names;
  for (const auto* kind : kStrategies)
    if (instead_of(*kind).empty()) names += (names.empty() ? "" : ", ") + std::string(kind->name);
  return names;
}

Result<const search::StrategyKind*> find_strategy(std::string_view name) {
  return find(name, strategy_names());
}

Result<const search::StrategyKind*> find_tuning_strategy(std::string_view name) {
  TS_ASSIGN_OR_RETURN(const auto* kind, find(name, tuning_strategy_names()));
  const std::string reason = instead_of(*kind);
  if (reason.empty()) return kind;
  return Error{ErrorCode::kInvalidArgument, "--strategy " + std::string(name), reason};
}

}  // namespace tensorsmith::lab
