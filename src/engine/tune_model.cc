#include "engine/tune_model.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "engine/compile_model.h"
#include "engine/measured_device.h"
#include "engine/model_trials.h"
#include "engine/usable_threads.h"
#include "learn/search_model.h"

namespace tensorsmith::engine {
namespace {

// How the time after the search is spent.
constexpr size_t kMaxVariants = 4;
constexpr int64_t kMaxVariantBytes = int64_t{3} << 29;  // weights of all variants together
constexpr double kTrialTimeShare = 0.05;                // of the whole run; once for each of two comparisons
constexpr double kMinTrialSeconds = 0.5, kMaxTrialSeconds = 4;
// Tuned kernels can take longer to compile than the untuned ones.
constexpr double kSlowerBuild = 1.5;
// Of all the time, what the search should have before more variants are compared; and what it always has, in seconds.
constexpr double kLeastSearchShare = 0.6, kLeastSearchSeconds = 1;
// Of weights to a disk and flushed, chosen for a slow one.
constexpr double kWrittenBytesPerSecond = 2.5e8;

size_t variants_that_fit(const ModelTrials& trials) {
  const int64_t each = std::max<int64_t>(trials.weights_bytes(), 1);
  return std::clamp<size_t>(static_cast<size_t>(kMaxVariantBytes / each), 1, kMaxVariants);
}

double trial_seconds(const TuneModelOptions& options) {
  if (options.seconds == 0) return kMaxTrialSeconds / 2;
  return std::clamp(kTrialTimeShare * options.seconds, kMinTrialSeconds, kMaxTrialSeconds);
}

// The k-th fastest schedule of each task as it was measured alone; of a task that has fewer, the fastest.
std::vector<TaskSchedule> ranked_schedules(const search::TuneReport& report, size_t rank) {
  std::vector<TaskSchedule> schedules;
  for (size_t t = 0; t < report.best_traces.size(); ++t) {
    const auto& fastest = report.fastest[t];
    if (fastest.empty()) {
      schedules.push_back({report.best_traces[t], 0});
    } else if (rank == 0 || rank >= fastest.size()) {
      const double seconds = report.final.tasks[t].best_seconds;
      schedules.push_back({report.best_traces[t], std::isfinite(seconds) ? seconds : 0});
    } else {
      schedules.push_back({fastest[rank].trace, fastest[rank].seconds});
    }
  }
  return schedules;
}

// How long to search, and how many variants of the model are compared afterwards, the untuned one among them. With one,
// the search's winners are taken as they are.
struct TimePlan {
  double search_seconds = 0;  // 0 = no limit
  size_t variants = 0;
  // What comparing, building a tuned model alone, and writing it are expected to take; 0 = not known.
  double compare_seconds = 0, build_seconds = 0, write_seconds = 0;
};

// trials holds the untuned model. Adds the searched schedules, lets the model choose, writes the result to
// options.directory, and compares it with the untuned model end to end: what is not faster is not kept.
// schedules: set to those of the compiled model, by task.
Result<InModel> compile_fastest(const TuneModelOptions& options, const LoadedModel& model,
                                const target::Device& device, const search::TuneReport& report,
                                const TimePlan& plan, ModelTrials& trials, TuneEvents& events,
                                CompileOptions compile_options, std::vector<TaskSchedule>& schedules) {
  events.begins(TunePhase::kCompare, {plan.compare_seconds, plan.write_seconds});
  std::vector<TaskSchedule> untuned = trials.first_schedules();
  std::vector<TaskSchedule> chosen = ranked_schedules(report, 0);
  if (plan.variants > 1) {
    for (size_t rank = 0; rank + 1 < plan.variants; ++rank)
      TS_RETURN_IF_ERROR(trials.add(ranked_schedules(report, rank)));
    TS_RETURN_IF_ERROR(trials.time(trial_seconds(options)));
    chosen = trials.fastest_by_task(report.untuned_works);
  }
  for (size_t t = 0; t < untuned.size(); ++t) {
    if (!report.untuned_works[t]) untuned[t] = chosen[t];
  }
  trials.keep_first();

  TS_RETURN_IF_ERROR(trials.add(chosen));
  TS_RETURN_IF_ERROR(trials.time(trial_seconds(options)));
  InModel result{trials.model_seconds(0), trials.model_seconds(1), {}, {}, 0};
  result.spread = std::min(trials.spread(0), trials.spread(1));
  const bool keep = result.tuned <= result.untuned;
  for (size_t t = 0; t < chosen.size(); ++t) {
    result.task_untuned.push_back(trials.task_seconds(0, t));
    result.task_tuned.push_back(trials.task_seconds(keep ? 1 : 0, t));
  }
  if (!keep) result.tuned = result.untuned;
  schedules = std::move(keep ? chosen : untuned);
  events.begins(TunePhase::kWrite, {plan.write_seconds});
  compile_options.cache = &trials.cache();
  TS_RETURN_IF_ERROR(compile_model(model, device, schedules, compile_options));
  return result;
}

// Builds and times the untuned model: its own times say which tasks matter, and how long what follows the search will take.
Result<TimePlan> time_untuned(const std::vector<TaskSchedule>& defaults, const TuneModelOptions& options,
                              double start, const Clock& clock, ModelTrials& trials) {
  const double before = clock.monotonic_seconds();
  TS_RETURN_IF_ERROR(trials.add(defaults));
  const double build_seconds = clock.monotonic_seconds() - before;
  TS_RETURN_IF_ERROR(trials.time(0));
  const double elapsed = clock.monotonic_seconds() - start, latency = trials.model_seconds(0);
  const auto timing = [&](size_t variants) {
    return ModelTrials::timing_seconds(variants, latency, trial_seconds(options));
  };
  TimePlan plan{options.seconds, variants_that_fit(trials)};
  plan.build_seconds = kSlowerBuild * build_seconds;
  plan.write_seconds = static_cast<double>(trials.weights_bytes()) / kWrittenBytesPerSecond;
  const auto comparing = [&] {
    return plan.build_seconds * static_cast<double>(plan.variants) +
           (plan.variants > 1 ? timing(plan.variants) : 0) + timing(2);
  };
  if (options.seconds > 0) {
    const auto left_for_search = [&] { return options.seconds - elapsed - plan.write_seconds - comparing(); };
    while (plan.variants > 1 && left_for_search() < kLeastSearchShare * options.seconds) --plan.variants;
    plan.search_seconds = std::max(left_for_search(), kLeastSearchSeconds);
  }
  plan.compare_seconds = comparing();
  return plan;
}

// By task, of all calls: in the untuned model where that was timed, else as estimated.
Result<std::vector<double>> untuned_seconds_of(const LoadedModel& model, const target::Device& device,
                                               const ScheduleOptions& schedules, const ModelTrials& trials) {
  std::vector<double> seconds;
  for (size_t t = 0; t < model.partition.tasks.size(); ++t) {
    if (trials.size() > 0) {
      seconds.push_back(trials.task_seconds(0, t));
      continue;
    }
    const auto& task = model.partition.tasks[t];
    TS_ASSIGN_OR_RETURN(const auto space,
                        space::DesignSpace::build(task.workload, device,
                                                  {.threads = device.cores, .winograd = schedules.winograd}));
    seconds.push_back(task.calls * space.estimate(space.default_candidate()));
  }
  return seconds;
}

// Keys of the tasks whose schedules may be taken. best: name of the source model that ranks first.
std::set<std::string> tasks_of_sources(const TuneModelOptions& options, const std::string& best) {
  std::set<std::string> keys;
  for (const SourceModel& source : options.source_models)
    if (options.pool_sources || source.name == best) keys.insert(source.tasks.begin(), source.tasks.end());
  return keys;
}

// Candidates from elsewhere, by task.
using Seeds = std::vector<std::vector<SeededCandidate>>;

Result<Seeds> seeds_of(const LoadedModel& model, const target::Device& device, const WarmStart& known,
                       const SeedOptions& options, const ScheduleOptions& schedules, int jobs) {
  const auto& tasks = model.partition.tasks;
  Seeds seeds(tasks.size());
  if (known.empty()) return seeds;
  std::vector<Status> status(tasks.size());
  ThreadPool(jobs - 1).parallel_for(static_cast<int64_t>(tasks.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto t = static_cast<size_t>(begin); t < static_cast<size_t>(end); ++t) {
      const auto space = space::DesignSpace::build(tasks[t].workload, device,
                                                   {.threads = device.cores, .winograd = schedules.winograd});
      if (space.ok()) {
        seeds[t] = known.seeds(tasks[t], *space, device, options);
      } else {
        status[t] = Error{space.error().code, "task '" + tasks[t].name + "'", space.error().message()};
      }
    }
  });
  for (const Status& s : status) TS_RETURN_IF_ERROR(s);
  return seeds;
}

// trials: empty, or with the untuned model.
std::vector<search::TuneTask> tasks_of(const LoadedModel& model, const Seeds& seeds,
                                       const ModelTrials& trials) {
  std::vector<search::TuneTask> tasks;
  for (size_t t = 0; t < model.partition.tasks.size(); ++t) {
    const auto& task = model.partition.tasks[t];
    const double seconds = trials.size() > 0 ? trials.task_seconds(0, t) / task.calls : 0;
    tasks.push_back({task.key, task.name, task.workload, static_cast<double>(task.calls), seconds, {}});
    for (const auto& [candidate, source] : seeds[t])
      tasks.back().seeds.push_back(
          {candidate, source.same_task ? record::Reason::kSeeded : record::Reason::kTransferred});
  }
  return tasks;
}

// Of schedules that a model runs, by task, those that are seeds as they came.
Result<std::vector<std::optional<ProgramSource>>> sources_of(const LoadedModel& model,
                                                             const target::Device& device, const Seeds& seeds,
                                                             const std::vector<TaskSchedule>& schedules,
                                                             const ScheduleOptions& options) {
  std::vector<std::optional<ProgramSource>> sources(schedules.size());
  for (size_t t = 0; t < schedules.size(); ++t) {
    if (seeds[t].empty()) continue;
    TS_ASSIGN_OR_RETURN(const auto space,
                        space::DesignSpace::build(model.partition.tasks[t].workload, device,
                                                  {.threads = device.cores, .winograd = options.winograd}));
    const std::string runs = sched::print(schedules[t].trace);
    for (const auto& seed : seeds[t]) {
      const auto trace = space.to_trace(seed.candidate);
      if (!trace.ok() || sched::print(*trace) != runs) continue;
      sources[t] = seed.source;
      break;
    }
  }
  return sources;
}

}  // namespace

