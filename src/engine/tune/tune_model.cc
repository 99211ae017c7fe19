#include "engine/tune/tune_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <thread>

#include "base/thread_pool.h"
#include "engine/device/measured_device.h"
#include "engine/device/usable_threads.h"
#include "engine/fleet/fleet_measurer.h"
#include "engine/language/language_writer.h"
#include "engine/model/compile_model.h"
#include "engine/tune/model_trials.h"
#include "engine/tune/tune_sources.h"
#include "learn/search_model.h"
#include "measure/energy.h"
#include "sched/trace_traits.h"

namespace tensorsmith::engine {
namespace {

// Parameters that divide the time after the search.
constexpr size_t kMaxVariants = 4;
constexpr int64_t kMaxVariantBytes = int64_t{3} << 29;  // weights of all variants together
constexpr double kTrialTimeShare = 0.05;                // of the whole run, for each comparison
constexpr double kMinTrialSeconds = 0.5, kMaxTrialSeconds = 4;
// Tuned kernels can take longer to compile than the untuned ones.
constexpr double kSlowerBuild = 1.5;
// Least share of the whole time for the search before more variants are compared, and its least
// seconds.
constexpr double kLeastSearchShare = 0.6, kLeastSearchSeconds = 1;
// Rate of writing weights to a disk and flushing them; assumes a slow disk.
constexpr double kWrittenBytesPerSecond = 2.5e8;

// How often the tasks of the chosen model are compared with those of the untuned one. Tasks that
// lose return to their untuned schedules, so the next comparison is of another model.
constexpr int kTaskComparisons = 2;

constexpr double kUnknown = std::numeric_limits<double>::infinity();

size_t variants_that_fit(const ModelTrials& trials) {
  const int64_t each = std::max<int64_t>(trials.weights_bytes(), 1);
  return std::clamp<size_t>(kMaxVariantBytes / each, 1, kMaxVariants);
}

double trial_seconds(const TuneModelOptions& options) {
  const double seconds = options.search.seconds;
  if (seconds == 0) return kMaxTrialSeconds / 2;
  return std::clamp(kTrialTimeShare * seconds, kMinTrialSeconds, kMaxTrialSeconds);
}

// Returns each task's schedule of this rank by the times measured alone; the fastest for tasks with
// fewer schedules.
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

// Plan of the steps after the search, for one model.
struct ModelPlan {
  // Number of variants of the model that are compared, including the untuned one. With one variant,
  // the search's winners are used without a comparison.
  size_t variants = 0;
  double latency = 0;  // untuned, in seconds; 0 = not known, and then neither are the other times
  // Expected seconds for building a tuned model, comparing, and writing it.
  double build_seconds = 0, compare_seconds = 0, write_seconds = 0;
};

// Times of tasks in the untuned and in the chosen model, over all timings of the two in turn.
// Disturbances only make a call slower, so the fastest of all timings counts. A load on the machine
// that differs between two timings cannot make a schedule look slower than it is.
class TasksInTurn {
 public:
  explicit TasksInTurn(size_t tasks) : untuned_(tasks, kUnknown), chosen_(tasks, kUnknown) {}

  // `trials` has just timed the untuned model and the chosen one.
  void add(const ModelTrials& trials) {
    for (size_t t = 0; t < untuned_.size(); ++t) {
      untuned_[t] = std::min(untuned_[t], trials.task_seconds(0, t));
      chosen_[t] = std::min(chosen_[t], trials.task_seconds(1, t));
    }
  }
  bool chosen_loses(size_t task) const { return chosen_[task] > untuned_[task]; }
  // From now on the chosen model runs the task's untuned schedule.
  void give_up(size_t task) { chosen_[task] = kUnknown; }

  double untuned(size_t task) const { return untuned_[task]; }
  double chosen(size_t task) const { return chosen_[task]; }
  // Time of a task for which both models run the same schedule.
  double same(size_t task) const { return std::min(untuned_[task], chosen_[task]); }

