#include "lab/compare_searches.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "base/statistics.h"
#include "base/thread_pool.h"
#include "engine/device/measured_device.h"
#include "engine/tune/prepare_tasks.h"
#include "engine/tune/watched_machine.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "lab/kinds/kinds.h"
#include "lab/strategies/strategies.h"
#include "lab/task_records.h"
#include "lab/time_again.h"
#include "learn/latency/queries.h"
#include "search/recorded_space.h"
#include "search/simulation.h"
#include "space/design_space.h"

namespace tensorsmith::lab {

namespace {

// Successful programs that a task needs per trial so that it is not left out.
constexpr int64_t kProgramsPerTrial = 3;
// Lower bound of shares before their logarithm is taken, for searches that found nothing.
constexpr double kLeastCompareShare = 1e-6;

// Returns early the error of a model that cannot steer searches on the device.
Status check_models(const CompareOptions& options, const target::Device& device) {
  for (const SearchMethod& method : options.methods) {
    if (proposes(method.strategy)) continue;
    const auto model = learn::make_search_model(
        {.model = method.model, .frozen = options.frozen, .kinds = &cost_model_kinds()}, device);
    if (!model.ok()) return model.error();
  }
  return {};
}

// The task, device and measurer of a search.
struct Place {
  const search::TuneTask& task;
  const target::Device& device;
  measure::Measurer& measurer;
  const Clock& clock;
  int64_t trials = 0;
  bool replay = false;
  int threads = 1;
};

// Fills in `seconds`, `best`, `spent`, `winners`, `untuned` and `seen`.
Status search_once(const Place& place, const CompareOptions& options, LogSink& log,
                   const std::atomic<bool>& cancel, SearchRun& run) {
  const SearchMethod& method = options.methods[run.method];
  // Proposed programs are measured as seeds in their order.
  const bool proposed = proposes(method.strategy);
  const search::StrategyKind* strategy = &search::kTransferStrategy;
  if (!proposed) {
    TS_ASSIGN_OR_RETURN(strategy, find_strategy(method.strategy));
  }
  TS_ASSIGN_OR_RETURN(const auto model, learn::make_search_model({.model = proposed ? "none" : method.model,
                                                                  .frozen = options.frozen,
                                                                  .seed = run.seed,
                                                                  .threads = place.threads,
                                                                  .kinds = &cost_model_kinds(),
                                                                  .recorded = place.replay},
                                                                 place.device));
  if (model != nullptr) {
    const auto& known = model->card().workloads;
    run.seen = std::binary_search(known.begin(), known.end(), run.task);
  }
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(":memory:"));
  search::TuneOptions tuning;
  tuning.trials = place.trials;
  tuning.batch = options.batch;
  tuning.strategy = strategy;
  tuning.epsilon = options.epsilon;
  tuning.seed = run.seed;
  tuning.threads = place.threads;
  tuning.replay = place.replay;
  tuning.confirm = false;
  const auto report =
      search::tune({place.task}, place.device, tuning,
                   {*database, place.measurer, model.get(), place.clock, log, cancel,
                    [&](const search::TuneProgress& p) { run.spent.push_back(p.elapsed_seconds); }});
  if (!report.ok()) return report.error();
  run.untuned = report->final.tasks.front().default_seconds;
  double best = std::numeric_limits<double>::infinity();
  double fastest = best;  // without the untuned program
  int64_t number = 0;
  TS_RETURN_IF_ERROR(database->for_each([&](const record::Record& record) {
    const double seconds = record.result.best_estimate();
    run.seconds.push_back(seconds);
    if (strategy->uses_draft || record.candidate.reason != record::Reason::kDefault)
      best = std::min(best, seconds);
    run.best.push_back(best);
    const bool untuned = record.candidate.reason == record::Reason::kDefault;
    if (!untuned) ++number;
    if (!place.replay && (untuned || seconds < fastest)) {
      run.winners.push_back({untuned ? 0 : number, record.trace});
      if (!untuned) fastest = seconds;
    }
    return Status();
  }));
  // Trials whose worker was lost leave no record.
  run.spent.resize(run.best.size(), run.spent.empty() ? 0 : run.spent.back());
  return {};
}

// --- recorded programs

int64_t trials_of(const TaskRecords& task, const CompareOptions& options,
                  const SimulationOptions& simulation) {
  if (simulation.share == 0) return options.trials;
  return std::max<int64_t>(std::llround(std::ceil(simulation.share * task.ran)), 1);
}

Result<std::shared_ptr<const search::RecordedSpace>> space_of(const learn::Store& store,
                                                              std::span<const target::Device* const> devices,
                                                              const TaskRecords& task,
                                                              ir::Workload workload) {
  std::vector<search::RecordedProgram> programs;
  learn::RecordedEstimates estimates(store, devices);
  for (const int64_t i : task.records) {
    const auto entry = store.entry(i);
    auto trace = store.trace(i);
    if (!trace.ok()) return trace.error();
    search::RecordedProgram program;
    if (entry.leaves > 0) {
      auto inputs = std::make_shared<search::ProgramInputs>();
      store.leaves(i, inputs->leaves);
      inputs->rows = store.per_store(i);
      inputs->trace = *trace;
      TS_ASSIGN_OR_RETURN(inputs->parts, estimates.of(i));
      if (inputs->parts) program.estimate = inputs->parts->seconds;
      program.inputs = std::move(inputs);
    }
    program.trace = std::move(*trace);
    if (entry.failed()) {
      program.result.outcome = record::Outcome::kBuildError;
      program.result.reason = "failed where it was recorded";
    } else {
      program.result.seconds = {entry.mean_seconds};
      program.result.runs_per_repeat = 1;
    }
    programs.push_back(std::move(program));
  }
  return search::RecordedSpace::create(std::move(workload), std::move(programs));
}

// Runs the searches of one task.
Result<std::vector<SearchRun>> simulate_task(const learn::Store& store, const TaskRecords& recorded,
                                             std::span<const target::Device* const> devices, int64_t trials,
                                             const CompareOptions& options, LogSink& log,
                                             const std::atomic<bool>& cancel) {
  const target::Device& device = *devices[recorded.device];
  const learn::StoredWorkload& stored = store.workloads()[recorded.workload];
  TS_ASSIGN_OR_RETURN(ir::Workload workload, ir::parse_workload(stored.text));
  learn::StoredWorkload queried = stored;
  queried.key = ir::structural_key(workload);
  TS_ASSIGN_OR_RETURN(const auto space, space_of(store, devices, recorded, std::move(workload)));
  search::TuneTask task;
  TS_ASSIGN_OR_RETURN(task.task,
                      search::PreparedTask::create(queried, space, std::make_shared<target::Device>(device)));
  trials = std::min<int64_t>(trials, space->size());
  std::vector<SearchRun> out;
  for (size_t m = 0; m < options.methods.size(); ++m) {
    for (int seed = 0; seed < options.seeds && !cancel; ++seed) {
      SearchRun& run = out.emplace_back();
      run.device = store.devices()[recorded.device];
      run.task = stored.key;
      run.name = stored.name;
      run.method = m;
      run.seed = seed;
      run.fastest = space->best_seconds();
      search::SimulatedClock clock;
      search::ReplayMeasurer measurer(clock);
      measurer.add_task(queried.key, space);
      TS_RETURN_IF_ERROR(
          search_once({task, device, measurer, clock, trials, true, 1}, options, log, cancel, run));
    }
  }
  return out;
}

}  // namespace

