#include "search/candidate_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "record/disturbance.h"

namespace tensorsmith::search {

namespace {

constexpr float kUnbuildable = -std::numeric_limits<float>::infinity();
// The constants down to kVariancePrior are chosen, not fitted.
//
// For a model without log_sigma: number of measured programs of the task at which it counts as much
// as the draft.
constexpr double kTrustedSamples = 24;
// kResidualPrior: weight, in measurements, of the mean correction over all sketches in a sketch's
// correction of the estimate. kFailedResidual: log(measured / estimated seconds) assumed for a
// failed program.
constexpr double kResidualPrior = 2;
constexpr double kFailedResidual = 2;
// Weight of kDraftSigma in measurements.
constexpr double kVariancePrior = 8;
// Number of candidates that a thread passes to the model at a time.
constexpr int64_t kPredictedTogether = 16;

// Discounts the promise of a candidate to be faster than the best program so far. `speed`: best seconds /
// predicted seconds.
double believed(double speed) { return speed > 1 ? 1 + std::log(speed) : speed; }

}  // namespace

void DraftCorrection::add(int sketch, double estimated_seconds, const record::MeasureResult& result) {
  const double residual = result.ok() && estimated_seconds > 0
                              ? std::log(result.best_estimate() / estimated_seconds)
                              : kFailedResidual;
  const double weight = record::trust(result.disturbance);
  for (Sums* sums : {&of_sketch_[sketch], &all_}) {
    sums->sum += weight * residual;
    sums->squares += weight * residual * residual;
    sums->count += weight;
  }
}

double DraftCorrection::of(int sketch) const {
  const double mean = all_.count > 0 ? all_.sum / all_.count : 0;
  const Sums& own = of_sketch_[sketch];
  return (own.sum + kResidualPrior * mean) / (own.count + kResidualPrior);
}

double DraftCorrection::variance() const {
  const double mean = all_.count > 0 ? all_.sum / all_.count : 0;
  const double scatter = std::max(all_.squares - all_.count * mean * mean, 0.0);
  return (kVariancePrior * kDraftSigma * kDraftSigma + scatter) / (kVariancePrior + all_.count);
}

double CandidateScorer::draft(const space::Candidate& candidate, double watts) const {
  const double draft = latency_draft(candidate);
  if (objective_.is_latency() || !uses_draft_ || !std::isfinite(draft)) return draft;
  const double seconds = std::exp(-draft);
  return -objective_.log_cost({seconds, bytes_of(candidate), watts * seconds});
}

double CandidateScorer::bytes_of(const space::Candidate& candidate) const {
  if (!objective_.uses_memory()) return 0;
  const auto bytes = task_.space().temporary_bytes(candidate, task_.device());
  return bytes.ok() ? static_cast<double>(*bytes) : std::numeric_limits<double>::infinity();
}

double CandidateScorer::latency_draft(const space::Candidate& candidate) const {
  const double seconds = task_.space().estimate(candidate);
  if (!std::isfinite(seconds) || seconds <= 0) return -std::numeric_limits<double>::infinity();
  if (!uses_draft_) return 0;
  return -std::log(seconds) - correction_.of(candidate.sketch);
}

void CandidateScorer::take(const space::Candidate& candidate, const record::MeasureResult& result) {
  correction_.add(candidate.sketch, task_.space().estimate(candidate), result);
}

void CandidateScorer::begin_proposal() {
  scored_.clear();
  model_error_.reset();
  judged_ = 0;
}

std::shared_ptr<const ProgramInputs> CandidateScorer::inputs_of_scored(
    const space::Candidate& candidate) const {
  const auto at = scored_.find(candidate.hash());
  return at == scored_.end() ? nullptr : at->second;
}

Result<CandidateScorer::Predictions> CandidateScorer::predict(std::span<const space::Candidate> candidates,
                                                              std::span<const float> drafts,
                                                              const ScoringRequest& request,
                                                              ThreadPool& pool) {
  std::vector<std::shared_ptr<const ProgramInputs>> made(candidates.size());
  Predictions out(candidates.size());
  std::optional<Error> failed;
  const bool all_at_once = request.model->takes_large_batches();
  // Predicts the candidates with inputs in [begin, end).
  const auto ask = [&](size_t begin, size_t end) {
    std::vector<learn::ProgramQuery> queries;
    std::vector<size_t> places;
    for (size_t k = begin; k < end; ++k) {
      if (made[k] == nullptr) continue;
      queries.push_back(made[k]->query(task_.queried()));
      places.push_back(k);
    }
    const auto predicted = request.model->predict(queries);
    if (predicted.ok())
      for (size_t q = 0; q < places.size(); ++q) out[places[q]] = (*predicted)[q];
    const std::lock_guard lock(mutex_);
    if (!predicted.ok()) failed = predicted.error();
    judged_ += places.size();
  };
  const auto work = [&](int64_t begin, int64_t end) {
    auto extractor = take_extractor();
    for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
      if (request.out_of_time && request.out_of_time()) break;
      out[k] = learn::Prediction();
      if (!std::isfinite(drafts[k])) continue;
      if (auto inputs = extractor->of(candidates[k]); inputs.ok()) made[k] = std::move(*inputs);
    }
    if (!all_at_once) ask(static_cast<size_t>(begin), static_cast<size_t>(end));
    give_back(std::move(extractor));
  };
  pool.parallel_for(std::ssize(candidates), kPredictedTogether, work);
  if (all_at_once) ask(0, candidates.size());
  if (failed) return *failed;
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i]) scored_[candidates[i].hash()] = std::move(made[i]);
  return out;
}