 private:
  std::vector<double> untuned_, chosen_;
};

// `trials` holds the untuned model. Adds variants with the searched schedules, chooses each task's
// schedule by its time in the model, and compares the result with the untuned model end to end;
// schedules that are not faster are not taken. `schedules` is set to those of the compiled model,
// by task. `comparing_seconds` is for each comparison.
// by_latency: whether the objective is latency; the schedules of other objectives are not changed.
Result<InModel> choose_in_model(double comparing_seconds, const search::TuneReport& report,
                                const ModelPlan& plan, bool by_latency, ModelTrials& trials,
                                std::vector<TaskSchedule>& schedules) {
  std::vector<TaskSchedule> untuned = trials.first_schedules();
  std::vector<TaskSchedule> chosen = ranked_schedules(report, 0);
  if (plan.variants > 1) {
    for (size_t rank = 0; rank + 1 < plan.variants; ++rank)
      TS_RETURN_IF_ERROR(trials.add(ranked_schedules(report, rank)));
    TS_RETURN_IF_ERROR(trials.time(comparing_seconds));
    chosen = trials.fastest_by_task(report.untuned_works);
  }
  for (size_t t = 0; t < untuned.size(); ++t) {
    if (!report.untuned_works[t]) untuned[t] = chosen[t];
  }
  const auto same = [&](size_t t) { return chosen[t].trace == untuned[t].trace; };
  TasksInTurn times(chosen.size());
  for (int comparison = 1;; ++comparison) {
    trials.keep_first();
    TS_RETURN_IF_ERROR(trials.add(chosen));
    TS_RETURN_IF_ERROR(trials.time(comparing_seconds));
    // The last comparison only times the whole model, whose tasks no longer change.
    if (comparison > kTaskComparisons) break;
    times.add(trials);
    bool some = false;
    for (size_t t = 0; t < chosen.size(); ++t) {
      if (!by_latency || same(t) || !times.chosen_loses(t)) continue;
      chosen[t] = untuned[t];
      times.give_up(t);
      some = true;
    }
    if (!some) break;
  }
  InModel result;
  result.whole = {trials.model_seconds(0), trials.model_seconds(1),
                  std::max(trials.spread(0), trials.spread(1))};
  bool takes = false;  // the searched schedules
  for (size_t t = 0; t < chosen.size(); ++t) takes = takes || !same(t);
  if (by_latency) takes = takes && result.whole.tuned_seconds <= result.whole.untuned_seconds;
  for (size_t t = 0; t < chosen.size(); ++t) {
    const double one = same(t) ? times.same(t) : times.untuned(t);
    result.task_tuned.push_back(takes && !same(t) ? times.chosen(t) : one);
    result.task_untuned.push_back(report.untuned_works[t] ? one : kUnknown);
  }
  if (!takes) result.whole.tuned_seconds = result.whole.untuned_seconds;
  schedules = std::move(takes ? chosen : untuned);
  return result;
}

// Builds and times the untuned model. Its times show which tasks matter and how long the steps
// after the search will take.
Result<ModelPlan> time_untuned(const std::vector<TaskSchedule>& defaults, const Clock& clock,
                               ModelTrials& trials) {
  const double before = clock.monotonic_seconds();
  TS_RETURN_IF_ERROR(trials.add(defaults));
  const double build_seconds = clock.monotonic_seconds() - before;
  TS_RETURN_IF_ERROR(trials.time(0));
  ModelPlan plan;
  plan.variants = variants_that_fit(trials);
  plan.latency = trials.model_seconds(0);
  plan.build_seconds = kSlowerBuild * build_seconds;
  plan.write_seconds = trials.weights_bytes() / kWrittenBytesPerSecond;
  return plan;
}

// Sets the times of the comparisons, and reduces the variants if the search would have too little
// time. Returns the seconds for the search; 0: no limit.
double divide_time(double seconds, double elapsed, double comparing_seconds, std::vector<ModelPlan>& plans) {
  const auto compare = [&](const ModelPlan& plan) {
    const auto timing = [&](size_t variants) {
      return ModelTrials::timing_seconds(variants, plan.latency, comparing_seconds);
    };
    return plan.build_seconds * plan.variants + (plan.variants > 1 ? timing(plan.variants) : 0) +
           kTaskComparisons * timing(2);
  };
  double left = 0;
  for (;;) {
    left = seconds - elapsed;
    ModelPlan* most = nullptr;
    for (ModelPlan& plan : plans) {
      if (plan.latency == 0) continue;
      plan.compare_seconds = compare(plan);
      left -= plan.compare_seconds + plan.write_seconds;
      if (most == nullptr || plan.variants > most->variants) most = &plan;
    }
    if (seconds == 0) return 0;
    if (most == nullptr || most->variants <= 1 || left >= kLeastSearchShare * seconds) break;
    --most->variants;
  }
  return std::max(left, kLeastSearchSeconds);
}

// The tasks of all models, deduplicated and prepared.
struct SharedTasks {
  PreparedTasks tasks;
  std::vector<std::vector<size_t>> of_model;  // by model and task of its partition

