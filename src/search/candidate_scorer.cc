#include "search/candidate_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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
// Most candidates among which a batch is chosen: those with the highest scores. If the scores did not need
// their features, these are computed just for the choice, for fewer candidates.
constexpr size_t kChosenFrom = 1024, kChosenFromScored = 256;

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

double DraftCorrection::variance_within() const {
  double scatter = 0;
  for (const Sums& sums : of_sketch_)
    if (sums.count > 0) scatter += std::max(sums.squares - sums.sum * sums.sum / sums.count, 0.0);
  return (kVariancePrior * kDraftSigma * kDraftSigma + scatter) / (kVariancePrior + all_.count);
}

double CandidateScorer::draft(const space::Candidate& candidate, double watts) const {
  const double draft = latency_draft(candidate);
  if (objective_.is_latency() || !uses_draft_ || !std::isfinite(draft)) return draft;
  return -log_cost(-draft, bytes_of(candidate), watts);
}

double CandidateScorer::log_cost(double log_seconds, double bytes, double watts) const {
  if (objective_.is_latency()) return log_seconds;
  const double seconds = std::exp(log_seconds);
  return objective_.log_cost({seconds, bytes, watts * seconds});
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
  return at == scored_.end() || !can_compare(at->second.inputs) ? nullptr : at->second.inputs;
}

bool CandidateScorer::can_compare(const std::shared_ptr<const ProgramInputs>& inputs) const {
  return inputs != nullptr && (!compared_inputs_.rows || inputs->rows.rows > 0);
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
    auto extractor = take_extractor(scoring_extractors_, inputs_);
    for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
      if (request.out_of_time && request.out_of_time()) break;
      out[k] = learn::Prediction();
      if (!std::isfinite(drafts[k])) continue;
      if (auto inputs = extractor->of(candidates[k]); inputs.ok()) made[k] = std::move(*inputs);
    }
    if (!all_at_once) ask(static_cast<size_t>(begin), static_cast<size_t>(end));
    give_back(scoring_extractors_, std::move(extractor));
  };
  pool.parallel_for(std::ssize(candidates), kPredictedTogether, work);
  if (all_at_once) ask(0, candidates.size());
  if (failed) return *failed;
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i]) scored_[candidates[i].hash()].inputs = std::move(made[i]);
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
  std::vector<float> drafts(candidates.size(), kUnbuildable);
  for (size_t i = 0; i < candidates.size(); ++i) drafts[i] = static_cast<float>(latency_draft(candidates[i]));
  std::vector<double> bytes(candidates.size());
  if (objective_.uses_memory())
    pool.parallel_for(std::ssize(candidates), kPredictedTogether, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) bytes[k] = bytes_of(candidates[k]);
    });
  Basis basis = basis_of(programs);
  for (size_t i = 0; i < drafts.size(); ++i)
    if (std::isfinite(drafts[i]))
      scored_[candidates[i].hash()].belief =
          belief(-static_cast<double>(drafts[i]), basis.draft_sigma, bytes[i], basis);
  const auto without_model = [&] {
    if (objective_.is_latency() || !uses_draft_) return drafts;
    std::vector<float> scores(drafts);
    for (size_t i = 0; i < scores.size(); ++i)
      if (std::isfinite(drafts[i]))
        scores[i] = static_cast<float>(-log_cost(-static_cast<double>(drafts[i]), bytes[i], basis.watts));
    return scores;
  };
  if (model == nullptr || !std::isfinite(basis.best_seconds)) return without_model();
  const Result<double> scale = model->ranks_only() ? scale_of(*model, programs) : 1.0;
  if (scale.ok() && *scale == 0) return without_model();
  const auto predictions =
      scale.ok() ? predict(candidates, drafts, request, pool) : Result<Predictions>(scale.error());
  if (!predictions.ok()) {
    model_error_ = predictions.error();
    return without_model();
  }
  basis.scale = *scale;
  basis.corrects_estimate = model->corrects_estimate();
  std::vector<float> scores(candidates.size(), kUnbuildable);
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto judged = judge(static_cast<double>(drafts[i]), (*predictions)[i], bytes[i], basis);
    if (!judged) continue;
    scores[i] = judged->score;
    scored_[candidates[i].hash()].belief = judged->belief;
  }
  return scores;
}

