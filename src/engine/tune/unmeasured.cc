#include "engine/tune/unmeasured.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "engine/tune/candidate_times.h"
#include "search/strategies.h"

namespace tensorsmith::engine {
namespace {

// All constants are chosen, not fitted; docs/results/unmeasured.json shows the results.
// Factor that discounts the logarithm of a predicted gain.
constexpr double kBelieved = 0.5;
// Factor that discounts the logarithm of a gain measured on another task, at distance 0.
constexpr double kOtherTask = 0.7;
// Least logarithm of the expected gain for which the untuned schedule is replaced.
constexpr double kLeastGain = 0.02;
constexpr double kMostSlowerByEstimate = 1.03;
constexpr size_t kProposed = 32, kScored = 512;

// Returns the candidates that the search would measure first.
std::vector<space::Candidate> proposed(const search::PreparedTask& task, CandidateTimes& times,
                                       uint64_t seed) {
  const search::SearchSpace& space = task.space();
  search::StrategyView view;
  view.space = &space;
  view.draft = [&](const space::Candidate& c) {
    const double estimate = space.estimate(c);
    return std::isfinite(estimate) && estimate > 0 ? -std::log(estimate)
                                                   : -std::numeric_limits<double>::infinity();
  };
  view.score = [&](std::span<const space::Candidate> candidates) {
    std::vector<float> scores;
    for (const double seconds : times.log_seconds(candidates)) scores.push_back(static_cast<float>(-seconds));
    return scores;
  };
  view.known = [](const space::Candidate&) { return false; };
  view.score_budget = kScored;
  view.epsilon = 0;
  const std::vector<search::MeasuredCandidate> start{{task.untuned(), 1}};
  view.measured = start;
  view.progress = 1;
  Rng rng(seed);
  std::vector<space::Candidate> result;
  const auto strategy = search::kDefaultStrategy.make();
  for (auto& proposal : strategy->propose(view, kProposed, rng))
    result.push_back(std::move(proposal.candidate));
  return result;
}

// Whether the cost model's prediction for a candidate is comparable with that for the untuned
// schedule: both have the same structure, and the estimate does not consider the candidate clearly
// slower.
bool alike(const search::PreparedTask& task, const space::Candidate& other) {
  return other.sketch == task.untuned().sketch &&
         task.space().estimate(other) <= kMostSlowerByEstimate * task.untuned_estimate();
}

Result<UnmeasuredChoice> choose(const search::PreparedTask& task, const WarmStart& known,
                                const learn::CostModel* cost_model, const UnmeasuredOptions& options) {
  CandidateTimes times(task, cost_model);
  std::vector<space::Candidate> candidates{task.untuned()};
  std::vector<double> evidence{0};
  std::vector<std::optional<ProgramSource>> sources{std::nullopt};
  for (auto& seed : known.seeds(task, options.seeds)) {
    const double gained = seed.source.speedup > 0 ? std::log(std::max(seed.source.speedup, 1.0)) : 0;
    candidates.push_back(std::move(seed.candidate));
    evidence.push_back(gained * (seed.source.same_task ? 1 : kOtherTask) / (1 + seed.source.distance));
    sources.emplace_back(std::move(seed.source));
  }
  for (auto& candidate :
       proposed(task, times, options.seed ^ Hasher().add(std::string_view(task.key())).digest64())) {
    candidates.push_back(std::move(candidate));
    evidence.push_back(0);
    sources.emplace_back();
  }
  const auto seconds = times.log_seconds(candidates);
  if (times.failed()) return *times.failed();
  size_t best = 0;
  double gain = kLeastGain;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const double expected = kBelieved * (seconds[0] - seconds[i]) + evidence[i];
    if (!std::isfinite(expected) || expected <= gain) continue;
    if (!sources[i] && !alike(task, candidates[i])) continue;
    const auto trace = task.space().to_trace(candidates[i]);
    if (!trace.ok()) continue;
    best = i;
    gain = expected;
  }
  UnmeasuredChoice choice;
  TS_ASSIGN_OR_RETURN(choice.schedule.trace, task.space().to_trace(candidates[best]));
  if (best == 0) return choice;
  choice.reason = sources[best] ? UnmeasuredChoice::Reason::kSeed : UnmeasuredChoice::Reason::kPredicted;
  choice.source = sources[best];
  choice.gain = std::exp(gain);
  return choice;
}

}  // namespace

Result<std::vector<UnmeasuredChoice>> choose_unmeasured(const LoadedModel& model,
                                                        const target::Device& device, const WarmStart& known,
                                                        const learn::CostModel* cost_model,
                                                        const UnmeasuredOptions& options) {
  TS_ASSIGN_OR_RETURN(const PreparedTasks tasks,
                      prepare_tasks(model.partition, device, options.schedules, options.threads));
  std::vector<UnmeasuredChoice> choices(tasks.size());
  std::vector<Status> status(tasks.size());
  for_each_index(options.threads, tasks.size(), [&](size_t t) {
    auto choice = choose(*tasks[t], known, cost_model, options);
    if (!choice.ok()) {
      status[t] = Error{choice.error().code, "task '" + tasks[t]->name() + "'", choice.error().message()};
      return;
    }
    choices[t] = std::move(choice).value();
    // Alternatives for schedules that cannot be built.
    if (choices[t].reason != UnmeasuredChoice::Reason::kUntuned)
      choices[t].schedule.otherwise.push_back({tasks[t]->untuned_trace()});
    choices[t].schedule.otherwise.push_back({tasks[t]->plain_trace()});
  });
  for (const Status& s : status) TS_RETURN_IF_ERROR(s);
  return choices;
}

}  // namespace tensorsmith::engine