  // The untuned schedules of a model, by task.
  std::vector<TaskSchedule> untuned_schedules(size_t model) const {
    std::vector<TaskSchedule> schedules;
    for (const size_t place : of_model[model]) schedules.push_back(untuned_schedule(*tasks[place]));
    return schedules;
  }
};

Result<SharedTasks> share_tasks(const std::vector<ModelToTune>& models, const target::Device& device,
                                const ScheduleOptions& options, int jobs) {
  SharedTasks shared;
  std::vector<const graph::Task*> tasks;
  std::map<std::string, size_t> known;
  for (const ModelToTune& model : models) {
    auto& places = shared.of_model.emplace_back();
    for (const graph::Task& task : model.model->partition.tasks) {
      const auto [at, fresh] = known.emplace(task.key, tasks.size());
      if (fresh) tasks.push_back(&task);
      places.push_back(at->second);
    }
  }
  TS_ASSIGN_OR_RETURN(shared.tasks, prepare_tasks(tasks, device, options, jobs));
  return shared;
}

// Returns the seconds of all calls of each task: as timed in the untuned model, else as estimated.
std::vector<double> untuned_seconds_of(const LoadedModel& model, const std::vector<TaskSchedule>& untuned,
                                       const ModelTrials& trials) {
  std::vector<double> seconds;
  for (size_t t = 0; t < untuned.size(); ++t)
    seconds.push_back(trials.size() > 0 ? trials.task_seconds(0, t)
                                        : model.partition.tasks[t].calls * untuned[t].estimated_seconds);
  return seconds;
}

// Extracts the part of the run's report that concerns one model.
search::TuneReport report_of(const search::TuneReport& all, const LoadedModel& model,
                             const std::vector<size_t>& places) {
  search::TuneReport own;
  own.end = all.end;
  own.expected_gain = all.expected_gain;
  own.objective = all.objective;
  own.final = all.final;
  own.final.tasks.clear();
  for (size_t t = 0; t < places.size(); ++t) {
    const size_t k = places[t];
    own.final.tasks.push_back(all.final.tasks[k]);
    own.final.tasks.back().weight = model.partition.tasks[t].calls;
    own.best_traces.push_back(all.best_traces[k]);
    own.untuned_works.push_back(all.untuned_works[k]);
    own.fastest.push_back(all.fastest[k]);
    own.allocation.push_back(all.allocation[k]);
  }
  return own;
}

// Returns the keys of the tasks whose schedules may be used. `best`: the name of the best-ranked
// source model.
std::set<std::string> tasks_of_sources(const std::vector<SourceModel>& sources,
                                       const TuneModelOptions& options, const std::string& best) {
  std::set<std::string> keys;
  for (const SourceModel& source : sources)
    if (options.pool_sources || source.name == best) keys.insert(source.tasks.begin(), source.tasks.end());
  return keys;
}

// Candidates adapted from other tasks and devices, by task.
using Seeds = std::vector<std::vector<SeededCandidate>>;

Seeds seeds_of(const PreparedTasks& tasks, const WarmStart& known, const SeedOptions& options, int jobs) {
  Seeds seeds(tasks.size());
  if (known.empty()) return seeds;
  for_each_index(jobs, tasks.size(), [&](size_t t) { seeds[t] = known.seeds(*tasks[t], options); });
  return seeds;
}

// `untuned`: by model, seconds of each task's calls, measured if the model has a plan. Each model
// has the same weight.
std::vector<search::TuneTask> tasks_of(const std::vector<ModelToTune>& models, const SharedTasks& shared,
                                       const Seeds& seeds, const std::vector<std::vector<double>>& untuned,
                                       const std::vector<ModelPlan>& plans) {
  std::vector<search::TuneTask> tasks;
  for (size_t k = 0; k < shared.tasks.size(); ++k) {
    tasks.push_back({.task = shared.tasks[k], .weight = 0});
    for (const SeededCandidate& seed : seeds[k])
      tasks.back().seeds.push_back(
          {seed.candidate, seed.source.same_task ? record::Reason::kSeeded : record::Reason::kTransferred});
  }
  std::vector<double> latencies;
  for (const auto& seconds : untuned)
    latencies.push_back(std::accumulate(seconds.begin(), seconds.end(), 0.0));
  const double mean =
      std::accumulate(latencies.begin(), latencies.end(), 0.0) / std::max<size_t>(latencies.size(), 1);
  for (size_t m = 0; m < models.size(); ++m) {
    const double scale = models.size() > 1 && latencies[m] > 0 ? mean / latencies[m] : 1;
    for (size_t t = 0; t < shared.of_model[m].size(); ++t) {
      search::TuneTask& task = tasks[shared.of_model[m][t]];
      const int calls = models[m].model->partition.tasks[t].calls;
      task.weight += scale * calls;
      if (task.hint_seconds == 0 && plans[m].latency > 0) task.hint_seconds = untuned[m][t] / calls;
    }
  }
  return tasks;
}

// Returns the source of a schedule if it is an unchanged seed.
std::optional<ProgramSource> source_of(const sched::Trace& trace, const std::vector<SeededCandidate>& seeds) {
  const uint64_t program = sched::hash(trace);
  for (const SeededCandidate& seed : seeds)
    if (seed.program == program) return seed.source;
  return std::nullopt;
}

Error nothing_measured() {
  return {ErrorCode::kCancelled, "", "interrupted: nothing was measured, so no model was written"};
}

// One call of tune_models(). Its steps are called in the order in which they are written here.
struct TuneRun {
  const std::vector<ModelToTune>& models;
  const target::Device& device;
  const TuneModelOptions& options;
  record::Database& database;
  const Clock& clock;
  LogSink& log;
  TuneEvents& events;
  const std::atomic<bool>& cancel;
  const double start = clock.monotonic_seconds();