Result<double> CandidateScorer::scale_of(const learn::CostModel& model,
                                         const MeasuredPrograms& programs) const {
  const RunProgram* best = programs.fastest_with_inputs();
  if (best == nullptr) return 0.0;
  const TrainingRow& row = programs.rows()[best->row - 1];
  const learn::ProgramQuery query = row.inputs->query(task_.queried());
  TS_ASSIGN_OR_RETURN(const auto predicted, model.predict(std::span(&query, 1)));
  const double seconds = predicted.front().ranked();
  return seconds > 0 && std::isfinite(seconds) ? row.seconds / seconds : 0.0;
}

std::vector<float> CandidateScorer::score(std::span<const space::Candidate> candidates,
                                          const ScoringRequest& request, const MeasuredPrograms& programs,
                                          ThreadPool& pool) {
  const learn::CostModel* model = request.model;
  const double best_seconds = programs.best_seconds(), watts = programs.watts();
  std::vector<float> drafts(candidates.size(), kUnbuildable);
  for (size_t i = 0; i < candidates.size(); ++i) drafts[i] = static_cast<float>(latency_draft(candidates[i]));
  const auto without_model = [&] {
    if (objective_.is_latency()) return drafts;
    std::vector<float> scores;
    for (const auto& candidate : candidates) scores.push_back(static_cast<float>(draft(candidate, watts)));
    return scores;
  };
  if (model == nullptr || !std::isfinite(best_seconds)) return without_model();
  const Result<double> scale = model->ranks_only() ? scale_of(*model, programs) : 1.0;
  if (scale.ok() && *scale == 0) return without_model();
  const auto predictions =
      scale.ok() ? predict(candidates, drafts, request, pool) : Result<Predictions>(scale.error());
  if (!predictions.ok()) {
    model_error_ = predictions.error();
    return without_model();
  }
  std::vector<double> bytes(candidates.size());
  if (objective_.uses_memory())
    pool.parallel_for(std::ssize(candidates), kPredictedTogether, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) bytes[k] = bytes_of(candidates[k]);
    });
  // Returns the ratio of the best program's cost to that of a candidate that is `speed` times as fast as it.
  const auto gain = [&](size_t i, double speed) {
    if (objective_.is_latency()) return speed;
    const double seconds = best_seconds / speed;
    return std::exp(programs.best_log_cost() - objective_.log_cost({seconds, bytes[i], watts * seconds}));
  };
  const double draft_variance = correction_.variance();
  const double n = programs.rows().size();
  std::vector<float> scores(candidates.size(), kUnbuildable);
  // A score is the cost of the task's best program / the candidate's, so that scores of different calls
  // are comparable.
  for (size_t i = 0; i < scores.size(); ++i) {
    const double promised = best_seconds * std::exp(static_cast<double>(drafts[i]));
    if (!(*predictions)[i]) {
      if (std::isfinite(drafts[i])) scores[i] = static_cast<float>(believed(gain(i, promised)));
      continue;
    }
    const learn::Prediction& prediction = *(*predictions)[i];
    const double predicted = *scale * prediction.ranked();
    if (!(predicted > 0) || !std::isfinite(predicted)) continue;
    if (prediction.log_sigma > 0) {
      const double weight = model_weight(draft_variance, prediction.log_sigma);
      const double log_speed =
          weight * std::log(best_seconds / predicted) + (1 - weight) * std::log(promised);
      scores[i] = static_cast<float>(believed(gain(i, std::exp(log_speed))));
    } else {
      // The model gives no deviation: its weight grows with the number of measured programs of the
      // task.
      const double trust = n / (n + kTrustedSamples);
      scores[i] = static_cast<float>(trust * gain(i, best_seconds / predicted) +
                                     (1 - trust) * believed(gain(i, promised)));
    }
  }
  return scores;
}

std::unique_ptr<InputsOfCandidates> CandidateScorer::take_extractor() {
  const std::lock_guard lock(mutex_);
  if (idle_extractors_.empty()) return task_.make_extractor(inputs_);
  auto taken = std::move(idle_extractors_.back());
  idle_extractors_.pop_back();
  return taken;
}

void CandidateScorer::give_back(std::unique_ptr<InputsOfCandidates> extractor) {
  const std::lock_guard lock(mutex_);
  idle_extractors_.push_back(std::move(extractor));
}

Result<std::shared_ptr<const ProgramInputs>> CandidateScorer::make_inputs(const Proposal& proposal) {
  if (!proposal.candidate) return inputs_of(task_.queried(), task_.workload(), proposal.trace, inputs_);
  auto extractor = take_extractor();
  auto made = extractor->of(*proposal.candidate);
  give_back(std::move(extractor));
  return made;
}

}  // namespace tensorsmith::search
