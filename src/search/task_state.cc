#include "search/task_state.h"

#include <algorithm>
#include <cmath>

#include "ir/text.h"
#include "learn/dataset/import.h"

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
// Prior for the standard deviation of log(measured / estimated seconds) within a task, and its
// weight in measurements.
constexpr double kDraftSigma = 0.5, kVariancePrior = 8;
// Number of candidates that a thread passes to the model at a time.
constexpr int64_t kPredictedTogether = 16;
// Most attempts to find unknown programs; each costs one proposal of the strategy.
constexpr int kMaxAttempts = 16;
}  // namespace

record::Candidate recorded(const Proposal& proposal) {
  record::Candidate candidate;
  candidate.reason = proposal.reason;
  candidate.strategy = proposal.strategy;
  if (proposal.candidate) candidate.point = to_point(*proposal.candidate);
  return candidate;
}

TaskState::TaskState(const TuneTask& task, std::shared_ptr<const SearchSpace> space,
                     const target::Device& device, const TaskOptions& options)
    : task_(&task),
      space_(std::move(space)),
      strategy_name_(options.strategy.name),
      uses_draft_(options.strategy.uses_draft),
      strategy_(options.strategy.make()),
      rng_(Hasher().add(options.seed).add(std::string_view(task.key)).digest64()),
      inputs_(options.inputs),
      queried_(std::make_shared<const QueriedTask>(task.key, task.name, task.workload,
                                                   ir::flop_count(task.workload), device)) {
  auto trace = space_->to_trace(space_->default_candidate());
  TS_CHECK(trace.ok(), "the default candidate of " + task.name + " is not legal");
  default_trace_ = std::move(*trace);
  default_text_ = sched::print(default_trace_);
  residuals_.resize(space_->num_sketches());
}

Proposal TaskState::default_proposal() const {
  Proposal proposal;
  proposal.trace = default_trace_;
  proposal.text = default_text_;
  proposal.reason = record::Reason::kDefault;
  // The default candidate was found by the draft, so a search without a draft does not start from
  // it.
  if (uses_draft_) proposal.candidate = space_->default_candidate();
  return proposal;
}

Proposal TaskState::plain_proposal() const {
  Proposal proposal;
  proposal.candidate = space_->plain_candidate();
  auto trace = space_->to_trace(*proposal.candidate);
  TS_CHECK(trace.ok(), "plain loops of " + task_->name + " are not legal");
  proposal.trace = std::move(*trace);
  proposal.text = sched::print(proposal.trace);
  proposal.reason = record::Reason::kFallback;
  return proposal;
}

double TaskState::draft(const space::Candidate& candidate) const {
  const double seconds = space_->estimate(candidate);
  if (!std::isfinite(seconds) || seconds <= 0) return -std::numeric_limits<double>::infinity();
  if (!uses_draft_) return 0;
  const double mean = all_residuals_.count > 0 ? all_residuals_.sum / all_residuals_.count : 0;
  const auto& own = residuals_[static_cast<size_t>(candidate.sketch)];
  const double correction = (own.sum + kResidualPrior * mean) / (own.count + kResidualPrior);
  return -std::log(seconds) - correction;
}

Result<TaskState::Predictions> TaskState::predict(std::span<const space::Candidate> candidates,
                                                  std::span<const float> drafts,
                                                  const ProposalRequest& request, ThreadPool& pool) {
  std::vector<std::shared_ptr<const ProgramInputs>> made(candidates.size());
  Predictions out(candidates.size());
  std::optional<Error> failed;
  pool.parallel_for(static_cast<int64_t>(candidates.size()), kPredictedTogether,
                    [&](int64_t begin, int64_t end) {
                      auto extractor = take_extractor();
                      std::vector<learn::ProgramQuery> queries;
                      std::vector<size_t> places;
                      for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
                        if (request.out_of_time && request.out_of_time()) break;
                        out[k] = learn::Prediction();
                        if (!std::isfinite(drafts[k])) continue;
                        auto inputs = extractor->of(candidates[k]);
                        if (!inputs.ok()) continue;
                        made[k] = std::move(*inputs);
                        queries.push_back(made[k]->query(*queried_));
                        places.push_back(k);
                      }
                      const auto predicted = request.model->predict(queries);
                      if (predicted.ok())
                        for (size_t q = 0; q < places.size(); ++q) out[places[q]] = (*predicted)[q];
                      {
                        const std::lock_guard lock(extractors_->mutex);
                        if (!predicted.ok()) failed = predicted.error();
                        judged_ += places.size();
                      }
                      give_back(std::move(extractor));
                    });
  if (failed) return *failed;
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i]) scored_[candidates[i].hash()] = std::move(made[i]);
  return out;
}