  search::Objective objective;
  int jobs = 1;
  std::vector<SourceModel> source_models;
  WarmStart known;
  std::unique_ptr<learn::CostModel> cost_model;
  std::unique_ptr<LanguageWriter> writer;
  SharedTasks shared;
  // By model.
  std::vector<std::unique_ptr<ModelTrials>> trials;
  std::vector<std::vector<TaskSchedule>> defaults;
  std::vector<std::vector<double>> untuned;
  std::vector<ModelPlan> plans;
  // Seconds for each comparison, for the search, and for the steps after the current one.
  double comparing_seconds = 0, search_seconds = 0, later_seconds = 0;
  Seeds seeds;
  std::vector<SourceScore> source_scores;
  search::TuneReport report;

  // The error says why the energy of programs cannot be measured in this run.
  Status check_energy() const {
    const char* reason = device.kind() == target::DeviceKind::kGpu ? "the energy of a GPU is not measured"
                         : options.where.fleet || record::is_database_address(options.where.database)
                             ? "workers of a fleet do not measure energy"
                         : options.search.flush_cache ? "energy cannot be measured with empty caches"
                                                      : nullptr;
    if (reason != nullptr)
      return Error{ErrorCode::kUnsupported, "objective '" + objective.text() + "'",
                   std::string(reason) + "; choose an objective without energy"};
    TS_ASSIGN_OR_RETURN(measure::EnergyMeter meter, measure::EnergyMeter::open());
    // Some virtual machines show counters that stand still. Others change about once a millisecond.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (meter.joules() > 0) return {};
    return Error{ErrorCode::kUnsupported, measure::kEnergyFolder,
                 "the energy counters of the processor stand still; choose an objective without energy"};
  }