double SearchRun::share_reached(double part) const {
  if (best.empty()) return 0;
  const double trials = best.size();
  const auto at = static_cast<size_t>(std::clamp(std::ceil(part * trials), 1.0, trials)) - 1;
  return std::isfinite(best[at]) ? fastest / best[at] : 0;
}

const Winner* SearchRun::winner_of(int64_t n) const {
  const Winner* found = nullptr;
  for (const Winner& winner : winners)
    if (winner.number > 0 && (n == 0 || winner.number <= n)) found = &winner;
  return found;
}

double SearchRun::again_seconds(int64_t n, bool with_untuned) const {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double least = kNone, of_untuned = kNone;
  for (const Winner& winner : winners) {
    if (winner.again <= 0) continue;
    if (winner.number == 0) of_untuned = winner.again;
    if (winner.number > 0 && (n == 0 || winner.number <= n)) least = std::min(least, winner.again);
  }
  const bool none = n < 0 || winner_of(n) == nullptr;
  return with_untuned || none ? std::min(least, of_untuned) : least;
}

Result<std::vector<SearchRun>> simulate_searches(
    const learn::Store& store, const std::vector<const target::Device*>& devices,
    const std::vector<int64_t>& records, const CompareOptions& options, const SimulationOptions& simulation,
    LogSink& log, const CompareProgressFn& progress, const std::atomic<bool>& cancel) {
  std::vector<TaskRecords> tasks = records_by_task(store, records);
  std::set<uint32_t> used;
  for (const TaskRecords& task : tasks)
    if (used.insert(task.device).second) TS_RETURN_IF_ERROR(check_models(options, *devices[task.device]));
  std::erase_if(tasks, [&](const TaskRecords& task) {
    const int64_t least = simulation.least_programs > 0
                              ? simulation.least_programs
                              : kProgramsPerTrial * trials_of(task, options, simulation);
    return task.ran < std::max<int64_t>(least, 1);
  });
  if (tasks.empty())
    return Error{ErrorCode::kInvalidArgument, "",
                 "no task has enough successful programs; reduce --trials or --least-programs"};
  std::vector<std::optional<Result<std::vector<SearchRun>>>> done(tasks.size());
  std::mutex mutex;
  const size_t of_task = options.methods.size() * options.seeds;
  CompareProgress so_far{0, tasks.size() * of_task};
  for_each_index(simulation.threads, tasks.size(), [&](size_t t) {
    if (cancel) return;
    auto runs = simulate_task(store, tasks[t], devices, trials_of(tasks[t], options, simulation), options,
                              log, cancel);
    if (!runs.ok())
      runs = Error{runs.error().code, "task '" + store.workloads()[tasks[t].workload].name + "'",
                   runs.error().message()};
    const std::lock_guard lock(mutex);
    // The result of an interrupted task is incomplete and is dropped.
    if (!cancel || !runs.ok()) done[t] = std::move(runs);
    so_far.done += of_task;
    if (progress) progress(so_far);
  });
  std::vector<SearchRun> out;
  for (auto& runs : done) {
    if (!runs) continue;
    if (!runs->ok()) return runs->error();
    for (auto& run : **runs) out.push_back(std::move(run));
  }
  return out;
}

