// Predicts the times of a task's candidates without measuring: combines a cost model and the
// analytic estimate, weighted by their precision.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "learn/cost_model.h"
#include "search/prepared_task.h"

namespace tensorsmith::engine {

// All arguments must outlive the object. Not thread-safe.
class CandidateTimes {
 public:
  // If `model` is null, only the estimate is used.
  CandidateTimes(const search::PreparedTask& task, const learn::CostModel* model);

  // Returns logarithms of expected seconds; +inf for candidates that cannot be built.
  std::vector<double> log_seconds(std::span<const space::Candidate> candidates);
  // The error if the cost model could not predict; the result is then the estimate alone.
  const std::optional<Error>& failed() const { return failed_; }

 private:
  const search::PreparedTask& task_;
  const learn::CostModel* model_;
  std::unique_ptr<search::InputsOfCandidates> inputs_;
  std::optional<Error> failed_;
};

}  // namespace tensorsmith::engine