  // Reads the objective and all files before any long work, so that their errors come early.
  Status read_sources() {
    TS_ASSIGN_OR_RETURN(objective, search::Objective::parse(options.schedules.objective));
    if (objective.uses_energy()) TS_RETURN_IF_ERROR(check_energy());
    TS_ASSIGN_OR_RETURN(TuneSources sources, read_tune_sources(options.sources, options.warm_start));
    source_models = std::move(sources.models);
    TS_ASSIGN_OR_RETURN(const std::string language_file,
                        language_model_for(*options.search.strategy, options.language_model));
    TS_RETURN_IF_ERROR(register_device(device, database));
    TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
    jobs = usable_threads(machine.cpu().cores, log);
    for (const std::string& file : sources.files) TS_RETURN_IF_ERROR(known.add_file(file));
    if (options.warm_start) TS_RETURN_IF_ERROR(known.add_database(database, "this database"));
    learn::SearchModelOptions model_options = options.cost_model;
    model_options.seed = options.search.seed;
    model_options.threads = jobs;
    TS_ASSIGN_OR_RETURN(cost_model, learn::make_search_model(model_options, device));
    if (language_file.empty()) return {};
    TS_ASSIGN_OR_RETURN(const auto language_model, learn::lm::read_language_model(language_file));
    TS_ASSIGN_OR_RETURN(writer, LanguageWriter::create(language_model, jobs));
    return {};
  }

  // Prepares the tasks, times the untuned models, and divides the time of the run.
  Status time_untuned_models() {
    TS_ASSIGN_OR_RETURN(shared, share_tasks(models, device, options.schedules, jobs));
    TS_ASSIGN_OR_RETURN(const codegen::Backend* backend, codegen::backend_for(device));
    plans.resize(models.size());
    for (size_t m = 0; m < models.size(); ++m) {
      const LoadedModel& model = *models[m].model;
      trials.push_back(
          std::make_unique<ModelTrials>(model, device, *backend, jobs, options.search.seed, clock));
      if (options.end_to_end) events.begins(TunePhase::kUntuned, {});
      defaults.push_back(shared.untuned_schedules(m));
      if (options.end_to_end) {
        TS_ASSIGN_OR_RETURN(plans[m], time_untuned(defaults[m], clock, *trials[m]));
        // Variants are compared by their latency.
        if (!objective.is_latency()) plans[m].variants = 1;
      }
      untuned.push_back(untuned_seconds_of(model, defaults[m], *trials[m]));
      if (cancel) return nothing_measured();
    }
    comparing_seconds = trial_seconds(options) / models.size();
    search_seconds =
        divide_time(options.search.seconds, clock.monotonic_seconds() - start, comparing_seconds, plans);
    for (const ModelPlan& plan : plans) later_seconds += plan.compare_seconds + plan.write_seconds;
    return {};
  }

  // Ranks the models among the sources, and adapts candidates from all sources.
  void find_seeds() {
    SeedOptions seed_options = options.seeds;
    if (!source_models.empty()) {
      std::vector<graph::Task> all;
      std::vector<double> seconds;
      for (size_t m = 0; m < models.size(); ++m) {
        const auto& tasks = models[m].model->partition.tasks;
        all.insert(all.end(), tasks.begin(), tasks.end());
        seconds.insert(seconds.end(), untuned[m].begin(), untuned[m].end());
      }
      source_scores = rank_sources(all, seconds, source_models, known, options.source_ranking);
      seed_options.only_tasks = tasks_of_sources(source_models, options, source_scores.front().name);
    }
    seeds = seeds_of(shared.tasks, known, seed_options, jobs);
  }

  Status run_search() {
    search::TuneOptions tune_options = options.search;
    tune_options.seconds = search_seconds;
    tune_options.objective = objective;
    // Otherwise the timing inside the model decides.
    tune_options.confirm = !options.end_to_end || !objective.is_latency();
    tune_options.threads = jobs;
    measure::MeasureOptions measure_options;
    measure_options.flush_cache = tune_options.flush_cache;
    measure_options.measure_energy = objective.uses_energy();
    // A slow program may still be the best by another objective.
    if (!objective.is_latency()) measure_options.hopeless_factor = measure_options.loser_factor = 0;
    TS_ASSIGN_OR_RETURN(const auto measurer, make_run_measurer(options.where, database, device,
                                                               measure_options, clock, log, cancel));
    find_seeds();
    auto tasks = tasks_of(models, shared, seeds, untuned, plans);
    // Programs of similar tasks are measured as seeds first. Showing them to the language model as
    // well makes no difference (docs/results/language_model.json), so it gets none.
    static const WarmStart kNothing;
    if (writer != nullptr)
      for (size_t k = 0; k < tasks.size(); ++k) tasks[k].writer = writer->of_task(shared.tasks[k], kNothing);
    events.begins(TunePhase::kSearch, {search_seconds, later_seconds});
    TS_ASSIGN_OR_RETURN(report, search::tune(tasks, device, tune_options,
                                             {database, *measurer, cost_model.get(), clock, log, cancel,
                                              [&](const search::TuneProgress& p) { events.progress(p); }}));
    if (cancel && report.final.trials == 0) return nothing_measured();
    return {};
  }