Belief CandidateScorer::belief(double log_seconds, double sigma, double bytes, const Basis& basis) const {
  const double believed_cost = log_cost(log_seconds, bytes, basis.watts);
  // A cost that does not depend on the latency is certain. One may also fall with the latency.
  return {believed_cost, std::abs(log_cost(log_seconds + sigma, bytes, basis.watts) - believed_cost)};
}

// A score is the cost of the task's best program / the candidate's, so that scores of different calls are
// comparable.
std::optional<CandidateScorer::Judgement> CandidateScorer::judge(
    double draft, const std::optional<learn::Prediction>& prediction, double bytes,
    const Basis& basis) const {
  const double best_log_seconds = std::log(basis.best_seconds);
  // Returns the ratio of the best program's cost to that of a program that is `speed` times as fast as it.
  const auto gain = [&](double speed) {
    if (objective_.is_latency()) return speed;
    return std::exp(basis.best_log_cost - log_cost(best_log_seconds - std::log(speed), bytes, basis.watts));
  };
  const double promised = basis.best_seconds * std::exp(draft);
  if (!prediction) {
    if (!std::isfinite(draft)) return std::nullopt;
    return Judgement{static_cast<float>(believed(gain(promised))),
                     belief(-draft, basis.draft_sigma, bytes, basis)};
  }
  const double predicted = basis.scale * prediction->ranked();
  if (!(predicted > 0) || !std::isfinite(predicted)) return std::nullopt;
  if (prediction->log_sigma > 0 || basis.corrects_estimate) {
    const double weight = model_weight(basis.draft_variance, prediction->log_sigma, basis.corrects_estimate);
    const double log_speed =
        weight * std::log(basis.best_seconds / predicted) + (1 - weight) * std::log(promised);
    // Errors have long tails, and large ones matter most for the choice of a batch.
    const double tail_sigma =
        prediction->log_sigma > 0 ? std::max(prediction->log_sigma, prediction->half95() / 2) : kDraftSigma;
    return Judgement{static_cast<float>(believed(gain(std::exp(log_speed)))),
                     belief(best_log_seconds - log_speed, tail_sigma, bytes, basis)};
  }
  // The model gives no deviation: its weight grows with the number of measured programs of the task.
  const double trust = basis.measured / (basis.measured + kTrustedSamples);
  const double score = trust * gain(basis.best_seconds / predicted) + (1 - trust) * believed(gain(promised));
  return Judgement{static_cast<float>(score), belief(trust * std::log(predicted) - (1 - trust) * draft,
                                                     basis.draft_sigma, bytes, basis)};
}

CandidateScorer::Basis CandidateScorer::basis_of(const MeasuredPrograms& programs) const {
  return {.best_seconds = programs.best_seconds(),
          .best_log_cost = programs.best_log_cost(),
          .watts = programs.watts(),
          .scale = 1,
          .draft_variance = correction_.variance(),
          .draft_sigma = std::sqrt(correction_.variance_within()),
          .measured = static_cast<double>(programs.rows().size())};
}

Result<std::vector<MeasuredBelief>> CandidateScorer::measured_beliefs(
    const ScoringRequest& request, const MeasuredPrograms& programs) const {
  std::vector<const TrainingRow*> designed, rows;
  std::vector<double> log_costs;
  for (const TrainingRow& row : programs.rows()) {
    if (!row.candidate) continue;
    designed.push_back(&row);
    log_costs.push_back(row.log_cost);
  }
  for (const size_t i : informative(log_costs)) rows.push_back(designed[i]);
  Basis basis = basis_of(programs);
  if (request.model != nullptr && request.model->ranks_only()) {
    TS_ASSIGN_OR_RETURN(basis.scale, scale_of(*request.model, programs));
  }
  const bool predicts = request.model != nullptr && basis.scale > 0;
  basis.corrects_estimate = predicts && request.model->corrects_estimate();
  const size_t together =
      predicts && !request.model->takes_large_batches() ? kPredictedTogether : rows.size();
  std::vector<MeasuredBelief> out;
  for (size_t begin = 0; begin < rows.size(); begin += together) {
    const std::span<const TrainingRow* const> part(rows.data() + begin,
                                                   std::min(together, rows.size() - begin));
    std::vector<learn::Prediction> predictions;
    if (predicts) {
      // The candidates have the model's beliefs, of which the estimate's errors say nothing.
      if (request.out_of_time && request.out_of_time()) break;
      std::vector<learn::ProgramQuery> queries;
      for (const TrainingRow* row : part) queries.push_back(row->inputs->query(task_.queried()));
      TS_ASSIGN_OR_RETURN(predictions, request.model->predict(queries));
    }
    for (size_t k = 0; k < part.size(); ++k) {
      const space::Candidate& candidate = *part[k]->candidate;
      const auto judged = judge(latency_draft(candidate),
                                predicts ? std::optional<learn::Prediction>(predictions[k]) : std::nullopt,
                                bytes_of(candidate), basis);
      // A record may be of a candidate that has no estimate.
      if (judged && std::isfinite(judged->belief.log_cost))
        out.push_back({{judged->belief, part[k]->inputs.get()}, part[k]->log_cost});
    }
  }
  return out;
}

