#include "engine/tune/unmeasured.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "engine/model/compile_model.h"
#include "engine/tune/candidate_times.h"
#include "engine/tune/prepare_tasks.h"
#include "engine/tune/tune_sources.h"
#include "record/database.h"
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
// Number of programs of other tasks that are considered.
constexpr size_t kOtherPrograms = 3;

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
                                const learn::CostModel* cost_model, const SeedOptions& seeds,
                                uint64_t random_seed) {
  CandidateTimes times(task, cost_model);
  std::vector<space::Candidate> candidates{task.untuned()};
  std::vector<double> evidence{0};
  std::vector<std::optional<ProgramSource>> sources{std::nullopt};
  for (auto& seed : known.seeds(task, seeds)) {
    const double gained = seed.source.speedup > 0 ? std::log(std::max(seed.source.speedup, 1.0)) : 0;
    candidates.push_back(std::move(seed.candidate));
    evidence.push_back(gained * (seed.source.same_task ? 1 : kOtherTask) / (1 + seed.source.distance));
    sources.emplace_back(std::move(seed.source));
  }
  for (auto& candidate :
       proposed(task, times, random_seed ^ Hasher().add(std::string_view(task.key())).digest64())) {
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

Result<std::vector<UnmeasuredChoice>> choose_unmeasured(const LoadedModel& model,
                                                        const target::Device& device, const WarmStart& known,
                                                        const learn::CostModel* cost_model,
                                                        const SeedOptions& seeds,
                                                        const TuneModelOptions& options, int threads) {
  TS_ASSIGN_OR_RETURN(const PreparedTasks tasks,
                      prepare_tasks(model.partition, device, options.schedules, threads));
  std::vector<UnmeasuredChoice> choices(tasks.size());
  std::vector<Status> status(tasks.size());
  for_each_index(threads, tasks.size(), [&](size_t t) {
    auto choice = choose(*tasks[t], known, cost_model, seeds, options.search.seed);
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

Result<std::unique_ptr<learn::CostModel>> ranking_model(learn::SearchModelOptions options,
                                                        const target::Device& device, int threads) {
  // For GPUs, the shipped model is one that learns during a search.
  const bool learns = options.model == learn::kShippedModel && device.kind() == target::DeviceKind::kGpu;
  if (learns) options.model = "none";
  options.frozen = options.model != "none";  // nothing is measured, so nothing is learned
  options.threads = threads;
  return learn::make_search_model(options, device);
}

}  // namespace

const char* to_string(UnmeasuredChoice::Reason reason) {
  switch (reason) {
    case UnmeasuredChoice::Reason::kUntuned:
      return "untuned";
    case UnmeasuredChoice::Reason::kRecord:
      return "record";
    case UnmeasuredChoice::Reason::kSeed:
      return "fast elsewhere";
    case UnmeasuredChoice::Reason::kPredicted:
      return "predicted";
  }
  return "";
}

Result<std::vector<std::vector<UnmeasuredChoice>>> compile_unmeasured(const std::vector<ModelToTune>& models,
                                                                      const target::Device& device,
                                                                      const TuneModelOptions& options,
                                                                      LogSink& log,
                                                                      const std::atomic<bool>& cancel) {
  TS_ASSIGN_OR_RETURN(const auto objective, search::Objective::parse(options.schedules.objective));
  if (!objective.is_latency())
    return Error{ErrorCode::kUnsupported, "objective '" + objective.text() + "'",
                 "a choice without measurements is by latency only; tune with measurements"};
  TS_ASSIGN_OR_RETURN(const target::Device local, target::probe_local());
  WarmStart known;
  TS_ASSIGN_OR_RETURN(const TuneSources sources, read_tune_sources(options.sources, options.warm_start));
  for (const std::string& file : sources.files) TS_RETURN_IF_ERROR(known.add_file(file));
  const std::string& database = options.where.database;
  std::error_code ignored;
  const bool has_records = options.warm_start && (record::is_database_address(database) ||
                                                  std::filesystem::exists(database, ignored));
  if (has_records) {
    TS_RETURN_IF_ERROR(known.add_file(database));
  } else if (options.warm_start && !database.empty() && database != record::kDefaultDatabase) {
    log.log(LogLevel::kWarning, "database " + record::shown_database(database) +
                                    " does not exist, so none of its records are used");
  }
  SeedOptions seeds{.other_tasks = kOtherPrograms};
  for (const SourceModel& source : sources.models) {
    if (!seeds.only_tasks) seeds.only_tasks.emplace();
    seeds.only_tasks->insert(source.tasks.begin(), source.tasks.end());
  }
  TS_ASSIGN_OR_RETURN(const auto cost_model, ranking_model(options.cost_model, device, local.cpu().cores));
  std::vector<std::vector<UnmeasuredChoice>> out;
  for (const ModelToTune& model : models) {
    TS_ASSIGN_OR_RETURN(auto choices, choose_unmeasured(*model.model, device, known, cost_model.get(), seeds,
                                                        options, local.cpu().cores));
    std::vector<TaskSchedule> schedules;
    for (const auto& choice : choices) schedules.push_back(choice.schedule);
    if (has_records) {
      TS_RETURN_IF_ERROR(
          apply_best_records(model.model->partition, device, database, options.schedules, schedules, log));
      for (size_t t = 0; t < schedules.size(); ++t)
        if (schedules[t].measured_seconds > 0)
          choices[t] = {schedules[t], UnmeasuredChoice::Reason::kRecord, std::nullopt, 1};
    }
    CompileOptions compile_options;
    compile_options.directory = model.directory;
    compile_options.model_name = model.name;
    compile_options.jobs = local.cpu().cores;
    compile_options.log = &log;
    compile_options.cancelled = &cancel;
    compile_options.tuned = std::any_of(choices.begin(), choices.end(), [](const auto& choice) {
      return choice.reason != UnmeasuredChoice::Reason::kUntuned;
    });
    TS_RETURN_IF_ERROR(compile_model(*model.model, device, schedules, compile_options));
    out.push_back(std::move(choices));
  }
  return out;
}

}  // namespace tensorsmith::engine
