#include "engine/tune/judge.h"

#include <cmath>
#include <limits>

#include "ir/text.h"
#include "learn/dataset/import.h"

namespace tensorsmith::engine {

namespace {

// Standard deviation of the log error of the estimate within a task.
constexpr double kEstimateSigma = 0.5;

}  // namespace

Judge::Judge(const graph::Task& task, const space::DesignSpace& space, const target::Device& device,
             const learn::CostModel* model)
    : space_(space),
      model_(model),
      task_(std::make_shared<const search::QueriedTask>(task.key, task.name, task.workload, task.flops,
                                                        device)),
      features_(space, task_, model != nullptr ? model->inputs() : learn::ModelInputs{}) {}

std::vector<double> Judge::log_seconds(std::span<const space::Candidate> candidates) {
  std::vector<double> result(candidates.size(), std::numeric_limits<double>::infinity());
  std::vector<std::shared_ptr<const search::ProgramInputs>> inputs;
  std::vector<learn::ProgramQuery> queries;
  std::vector<size_t> places;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double estimate = space_.estimate(candidates[i]);
    if (!std::isfinite(estimate) || estimate <= 0) continue;
    result[i] = std::log(estimate);
    if (model_ == nullptr) continue;
    auto made = features_.of(candidates[i]);
    if (!made.ok()) continue;
    inputs.push_back(std::move(*made));
    queries.push_back(inputs.back()->query(*task_));
    places.push_back(i);
  }
  if (queries.empty()) return result;
  const auto predicted = model_->predict(queries);
  if (!predicted.ok()) {
    failed_ = predicted.error();
    return result;
  }
  for (size_t q = 0; q < places.size(); ++q) {
    const learn::Prediction& prediction = (*predicted)[q];
    const double seconds = prediction.ranked();
    if (!(seconds > 0) || !std::isfinite(seconds)) continue;
    const double variance = kEstimateSigma * kEstimateSigma;
    const double sigma = prediction.log_sigma > 0 ? prediction.log_sigma : kEstimateSigma;
    const double weight = variance / (variance + sigma * sigma);
    double& mixed = result[places[q]];
    mixed = weight * std::log(seconds) + (1 - weight) * mixed;
  }
  return result;
}

}  // namespace tensorsmith::engine