void CandidateScorer::complete_inputs(std::span<const ScoredCandidate> candidates,
                                      std::span<const size_t> places, const ScoringRequest& request,
                                      ThreadPool& pool) {
  std::vector<std::shared_ptr<const ProgramInputs>> made(places.size());
  const auto work = [&](int64_t begin, int64_t end) {
    auto extractor = take_extractor(comparing_extractors_, compared_inputs_);
    for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
      if (request.out_of_time && request.out_of_time()) break;
      if (auto inputs = extractor->of(candidates[places[k]].candidate); inputs.ok())
        made[k] = std::move(*inputs);
    }
    give_back(comparing_extractors_, std::move(extractor));
  };
  pool.parallel_for(std::ssize(places), kPredictedTogether, work);
  for (size_t k = 0; k < places.size(); ++k)
    scored_[candidates[places[k]].candidate.hash()].inputs = std::move(made[k]);
}

std::vector<size_t> CandidateScorer::choose(std::span<const ScoredCandidate> candidates, size_t count,
                                            const ScoringRequest& request, const MeasuredPrograms& programs,
                                            ThreadPool& pool) {
  if (candidates.empty() || count == 0) return {};
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return candidates[a].score > candidates[b].score; });
  if (!knows_features() || programs.rows().empty()) {
    order.resize(std::min(order.size(), count));
    return order;
  }
  const bool scores_suffice = request.model != nullptr && !inputs_.only_parts();
  order.resize(std::min(order.size(), std::max(count, scores_suffice ? kChosenFrom : kChosenFromScored)));
  std::vector<size_t> incomplete;
  for (const size_t i : order)
    if (!can_compare(scored_[candidates[i].candidate.hash()].inputs)) incomplete.push_back(i);
  complete_inputs(candidates, incomplete, request, pool);
  std::erase_if(order, [&](size_t i) {
    const Scored& scored = scored_[candidates[i].candidate.hash()];
    return !can_compare(scored.inputs) || !std::isfinite(scored.belief.log_cost);
  });
  if (order.empty()) return {};
  std::vector<BelievedProgram> believed_programs;
  for (const size_t i : order) {
    const Scored& scored = scored_[candidates[i].candidate.hash()];
    believed_programs.push_back({scored.belief, scored.inputs.get()});
  }
  auto measured = measured_beliefs(request, programs);
  if (!measured.ok()) {
    model_error_ = measured.error();
    order.resize(std::min(order.size(), count));
    return order;
  }
  std::vector<size_t> chosen = choose_batch(believed_programs, *measured, count);
  for (size_t& place : chosen) place = order[place];
  return chosen;
}

std::unique_ptr<InputsOfCandidates> CandidateScorer::take_extractor(Extractors& idle,
                                                                    const learn::ModelInputs& inputs) {
  const std::lock_guard lock(mutex_);
  if (idle.empty()) return task_.make_extractor(inputs);
  auto taken = std::move(idle.back());
  idle.pop_back();
  return taken;
}

void CandidateScorer::give_back(Extractors& idle, std::unique_ptr<InputsOfCandidates> extractor) {
  const std::lock_guard lock(mutex_);
  idle.push_back(std::move(extractor));
}

Result<std::shared_ptr<const ProgramInputs>> CandidateScorer::make_inputs(const Proposal& proposal) {
  if (!proposal.candidate)
    return inputs_of(task_.queried(), task_.workload(), proposal.trace, compared_inputs_);
  auto extractor = take_extractor(comparing_extractors_, compared_inputs_);
  auto made = extractor->of(*proposal.candidate);
  give_back(comparing_extractors_, std::move(extractor));
  return made;
}

}  // namespace tensorsmith::search
