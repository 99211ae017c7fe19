#include "runtime/routine.h"

namespace tensorsmith::runtime {

const Routine* find_routine(std::string_view name) {
  for (const Routine* routine : {&kCopy, &kRefuse, &kScatterElements, &kScatterRows, &kPrefixScan, &kTopK})
    if (routine->name == name) return routine;
  return nullptr;
}

Result<RoutineDemands> demands_of(const RoutineCall& call) {
  const Routine* routine = find_routine(call.name);
  if (routine == nullptr)
    return Error{ErrorCode::kCorrupt, "routine '" + call.name + "'", "does not exist in this version"};
  auto demands = routine->demands(call.parameters);
  if (!demands.ok()) return Error{ErrorCode::kCorrupt, "routine '" + call.name + "'", demands.error().reason};
  return demands;
}

}  // namespace tensorsmith::runtime
