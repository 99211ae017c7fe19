#include "search/simulation.h"

#include "ir/structural.h"

namespace tensorsmith::search {

Result<std::vector<record::MeasureResult>> ReplayMeasurer::measure(
    const ir::Workload& workload, std::span<const measure::MeasureRequest> candidates,
    double /*best_seconds_so_far*/, const Done& done) {
  const auto space = spaces_.find(ir::structural_key(workload));
  if (space == spaces_.end()) return Error{ErrorCode::kNotFound, "", "there are no records of the task"};
  std::vector<record::MeasureResult> results;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const record::MeasureResult* result = space->second->result_of(candidates[i].trace);
    if (result == nullptr) return Error{ErrorCode::kNotFound, "", "a program was not recorded"};
    clock_.advance(kSecondsPerTrial);
    ++measured_;
    results.push_back(*result);
    if (!done(i, results.back())) break;
  }
  return results;
}

}  // namespace tensorsmith::search
