#include "search/strategy.h"

#include "search/strategies.h"

namespace tensorsmith::search {

std::string strategy_names() {
  std::string names;
  for (const auto& kind : kStrategies) names += (names.empty() ? "" : ", ") + std::string(kind.name);
  return names;
}

Result<const StrategyKind*> find_strategy(std::string_view name) {
  for (const auto& kind : kStrategies)
    if (kind.name == name) return &kind;
  return Error{ErrorCode::kInvalidArgument, "strategy",
               "'" + std::string(name) + "' is not one of " + strategy_names()};
}

}  // namespace tensorsmith::search