Result<double> TaskState::scale_of(const learn::CostModel& model) const {
  const Result* best = nullptr;
  for (const Result& result : results_)
    if (result.row > 0 && (best == nullptr || result.seconds < best->seconds)) best = &result;
  if (best == nullptr) return 0.0;
  const learn::MeasuredProgram measured = measured_program(best->row - 1);
  TS_ASSIGN_OR_RETURN(const auto predicted, model.predict(std::span(&measured.program, 1)));
  const double seconds = predicted.front().ranked();
  return seconds > 0 && std::isfinite(seconds) ? measured.seconds / seconds : 0.0;
}

std::vector<float> TaskState::score(std::span<const space::Candidate> candidates,
                                    const ProposalRequest& request, ThreadPool& pool) {
  const learn::CostModel* model = request.model;
  std::vector<float> drafts(candidates.size(), kUnbuildable);
  for (size_t i = 0; i < candidates.size(); ++i) drafts[i] = static_cast<float>(draft(candidates[i]));
  if (model == nullptr || !std::isfinite(best_seconds_)) return drafts;
  const tensorsmith::Result<double> scale = model->ranks_only() ? scale_of(*model) : 1.0;
  if (scale.ok() && *scale == 0) return drafts;
  const auto predictions = scale.ok() ? predict(candidates, drafts, request, pool)
                                      : tensorsmith::Result<Predictions>(scale.error());
  if (!predictions.ok()) {
    model_error_ = predictions.error();
    return drafts;
  }
  const double draft_variance = this->draft_variance();
  const double n = static_cast<double>(rows_.size());
  std::vector<float> scores(candidates.size(), kUnbuildable);
  // A score is the task's best seconds / the candidate's, so that scores of different calls are
  // comparable. A promise to be faster than the best so far is discounted.
  const auto believed = [](double speed) { return speed > 1 ? 1 + std::log(speed) : speed; };
  for (size_t i = 0; i < scores.size(); ++i) {
    const double promised = best_seconds_ * std::exp(static_cast<double>(drafts[i]));
    if (!(*predictions)[i]) {
      if (std::isfinite(drafts[i])) scores[i] = static_cast<float>(believed(promised));
      continue;
    }
    const learn::Prediction& prediction = *(*predictions)[i];
    const double predicted = *scale * prediction.ranked();
    if (!(predicted > 0) || !std::isfinite(predicted)) continue;
    if (prediction.log_sigma > 0) {
      // Both estimate the same logarithm, so they are weighted by their precisions.
      const double variance = prediction.log_sigma * prediction.log_sigma;
      const double weight = draft_variance / (draft_variance + variance);
      const double log_speed =
          weight * std::log(best_seconds_ / predicted) + (1 - weight) * std::log(promised);
      scores[i] = static_cast<float>(believed(std::exp(log_speed)));
    } else {
      // The model gives no deviation: its weight grows with the number of measured programs of the
      // task.
      const double trust = n / (n + kTrustedSamples);
      scores[i] = static_cast<float>(trust * best_seconds_ / predicted + (1 - trust) * believed(promised));
    }
  }
  return scores;
}

double TaskState::draft_variance() const {
  const auto& r = all_residuals_;
  const double mean = r.count > 0 ? r.sum / r.count : 0;
  const double scatter = std::max(r.squares - r.count * mean * mean, 0.0);
  return (kVariancePrior * kDraftSigma * kDraftSigma + scatter) / (kVariancePrior + r.count);
}

std::unique_ptr<InputsOfCandidates> TaskState::take_extractor() {
  const std::lock_guard lock(extractors_->mutex);
  auto& idle = extractors_->idle;
  if (idle.empty()) return space_->make_extractor(queried_, inputs_);
  auto taken = std::move(idle.back());
  idle.pop_back();
  return taken;
}