// --- this machine

namespace {

ProposalRequest request_of(const SearchMethod& method) {
  return {method.strategy, method.model, method.language_model};
}

int64_t trials_of(const SearchMethod& method, const CompareOptions& options) {
  return method.trials > 0 ? method.trials : options.trials;
}

// Times the winners of one task and seed again unless all of them were timed already.
Status time_group(const ir::Workload& workload, uint64_t seed, const std::string& task,
                  const CompareOptions& options, const MakeMeasurer& make_measurer,
                  const MeasuredComparison& comparison, std::vector<SearchRun>& runs) {
  std::vector<SearchRun*> group;
  for (SearchRun& run : runs)
    if (run.seed == seed && run.task == task) group.push_back(&run);
  std::vector<Winner*> winners;
  for (SearchRun* run : group) {
    std::set<const Winner*> chosen{run->winner_of(0)};
    for (const int64_t n : options.again) chosen.insert(run->winner_of(n));
    for (Winner& winner : run->winners)
      if (winner.number == 0 || chosen.count(&winner) > 0) winners.push_back(&winner);
  }
  if (std::all_of(winners.begin(), winners.end(), [](const Winner* w) { return w->again > 0; })) return {};
  TS_RETURN_IF_ERROR(time_again(workload, make_measurer, winners));
  if (comparison.keep)
    for (const SearchRun* run : group) TS_RETURN_IF_ERROR(comparison.keep(*run));
  return {};
}

}  // namespace

Result<std::vector<engine::SharedTask>> heaviest_tasks(const std::vector<engine::ModelSource>& models,
                                                       const target::Device& device, size_t count) {
  TS_ASSIGN_OR_RETURN(std::vector<engine::SharedTask> all, engine::load_tasks(models));
  if (count == 0) return all;
  std::map<std::string, std::vector<std::pair<double, size_t>>> of_model;  // seconds and place
  for (size_t t = 0; t < all.size(); ++t) {
    TS_ASSIGN_OR_RETURN(const auto task, engine::prepare_task(all[t].task, device));
    const double seconds = task->untuned_estimate();
    for (const auto& [model, calls] : all[t].calls) of_model[model].emplace_back(-calls * seconds, t);
  }
  std::set<size_t> chosen;
  for (auto& [model, tasks] : of_model) {
    std::sort(tasks.begin(), tasks.end());
    for (size_t k = 0; k < std::min(count, tasks.size()); ++k) chosen.insert(tasks[k].second);
  }
  std::vector<engine::SharedTask> out;
  for (const size_t t : chosen) out.push_back(std::move(all[t]));
  return out;
}