Result<TunedModel> tune_model(const LoadedModel& model, const target::Device& device,
                              const TuneModelOptions& options, record::Database& database, const Clock& clock,
                              LogSink& log, TuneEvents& events, const std::atomic<bool>& cancel) {
  if (!is_local(device)) {
    return Error{ErrorCode::kUnsupported, "device " + device.name,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  }
  const double start = clock.monotonic_seconds();
  TS_RETURN_IF_ERROR(register_device(device, database));
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
  const int jobs = usable_threads(machine.cores, log);
  // Files are read before anything takes long.
  WarmStart known;
  for (const std::string& file : options.sources) TS_RETURN_IF_ERROR(known.add_file(file));
  if (options.warm_start) TS_RETURN_IF_ERROR(known.add_database(database, "this database"));
  learn::SearchModelOptions model_options = options.cost_model;
  model_options.seed = options.seed;
  model_options.threads = jobs;
  TS_ASSIGN_OR_RETURN(const auto cost_model, learn::make_search_model(model_options, device));
  ModelTrials trials(model, device, jobs, options.seed, clock);
  if (options.end_to_end) events.begins(TunePhase::kUntuned, {});
  TS_ASSIGN_OR_RETURN(const auto defaults, default_schedules(model.partition, device, options.schedules));
  TimePlan plan{options.seconds, 0};
  if (options.end_to_end) {
    TS_ASSIGN_OR_RETURN(plan, time_untuned(defaults, options, start, clock, trials));
  }

  search::TuneOptions tune_options;
  tune_options.trials = options.trials;
  tune_options.seconds = plan.search_seconds;
  tune_options.confirm = !options.end_to_end;  // else the model itself decides
  tune_options.batch = options.batch;
  tune_options.strategy = options.strategy;
  tune_options.seed = options.seed;
  tune_options.settings.threads = device.cores;
  tune_options.settings.flush_cache = options.flush_cache;
  tune_options.winograd = options.schedules.winograd;
  tune_options.threads = jobs;
  measure::MeasureOptions measure_options;
  measure_options.settings = tune_options.settings;
  TS_ASSIGN_OR_RETURN(auto measurer,
                      measure::make_local_measurer(device, measure_options, options.worker, log));
  TunedModel out;
  SeedOptions seed_options = options.seeds;
  if (!options.source_models.empty()) {
    TS_ASSIGN_OR_RETURN(const std::vector<double> untuned_seconds,
                        untuned_seconds_of(model, device, options.schedules, trials));
    out.source_scores = rank_sources(model.partition.tasks, untuned_seconds, options.source_models, known,
                                     options.source_ranking);
    seed_options.only_tasks = tasks_of_sources(options, out.source_scores.front().name);
  }
  TS_ASSIGN_OR_RETURN(const Seeds seeds,
                      seeds_of(model, device, known, seed_options, options.schedules, jobs));
  const auto tasks = tasks_of(model, seeds, trials);
  events.begins(TunePhase::kSearch, {plan.search_seconds, plan.compare_seconds + plan.write_seconds});
  TS_ASSIGN_OR_RETURN(out.report, search::tune(tasks, device, tune_options,
                                               {database, *measurer, cost_model.get(), clock, log, cancel,
                                                [&](const search::TuneProgress& p) { events.progress(p); }}));
  measurer.reset();

  CompileOptions compile_options;
  compile_options.directory = options.directory;
  compile_options.model_name = options.model_name;
  compile_options.tuned = true;
  compile_options.jobs = jobs;
  compile_options.log = &log;
  out.interrupted = cancel;
  std::vector<TaskSchedule> schedules = ranked_schedules(out.report, 0);
  if (!options.end_to_end || out.interrupted) {
    events.begins(TunePhase::kWrite, {plan.build_seconds + plan.write_seconds});
    TS_RETURN_IF_ERROR(compile_model(model, device, schedules, compile_options));
  } else {
    TS_ASSIGN_OR_RETURN(out.in_model, compile_fastest(options, model, device, out.report, plan, trials,
                                                      events, compile_options, schedules));
  }
  for (size_t t = 0; t < schedules.size(); ++t)
    out.kept.push_back(sched::print(schedules[t].trace) == sched::print(defaults[t].trace) ? 1 : 0);
  TS_ASSIGN_OR_RETURN(out.sources, sources_of(model, device, seeds, schedules, options.schedules));
  for (size_t t = 0; t < schedules.size(); ++t)
    if (out.kept[t] != 0) out.sources[t].reset();
  out.interrupted = cancel;
  out.elapsed_seconds = clock.monotonic_seconds() - start;
  return out;
}

}  // namespace tensorsmith::engine