void TaskState::give_back(std::unique_ptr<InputsOfCandidates> extractor) {
  const std::lock_guard lock(extractors_->mutex);
  extractors_->idle.push_back(std::move(extractor));
}

const MeasuredCandidate* TaskState::best_candidate() const {
  const MeasuredCandidate* best = nullptr;
  for (const auto& m : measured_)
    if (std::isfinite(m.seconds) && (best == nullptr || m.seconds < best->seconds)) best = &m;
  return best;
}

std::vector<Proposal> TaskState::propose(const ProposalRequest& request, ThreadPool& pool) {
  const size_t count = request.count;
  StrategyView view;
  view.space = space_.get();
  view.draft = [this](const space::Candidate& c) { return draft(c); };
  view.score = [&](std::span<const space::Candidate> c) { return score(c, request, pool); };
  view.measured = measured_;
  view.known = [this](const space::Candidate& c) { return known_candidates_.count(c.hash()) > 0; };
  view.score_budget = request.score_budget;
  view.progress = request.progress;
  view.epsilon = request.epsilon;
  view.writer = task_->writer.get();
  writer_error_.reset();
  view.failed = [this](const Error& error) { writer_error_ = error; };

  std::vector<Proposal> result;
  std::unordered_set<std::string> taken;
  const auto take_candidate = [&](const ProposedCandidate& proposed, std::string_view strategy) {
    const space::Candidate& c = proposed.candidate;
    known_candidates_.insert(c.hash());
    Proposal proposal;
    auto trace = space_->to_trace(c);
    if (!trace.ok()) return;
    proposal.trace = std::move(*trace);
    if (const auto it = scored_.find(c.hash()); it != scored_.end()) proposal.inputs = it->second;
    proposal.text = sched::print(proposal.trace);
    if (known_traces_.count(proposal.text) > 0 || !taken.insert(proposal.text).second) return;
    proposal.reason = proposed.reason;
    proposal.strategy = strategy;
    proposal.candidate = c;
    result.push_back(std::move(proposal));
  };
  scored_.clear();
  for (const auto& c : request.wanted)
    if (result.size() < count && !view.known(c.candidate)) take_candidate(c, {});
  // Different candidates can give the same program; further attempts fill the gaps. Each attempt
  // adds its candidates to the known ones, so in a space with nothing new, a proposal is finally
  // empty.
  model_error_.reset();
  judged_ = 0;
  bool nothing_left = false;
  for (int attempt = 0; attempt < kMaxAttempts && result.size() < count; ++attempt) {
    scored_.clear();
    const auto candidates = strategy_->propose(view, count - result.size(), rng_);
    nothing_left = candidates.empty();
    if (nothing_left) break;
    for (const auto& c : candidates) take_candidate(c, strategy_name_);
  }
  scored_.clear();
  if (result.empty() && nothing_left) exhausted_ = true;
  return result;
}

tensorsmith::Result<std::shared_ptr<const ProgramInputs>> TaskState::make_inputs(const Proposal& proposal) {
  if (!proposal.candidate) return inputs_of(*queried_, space_->workload(), proposal.trace, inputs_);
  auto extractor = take_extractor();
  auto made = extractor->of(*proposal.candidate);
  give_back(std::move(extractor));
  return made;
}

void TaskState::count_failure(const record::MeasureResult& result) {
  ++failures_;
  if (failures_by_outcome_.empty()) first_failure_ = result.reason;
  ++failures_by_outcome_[result.outcome];
}

