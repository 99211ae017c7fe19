#include "search/task_state.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::search {

namespace {

constexpr float kUnbuildable = -std::numeric_limits<float>::infinity();
// With this many measured programs of a task its model counts as much as the draft.
constexpr double kTrustedSamples = 24;
// Attempts to find programs that are not known yet; each costs one proposal of the strategy.
constexpr int kMaxAttempts = 16;

// Mean 0, variance 1 over the finite ones.
void standardize(std::vector<float>& values) {
  double sum = 0, squares = 0, n = 0;
  for (float v : values) {
    if (!std::isfinite(v)) continue;
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
    n += 1;
  }
  if (n == 0) return;
  const double mean = sum / n;
  const double deviation = std::sqrt(std::max(squares / n - mean * mean, 0.0));
  for (float& v : values)
    if (std::isfinite(v))
      v = deviation > 1e-12 ? static_cast<float>((static_cast<double>(v) - mean) / deviation) : 0.0F;
}

}  // namespace

TaskState::TaskState(const TuneTask& task, space::DesignSpace space, StrategyKind strategy, uint64_t seed,
                     feature::PerStoreOptions features)
    : task_(&task),
      space_(std::move(space)),
      strategy_(make_strategy(strategy)),
      rng_(Hasher().add(seed).add(std::string_view(task.key)).digest64()),
      feature_options_(features) {
  auto trace = space_.to_trace(space_.default_candidate());
  TS_CHECK(trace.ok(), "the default candidate of " + task.name + " is not legal");
  default_trace_ = std::move(*trace);
  default_text_ = sched::print(default_trace_);
}

Proposal TaskState::default_proposal() const {
  Proposal proposal;
  proposal.trace = default_trace_;
  proposal.text = default_text_;
  proposal.origin = "default";
  proposal.candidate = space_.default_candidate();
  return proposal;
}

Proposal TaskState::plain_proposal() const {
  Proposal proposal;
  proposal.candidate = space::Candidate{static_cast<int>(space_.num_sketches()) - 1, {}};
  auto trace = space_.to_trace(*proposal.candidate);
  TS_CHECK(trace.ok(), "plain loops of " + task_->name + " are not legal");
  proposal.trace = std::move(*trace);
  proposal.text = sched::print(proposal.trace);
  proposal.origin = "search:" + encode(*proposal.candidate);
  return proposal;
}

std::vector<float> TaskState::score(std::span<const space::Candidate> candidates,
                                    const learn::CostModel* model, ThreadPool& pool) {
  std::vector<float> draft(candidates.size(), kUnbuildable);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double seconds = space_.estimate(candidates[i]);
    if (std::isfinite(seconds) && seconds > 0) draft[i] = static_cast<float>(-std::log(seconds));
  }
  if (model == nullptr) return draft;
  std::vector<std::optional<ProgramSample>> made(candidates.size());
  pool.parallel_for(static_cast<int64_t>(candidates.size()), 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto k = static_cast<size_t>(i);
      if (!std::isfinite(draft[k])) continue;
      if (auto sample = make_sample(space_, candidates[k], feature_options_); sample.ok())
        made[k] = std::move(*sample);
    }
  });
  std::vector<learn::Sample> samples;
  std::vector<size_t> owner;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i]) {
      draft[i] = kUnbuildable;
      continue;
    }
    samples.push_back({made[i]->features.get()});
    owner.push_back(i);
  }
  const auto predicted = model->predict(samples);
  std::vector<float> scores(candidates.size(), kUnbuildable);
  for (size_t j = 0; j < owner.size(); ++j) scores[owner[j]] = predicted[j];
  // Draft and model are on different scales; the more of this task the model has seen, the more it counts.
  standardize(scores);
  standardize(draft);
  const double n = static_cast<double>(rows_.size());
  const auto trust = static_cast<float>(n / (n + kTrustedSamples));
  for (size_t i = 0; i < scores.size(); ++i)
    if (std::isfinite(scores[i])) scores[i] = trust * scores[i] + (1 - trust) * draft[i];
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i]) samples_[candidates[i].hash()] = std::move(*made[i]);
  return scores;
}

const MeasuredCandidate* TaskState::best_candidate() const {
  const MeasuredCandidate* best = nullptr;
  for (const auto& m : measured_)
    if (std::isfinite(m.seconds) && (best == nullptr || m.seconds < best->seconds)) best = &m;
  return best;
}

