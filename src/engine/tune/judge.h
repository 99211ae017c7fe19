// Predicts the times of a task's programs without measuring: combines a cost model and the analytic
// estimate, weighted by their precision.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/tasks.h"
#include "learn/cost_model.h"
#include "search/pipeline.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::engine {

// All arguments must outlive the object. Not thread-safe.
class Judge {
 public:
  // If `model` is null, only the estimate is used.
  Judge(const graph::Task& task, const space::DesignSpace& space, const target::Device& device,
        const learn::CostModel* model);

  // Returns logarithms of expected seconds; +inf for candidates that cannot be built.
  std::vector<double> log_seconds(std::span<const space::Candidate> candidates);
  // The error if the cost model could not predict; the result is then the estimate alone.
  const std::optional<Error>& failed() const { return failed_; }

 private:
  const space::DesignSpace& space_;
  const learn::CostModel* model_;
  std::shared_ptr<const search::QueriedTask> task_;
  search::CandidateFeatures features_;
  std::optional<Error> failed_;
};

}  // namespace tensorsmith::engine
