#include "engine/tune/candidate_times.h"

#include <cmath>
#include <limits>

#include "search/candidate_scorer.h"

namespace tensorsmith::engine {

CandidateTimes::CandidateTimes(const search::PreparedTask& task, const learn::CostModel* model)
    : task_(task),
      model_(model),
      inputs_(task.make_extractor(model != nullptr ? model->inputs() : learn::ModelInputs{})) {}

std::vector<double> CandidateTimes::log_seconds(std::span<const space::Candidate> candidates) {
  std::vector<double> result(candidates.size(), std::numeric_limits<double>::infinity());
  std::vector<std::shared_ptr<const search::ProgramInputs>> inputs;
  std::vector<learn::ProgramQuery> queries;
  std::vector<size_t> places;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double estimate = task_.space().estimate(candidates[i]);
    if (!std::isfinite(estimate) || estimate <= 0) continue;
    result[i] = std::log(estimate);
    if (model_ == nullptr) continue;
    auto made = inputs_->of(candidates[i]);
    if (!made.ok()) continue;
    inputs.push_back(std::move(*made));
    queries.push_back(inputs.back()->query(task_.queried()));
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
    // A model that gives no deviation counts as much as the estimate.
    const double sigma = prediction.log_sigma > 0 ? prediction.log_sigma : search::kDraftSigma;
    const double weight =
        search::model_weight(search::kDraftSigma * search::kDraftSigma, sigma, model_->corrects_estimate());
    double& mixed = result[places[q]];
    mixed = weight * std::log(seconds) + (1 - weight) * mixed;
  }
  return result;
}

}  // namespace tensorsmith::engine