  // Describes the schedules of the compiled model, by task, in the result.
  void describe(size_t m, const std::vector<TaskSchedule>& schedules, TunedModel& tuned) const {
    std::vector<TaskTimes> alone;
    for (size_t t = 0; t < schedules.size(); ++t) {
      tuned.kept.push_back(schedules[t].trace == defaults[m][t].trace ? 1 : 0);
      const search::TaskProgress& task = tuned.report.final.tasks[t];
      const double seconds = tuned.kept[t] != 0 ? task.default_seconds : schedules[t].measured_seconds;
      tuned.alone.push_back(std::isfinite(seconds) ? seconds : 0);
      alone.push_back({task.weight, task.default_seconds, tuned.alone.back()});
      tuned.sources.push_back(
          tuned.kept[t] != 0 ? std::nullopt : source_of(schedules[t].trace, seeds[shared.of_model[m][t]]));
    }
    tuned.estimate = estimate_of(alone);
  }

  // Chooses the schedules of a model and writes its directory. The models are finished in order.
  Result<TunedModel> finish(size_t m) {
    const LoadedModel& model = *models[m].model;
    const ModelPlan& plan = plans[m];
    TunedModel tuned;
    tuned.report = report_of(report, model, shared.of_model[m]);
    tuned.source_scores = source_scores;
    later_seconds -= plan.compare_seconds + plan.write_seconds;
    CompileOptions compile_options;
    compile_options.directory = models[m].directory;
    compile_options.model_name = models[m].name;
    compile_options.tuned = true;
    compile_options.jobs = jobs;
    compile_options.log = &log;
    std::vector<TaskSchedule> schedules = ranked_schedules(tuned.report, 0);
    const bool compares = options.end_to_end && !cancel;
    if (compares) {
      events.begins(TunePhase::kCompare, {plan.compare_seconds, plan.write_seconds + later_seconds});
      TS_ASSIGN_OR_RETURN(tuned.in_model, choose_in_model(comparing_seconds, tuned.report, plan,
                                                          objective.is_latency(), *trials[m], schedules));
      events.compared(tuned.in_model->whole);
      compile_options.speedup = tuned.in_model->whole;
      compile_options.cache = &trials[m]->cache();
    }
    describe(m, schedules, tuned);
    compile_options.estimate = tuned.estimate;
    events.begins(TunePhase::kWrite,
                  {plan.write_seconds + (compares ? 0 : plan.build_seconds), later_seconds});
    TS_RETURN_IF_ERROR(compile_model(model, device, schedules, compile_options));
    trials[m].reset();
    tuned.elapsed_seconds = clock.monotonic_seconds() - start;
    return tuned;
  }
};

}  // namespace

Result<std::vector<TunedModel>> tune_models(const std::vector<ModelToTune>& models,
                                            const target::Device& device, const TuneModelOptions& options,
                                            record::Database& database, const Clock& clock, LogSink& log,
                                            TuneEvents& events, const std::atomic<bool>& cancel) {
  TS_RETURN_IF_ERROR(check_measurable(device, "tuning"));
  TuneRun run{models, device, options, database, clock, log, events, cancel};
  TS_RETURN_IF_ERROR(run.read_sources());
  TS_RETURN_IF_ERROR(run.time_untuned_models());
  TS_RETURN_IF_ERROR(run.run_search());
  std::vector<TunedModel> out;
  for (size_t m = 0; m < models.size(); ++m) {
    TS_ASSIGN_OR_RETURN(TunedModel tuned, run.finish(m));
    out.push_back(std::move(tuned));
  }
  for (TunedModel& tuned : out) tuned.interrupted = cancel;
  return out;
}

}  // namespace tensorsmith::engine