void TaskState::take(const Proposal& proposal, const record::MeasureResult& result, bool from_database) {
  known_traces_.insert(proposal.text);
  const bool is_default = proposal.text == default_text_;
  const double seconds = result.best_estimate();
  ++trials_;
  if (!result.ok()) count_failure(result);
  if (is_default) {
    default_known_ = true;
    default_seconds_ = seconds;
    default_result_ = result;
  }
  if (proposal.candidate) {
    known_candidates_.insert(proposal.candidate->hash());
    measured_.push_back({*proposal.candidate, seconds, proposal.reason});
    const double estimate = space_->estimate(*proposal.candidate);
    const double residual = result.ok() && estimate > 0 ? std::log(seconds / estimate) : kFailedResidual;
    for (auto* r : {&residuals_[static_cast<size_t>(proposal.candidate->sketch)], &all_residuals_}) {
      r->sum += residual;
      r->squares += residual * residual;
      r->count += 1;
    }
  }
  if (result.ok()) {
    results_.push_back({proposal.text, proposal.trace, seconds, is_default, !from_database,
                        proposal.candidate ? measured_.size() : 0, 0});
    best_seconds_ = std::min(best_seconds_, seconds);
  }
  auto inputs = proposal.inputs;
  if (!inputs) {
    auto made = make_inputs(proposal);
    if (!made.ok()) return;
    inputs = *made;
  }
  rows_.push_back({std::move(inputs), seconds});
  if (result.ok()) results_.back().row = rows_.size();
}

void TaskState::take_record(const record::Record& record) {
  if (known_trace(record.trace)) return;
  auto trace = sched::parse_trace(record.trace);
  if (!trace.ok()) return;
  Proposal proposal;
  proposal.trace = std::move(*trace);
  proposal.text = record.trace;
  if (proposal.text == default_text_) {
    proposal = default_proposal();
  } else if (record.candidate.point) {
    // The candidate is used only if it still gives this trace.
    auto candidate = from_point(*record.candidate.point);
    auto again = space_->to_trace(candidate);
    if (again.ok() && sched::print(*again) == proposal.text) proposal.candidate = std::move(candidate);
  }
  take(proposal, record.result, /*from_database=*/true);
}

void TaskState::finish_round() { history_.push_back(best_seconds_); }

std::vector<TaskState::Result> TaskState::fastest(size_t count) const {
  std::vector<Result> sorted;
  for (const bool verified : {true, false}) {
    for (const auto& result : results_)
      if (result.verified == verified) sorted.push_back(result);
    if (!sorted.empty()) break;
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Result& a, const Result& b) { return a.seconds < b.seconds; });
  if (sorted.size() > count) sorted.resize(count);
  return sorted;
}

std::vector<TaskState::Result> TaskState::doubtful() const {
  const Result *fastest = nullptr, *untuned = nullptr;
  for (const auto& result : results_) {
    if (fastest == nullptr || result.seconds < fastest->seconds) fastest = &result;
    if (result.is_default) untuned = &result;
  }
  std::vector<Result> list;
  if (untuned != nullptr && !untuned->verified) list.push_back(*untuned);
  if (fastest != nullptr && !fastest->verified && fastest != untuned) list.push_back(*fastest);
  return list;
}

void TaskState::verify(const std::string& text, const record::MeasureResult& result) {
  const auto at =
      std::find_if(results_.begin(), results_.end(), [&](const Result& r) { return r.text == text; });
  TS_CHECK(at != results_.end(), "a program was verified that was never measured");
  const double seconds = result.best_estimate();
  if (at->measured > 0) measured_[at->measured - 1].seconds = seconds;
  if (at->row > 0) rows_[at->row - 1].seconds = seconds;
  if (at->is_default) {
    default_seconds_ = seconds;
    default_result_ = result;
  }
  if (result.ok()) {
    at->seconds = seconds;
    at->verified = true;
  } else {
    count_failure(result);
    results_.erase(at);
  }
  best_seconds_ = std::numeric_limits<double>::infinity();
  for (const auto& r : results_) best_seconds_ = std::min(best_seconds_, r.seconds);
  if (!history_.empty()) history_.back() = best_seconds_;
}

void TaskState::drop_doubtful() {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& r : results_)
    if (r.verified) best = std::min(best, r.seconds);
  std::erase_if(results_, [&](const Result& r) { return !r.verified && r.seconds < best; });
  best_seconds_ = best;
  if (!history_.empty()) history_.back() = best_seconds_;
}

std::string TaskState::failure_counts() const {
  std::string text;
  for (const auto& [outcome, count] : failures_by_outcome_)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(to_string(outcome));
  return text + "; the first: " + first_failure_;
}

}  // namespace tensorsmith::search