Result<std::vector<SearchRun>> measure_searches(const target::Device& device, const CompareOptions& options,
                                                const MeasuredComparison& comparison, const Clock& clock,
                                                LogSink& log, const CompareProgressFn& progress,
                                                const std::atomic<bool>& cancel) {
  TS_RETURN_IF_ERROR(engine::check_measurable(device, "a comparison"));
  TS_RETURN_IF_ERROR(check_models(options, device));
  measure::MeasureOptions measuring;
  const MakeMeasurer make_measurer = [&] {
    return engine::make_watched_measurer(device, measuring, comparison.worker, clock, log, cancel);
  };
  TS_ASSIGN_OR_RETURN(const auto measurer, make_measurer());
  Proposers proposers;
  for (const SearchMethod& method : options.methods)
    if (proposes(method.strategy)) TS_RETURN_IF_ERROR(proposers.load(request_of(method), comparison.threads));
  std::map<std::string, std::unique_ptr<engine::LanguageWriter>> writers;  // by file
  for (const SearchMethod& method : options.methods) {
    if (proposes(method.strategy) || method.language_model.empty() ||
        writers.count(method.language_model) > 0)
      continue;
    TS_ASSIGN_OR_RETURN(const auto model, learn::lm::read_language_model(method.language_model));
    TS_ASSIGN_OR_RETURN(writers[method.language_model],
                        engine::LanguageWriter::create(model, comparison.threads));
  }
  static const engine::WarmStart kNothing;
  std::vector<search::TuneTask> plain, seeded;
  for (const engine::SharedTask& shared : comparison.tasks) {
    search::TuneTask task;
    TS_ASSIGN_OR_RETURN(task.task, engine::prepare_task(shared.task, device));
    plain.push_back(task);
    if (comparison.known != nullptr)
      for (const engine::SeededCandidate& seed : comparison.known->seeds(*task.task, {}))
        task.seeds.push_back(
            {seed.candidate, seed.source.same_task ? record::Reason::kSeeded : record::Reason::kTransferred});
    seeded.push_back(std::move(task));
  }
  std::vector<SearchRun> out;
  CompareProgress so_far{0, plain.size() * options.methods.size() * options.seeds};
  for (int seed = 0; seed < options.seeds; ++seed) {
    for (size_t t = 0; t < plain.size(); ++t) {
      for (size_t m = 0; m < options.methods.size(); ++m) {
        if (cancel) break;
        SearchRun run;
        run.device = device.key();
        run.task = plain[t].task->key();
        run.name = plain[t].task->name();
        run.method = m;
        run.seed = seed;
        if (!comparison.find || !comparison.find(run)) {
          const SearchMethod& method = options.methods[m];
          search::TuneTask task = method.seeded ? seeded[t] : plain[t];
          const int64_t trials = trials_of(method, options);
          const double begin = clock.monotonic_seconds();
          const bool sees = method.seeded && comparison.known != nullptr;
          if (!proposes(method.strategy) && !method.language_model.empty())
            task.writer =
                writers.at(method.language_model)->of_task(task.task, sees ? *comparison.known : kNothing);
          if (proposes(method.strategy)) {
            // The untuned program takes one of the trials.
            TS_ASSIGN_OR_RETURN(task.seeds, proposers.propose(request_of(method), *task.task,
                                                              sees ? *comparison.known : kNothing,
                                                              std::max<int64_t>(1, trials - 1), run.seed));
          }
          const double proposing = clock.monotonic_seconds() - begin;
          const Status status = search_once(
              {task, device, *measurer, clock, trials, false, comparison.threads}, options, log, cancel, run);
          if (!status.ok())
            return Error{status.error().code, "task '" + task.task->name() + "'", status.error().message()};
          if (cancel) break;
          for (double& spent : run.spent) spent += proposing;
          if (comparison.keep) TS_RETURN_IF_ERROR(comparison.keep(run));
        }
        out.push_back(std::move(run));
        ++so_far.done;
        if (progress) progress(so_far);
      }
      if (cancel || options.again.empty()) continue;
      TS_RETURN_IF_ERROR(time_group(plain[t].task->workload(), seed, plain[t].task->key(), options,
                                    make_measurer, comparison, out));
    }
  }
  if (comparison.decoding != nullptr) *comparison.decoding = proposers.decoding();
  std::map<std::string, double> fastest;
  for (const SearchRun& run : out) {
    if (run.best.empty()) continue;
    const auto [at, first] = fastest.emplace(run.task, run.best.back());
    at->second = std::min(at->second, run.best.back());
  }
  for (SearchRun& run : out) run.fastest = fastest[run.task];
  return out;
}

// --- results

namespace {

// `values` must not be empty.
double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

}  // namespace

