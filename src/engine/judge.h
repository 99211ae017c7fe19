// What is known of a task's programs without measuring: a cost model and the estimate, weighed by their precision.
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

// All arguments outlive it. For one thread.
class Judge {
 public:
  // model: null: the estimate alone judges.
  Judge(const graph::Task& task, const space::DesignSpace& space, const target::Device& device,
        const learn::CostModel* model);

  // Logarithms of expected seconds; +inf for what cannot be built.
  std::vector<double> log_seconds(std::span<const space::Candidate> candidates);
  // Why the cost model could not predict, if so; the estimate judged then.
  const std::optional<Error>& failed() const { return failed_; }

 private:
  const space::DesignSpace& space_;
  const learn::CostModel* model_;
  learn::StoredWorkload workload_;
  target::Device device_;
  search::CandidateFeatures features_;
  std::optional<Error> failed_;
};

}  // namespace tensorsmith::engine