std::vector<Proposal> TaskState::propose(size_t count, std::span<const space::Candidate> wanted,
                                         const learn::CostModel* model, size_t score_budget,
                                         ThreadPool& pool) {
  StrategyView view;
  view.space = &space_;
  view.draft = [this](const space::Candidate& c) { return -std::log(space_.estimate(c)); };
  view.score = [&](std::span<const space::Candidate> c) { return score(c, model, pool); };
  view.measured = measured_;
  view.known = [this](const space::Candidate& c) { return known_candidates_.count(c.hash()) > 0; };
  view.score_budget = score_budget;

  std::vector<Proposal> result;
  std::unordered_set<std::string> taken;
  const auto take_candidate = [&](const space::Candidate& c) {
    known_candidates_.insert(c.hash());
    Proposal proposal;
    if (const auto it = samples_.find(c.hash()); it != samples_.end()) {
      proposal.trace = it->second.trace;
      proposal.features = it->second.features;
    } else {
      auto trace = space_.to_trace(c);
      if (!trace.ok()) return;
      proposal.trace = std::move(*trace);
    }
    proposal.text = sched::print(proposal.trace);
    if (known_traces_.count(proposal.text) > 0 || !taken.insert(proposal.text).second) return;
    proposal.origin = "search:" + encode(c);
    proposal.candidate = c;
    result.push_back(std::move(proposal));
  };
  samples_.clear();
  for (const auto& c : wanted)
    if (result.size() < count && !view.known(c)) take_candidate(c);
  // Different candidates can give the same program; further attempts fill the gaps they leave. Each adds what
  // it proposed to the known ones, so a space with nothing new ends in an empty proposal.
  bool nothing_left = false;
  for (int attempt = 0; attempt < kMaxAttempts && result.size() < count; ++attempt) {
    samples_.clear();
    const auto candidates = strategy_->propose(view, count - result.size(), rng_);
    nothing_left = candidates.empty();
    if (nothing_left) break;
    for (const auto& c : candidates) take_candidate(c);
  }
  samples_.clear();
  if (result.empty() && nothing_left) exhausted_ = true;
  return result;
}

void TaskState::take(const Proposal& proposal, const record::MeasureResult& result) {
  known_traces_.insert(proposal.text);
  const bool is_default = proposal.text == default_text_;
  const double seconds = result.best_estimate();
  ++trials_;
  if (!result.ok()) ++failures_;
  if (is_default) {
    default_known_ = true;
    default_seconds_ = seconds;
  }
  if (proposal.candidate) {
    known_candidates_.insert(proposal.candidate->hash());
    measured_.push_back({*proposal.candidate, seconds});
  }
  if (result.ok()) {
    results_.push_back({proposal.text, proposal.trace, seconds, is_default});
    best_seconds_ = std::min(best_seconds_, seconds);
  }
  auto features = proposal.features;
  if (!features) {
    auto made = features_of(space_.workload(), proposal.trace, feature_options_);
    if (!made.ok()) return;
    features = *made;
  }
  rows_.push_back({std::move(features), seconds});
}

void TaskState::take_record(const record::Record& record) {
  if (known_trace(record.trace)) return;
  auto trace = sched::parse_trace(record.trace);
  if (!trace.ok()) return;
  Proposal proposal;
  proposal.trace = std::move(*trace);
  proposal.text = record.trace;
  proposal.origin = record.origin;
  if (proposal.text == default_text_) {
    proposal.candidate = space_.default_candidate();
  } else if (const auto colon = record.origin.find(':'); colon != std::string::npos) {
    // The candidate is trusted only if it still gives this trace.
    auto candidate = decode(std::string_view(record.origin).substr(colon + 1));
    if (candidate) {
      auto again = space_.to_trace(*candidate);
      if (again.ok() && sched::print(*again) == proposal.text) proposal.candidate = std::move(candidate);
    }
  }
  take(proposal, record.result);
}

void TaskState::finish_round() { history_.push_back(best_seconds_); }

std::vector<TaskState::Result> TaskState::fastest(size_t count) const {
  std::vector<Result> sorted = results_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Result& a, const Result& b) { return a.seconds < b.seconds; });
  if (sorted.size() > count) sorted.resize(count);
  return sorted;
}

}  // namespace tensorsmith::search