MethodScore score_of(const std::vector<SearchRun>& runs, size_t method, const std::vector<double>& parts) {
  MethodScore score;
  std::map<uint64_t, std::vector<double>> logs;  // by seed: sums over tasks, by part
  std::map<uint64_t, double> counts;             // by seed
  std::map<std::pair<std::string, std::string>, std::pair<double, int>> last;  // by task: sum and number
  for (const SearchRun& run : runs) {
    if (run.method != method) continue;
    auto& sums = logs[run.seed];
    sums.resize(parts.size());
    for (size_t p = 0; p < parts.size(); ++p)
      sums[p] += std::log(std::max(run.share_reached(parts[p]), kLeastCompareShare));
    counts[run.seed] += 1;
    auto& [sum, number] = last[{run.device, run.task}];
    sum += run.share_reached(parts.back());
    ++number;
    if (run.seed == 0 && run.seen) ++score.seen;
  }
  score.tasks = last.size();
  for (const auto& [task, sum] : last) score.worst = std::min(score.worst, sum.first / sum.second);
  for (size_t p = 0; p < parts.size(); ++p) {
    std::vector<double> means{};
    for (const auto& [seed, sums] : logs) means.push_back(std::exp(sums[p] / counts[seed]));
    score.mean.push_back(means.empty() ? 0 : mean_of(means));
    score.deviation.push_back(sample_deviation(means));
  }
  return score;
}

namespace {

// Averages value(run, trial) over a method's runs after each trial; a run that ends early counts
// with its last trial.
template <class Value>
std::vector<double> mean_over_runs(const std::vector<SearchRun>& runs, size_t method,
                                   std::optional<uint64_t> seed, const Value& value) {
  std::vector<double> sums;
  const auto counts = [&](const SearchRun& run) {
    return run.method == method && !run.best.empty() && (!seed || run.seed == *seed);
  };
  for (const auto& run : runs)
    if (counts(run)) sums.resize(std::max(sums.size(), run.best.size()));
  double count = 0;
  for (const auto& run : runs) {
    if (!counts(run)) continue;
    count += 1;
    for (size_t n = 0; n < sums.size(); ++n) sums[n] += value(run, std::min(n, run.best.size() - 1));
  }
  for (double& sum : sums) sum /= std::max(count, 1.0);
  return sums;
}

}  // namespace

AgainScore again_score(const std::vector<SearchRun>& runs, size_t method, int64_t n, bool with_untuned,
                       size_t reference) {
  const auto key = [](const SearchRun& run) { return std::tuple(run.device, run.task, run.seed); };
  std::map<std::tuple<std::string, std::string, uint64_t>, double> references;  // seconds
  for (const SearchRun& run : runs)
    if (run.method == reference) references[key(run)] = run.again_seconds(0, true);
  std::map<std::string, std::vector<double>> of_task;  // logarithms
  std::map<uint64_t, std::vector<double>> of_seed;
  for (const SearchRun& run : runs) {
    const auto at = references.find(key(run));
    if (run.method != method || at == references.end() || !std::isfinite(at->second)) continue;
    const double share =
        std::log(std::max(at->second / run.again_seconds(n, with_untuned), kLeastCompareShare));
    of_task[run.device + " " + run.task].push_back(share);
    of_seed[run.seed].push_back(share);
  }
  AgainScore score;
  score.tasks = of_task.size();
  if (of_task.empty()) return score;
  std::vector<double> tasks, seeds;
  for (const auto& [task, shares] : of_task) tasks.push_back(std::exp(mean_of(shares)));
  for (const auto& [seed, shares] : of_seed) seeds.push_back(std::exp(mean_of(shares)));
  std::sort(tasks.begin(), tasks.end());
  score.mean = mean_of(seeds);
  score.deviation = sample_deviation(seeds);
  score.median = median(tasks);
  score.worst = tasks.front();
  return score;
}

std::vector<double> mean_curve(const std::vector<SearchRun>& runs, size_t method,
                               std::optional<uint64_t> seed) {
  auto curve = mean_over_runs(runs, method, seed, [](const SearchRun& run, size_t n) {
    return std::log(std::max(std::isfinite(run.best[n]) ? run.fastest / run.best[n] : 0, kLeastCompareShare));
  });
  for (double& value : curve) value = std::exp(value);
  return curve;
}

double gain_over_untuned(const std::vector<SearchRun>& runs, size_t method) {
  double sum = 0, count = 0;
  for (const SearchRun& run : runs) {
    if (run.method != method || run.best.empty() || !std::isfinite(run.best.back()) ||
        !std::isfinite(run.untuned))
      continue;
    sum += std::log(run.untuned / run.best.back());
    count += 1;
  }
  return count > 0 ? std::exp(sum / count) : 0;
}

std::vector<double> mean_seconds(const std::vector<SearchRun>& runs, size_t method) {
  return mean_over_runs(runs, method, std::nullopt,
                        [](const SearchRun& run, size_t n) { return run.spent[n]; });
}

}  // namespace tensorsmith::lab
