#include "lab/compare_networks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "codegen/backend.h"
#include "engine/device/measured_device.h"
#include "engine/tune/model_trials.h"
#include "engine/tune/prepare_tasks.h"
#include "engine/tune/tune_options.h"
#include "engine/tune/watched_machine.h"
#include "lab/kinds/kinds.h"
#include "lab/proposals.h"
#include "learn/lm/language_model.h"
#include "learn/search_model.h"
#include "search/strategies.h"
#include "search/tuner.h"

namespace tensorsmith::lab {

namespace {

// The untuned and the new network run in turn for about this long.
constexpr double kWholeTimingSeconds = 2;

// A network that is compared, as all of its parts need it.
struct NetworkAtHand {
  engine::LoadedModel model;
  engine::PreparedTasks tasks;
  std::unique_ptr<engine::ModelTrials> trials;  // the first variant is untuned
  std::vector<double> untuned;                  // by task, seconds of all calls in a run of the network
};

// Notes the improvements of a search. If there are targets, tells it to stop when its kernels are as fast as
// all of them.
class NetworkWatch {
 public:
  NetworkWatch(NetworkRun& run, std::map<std::string, double> targets, double before,
               const std::atomic<bool>& cancel)
      : run_(run),
        targets_(std::move(targets)),
        watches_(!targets_.empty()),
        before_(before),
        cancel_(cancel) {}

  void operator()(const search::TuneProgress& p) {
    if (cancel_) stop = true;
    const bool all = std::all_of(p.tasks.begin(), p.tasks.end(),
                                 [](const search::TaskProgress& task) { return task.trials > 0; });
    const double best = p.model_best_seconds(), at = before_ + p.elapsed_seconds;
    if (!all || !std::isfinite(best)) return;
    if (run_.curve.empty() || best < run_.curve.back().second) run_.curve.emplace_back(at, best);
    for (auto target = targets_.begin(); target != targets_.end();) {
      const bool reached = best <= target->second;
      if (reached) run_.matched[target->first] = at;
      target = reached ? targets_.erase(target) : std::next(target);
    }
    if (watches_ && targets_.empty()) stop = true;
  }

  std::atomic<bool> stop{false};

 private:
  NetworkRun& run_;
  std::map<std::string, double> targets_;  // seconds of the kernels, by method
  bool watches_;
  double before_;
  const std::atomic<bool>& cancel_;
};

// Returns by task the fastest of the random programs that were measured; the untuned one if none ran.
Result<std::vector<engine::TaskSchedule>> fastest_random(record::Database& database,
                                                         const engine::PreparedTasks& tasks) {
  std::map<std::string, std::pair<double, std::string>> fastest;  // seconds and trace
  TS_RETURN_IF_ERROR(database.for_each([&](const record::Record& record) {
    const bool random = record.candidate.reason == record::Reason::kRandom ||
                        record.candidate.reason == record::Reason::kEnumerated;
    if (!record.result.ok() || !random) return Status();
    const std::pair<double, std::string> program{record.result.best_estimate(), record.trace};
    const auto [at, fresh] = fastest.emplace(record.task_key, program);
    if (!fresh) at->second = std::min(at->second, program);
    return Status();
  }));
  std::vector<engine::TaskSchedule> schedules;
  for (const auto& task : tasks) {
    schedules.push_back(engine::untuned_schedule(*task));
    const auto found = fastest.find(task->key());
    if (found == fastest.end()) continue;
    TS_ASSIGN_OR_RETURN(schedules.back().trace, sched::parse_trace(found->second.second));
    schedules.back().measured_seconds = found->second.first;
  }
  return schedules;
}

class NetworkComparer {
 public:
  NetworkComparer(const target::Device& device, const NetworkComparison& comparison, const Clock& clock,
                  LogSink& log, const std::atomic<bool>& cancel)
      : device_(device), c_(comparison), clock_(clock), log_(log), cancel_(cancel) {}

  Result<std::vector<NetworkRun>> run() {
    TS_CHECK(c_.known != nullptr, "there are no records to transfer");
    for (const engine::ModelSource& network : c_.networks)
      TS_CHECK(!sources_of(network.path).empty(), network.path + " has no source models");
    for (const engine::ModelSource& network : c_.networks) {
      network_.reset();
      for (int seed = 0; seed < c_.seeds; ++seed) {
        for (const NetworkMethod& method : c_.methods) {
          if (cancel_) return std::move(runs_);
          TS_ASSIGN_OR_RETURN(const bool complete, part(network, method, static_cast<uint64_t>(seed)));
          if (!complete) return std::move(runs_);
        }
      }
    }
    return std::move(runs_);
  }

 private:
  std::vector<engine::SourceModel> sources_of(const std::string& network) const {
    std::vector<engine::SourceModel> sources = c_.sources;
    std::erase_if(sources, [&](const engine::SourceModel& source) { return source.name == network; });
    return sources;
  }

  // Returns false if the part was interrupted.
  Result<bool> part(const engine::ModelSource& network, const NetworkMethod& method, uint64_t seed) {
    NetworkRun run;
    run.network = network.path;
    run.method = method.name;
    run.seed = seed;
    if (!c_.find || !c_.find(run)) {
      if (network_ == nullptr) TS_RETURN_IF_ERROR(load(network));
      TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(":memory:"));
      TS_ASSIGN_OR_RETURN(const bool complete, make(method, *database, run));
      if (!complete) return false;
      if (c_.keep) TS_RETURN_IF_ERROR(c_.keep(run, *database));
    }
    runs_.push_back(std::move(run));
    if (c_.progress)
      c_.progress(runs_.back(), runs_.size(), c_.networks.size() * c_.methods.size() * c_.seeds);
    return true;
  }

  Status load(const engine::ModelSource& source) {
    auto at_hand = std::make_unique<NetworkAtHand>();
    TS_ASSIGN_OR_RETURN(at_hand->model, engine::load_model(source, device_));
    TS_ASSIGN_OR_RETURN(at_hand->tasks,
                        engine::prepare_tasks(at_hand->model.partition, device_, {}, c_.threads));
    TS_ASSIGN_OR_RETURN(const codegen::Backend* backend, codegen::backend_for(device_));
    at_hand->trials = std::make_unique<engine::ModelTrials>(at_hand->model, device_, *backend, c_.threads,
                                                            /*seed=*/0, clock_);
    std::vector<engine::TaskSchedule> untuned;
    for (const auto& task : at_hand->tasks) untuned.push_back(engine::untuned_schedule(*task));
    TS_RETURN_IF_ERROR(at_hand->trials->add(std::move(untuned)));
    TS_RETURN_IF_ERROR(at_hand->trials->time(0));
    for (size_t t = 0; t < at_hand->tasks.size(); ++t)
      at_hand->untuned.push_back(at_hand->trials->task_seconds(0, t));
    network_ = std::move(at_hand);
    if (measurer_ != nullptr) return {};
    TS_ASSIGN_OR_RETURN(measurer_,
                        engine::make_watched_measurer(device_, {}, c_.worker, clock_, log_, cancel_));
    if (!c_.language_model.empty()) TS_RETURN_IF_ERROR(proposers_.load(request(), c_.threads));
    return {};
  }

  ProposalRequest request() const { return {std::string(kWrittenProposals), "none", c_.language_model}; }

  const NetworkRun* earlier(const NetworkRun& run, const std::string& method) const {
    for (const NetworkRun& other : runs_)
      if (other.network == run.network && other.seed == run.seed && other.method == method) return &other;
    return nullptr;
  }

  // Sets the source of a transfer and the programs of the tasks.
  void transfer(const NetworkMethod& method, std::vector<search::TuneTask>& tasks, NetworkRun& run) const {
    const auto sources = sources_of(run.network);
    run.source = engine::rank_sources(network_->model.partition.tasks, network_->untuned, sources, *c_.known,
                                      method.ranking)
                     .front()
                     .name;
    engine::SeedOptions options{c_.programs, c_.programs};
    for (const engine::SourceModel& source : sources)
      if (source.name == run.source) options.only_tasks = source.tasks;
    for (search::TuneTask& task : tasks)
      for (const engine::SeededCandidate& seed : c_.known->seeds(*task.task, options))
        task.seeds.push_back(
            {seed.candidate, seed.source.same_task ? record::Reason::kSeeded : record::Reason::kTransferred});
  }

  // Sets the strategy, the limits and the programs from elsewhere.
  Status prepare(const NetworkMethod& method, std::vector<search::TuneTask>& tasks,
                 search::TuneOptions& tuning, NetworkRun& run) {
    switch (method.kind) {
      case NetworkMethodKind::kRandomStart:
        tuning.strategy = &search::kRandomStrategy;
        tuning.survey =
            search::Survey{static_cast<int64_t>(c_.programs) + 1, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::infinity()};
        return {};
      case NetworkMethodKind::kTransfer:
        transfer(method, tasks, run);
        break;
      case NetworkMethodKind::kWritten: {
        static const engine::WarmStart kNothing;
        for (search::TuneTask& task : tasks) {
          if (cancel_) break;
          TS_ASSIGN_OR_RETURN(task.seeds,
                              proposers_.propose(request(), *task.task, kNothing, c_.programs, run.seed));
        }
        break;
      }
      case NetworkMethodKind::kSameTime:
        tuning.seconds = earlier(run, method.like)->seconds;
        return {};
      case NetworkMethodKind::kUntilMatch:
        tuning.seconds = c_.limit;
        return {};
    }
    tuning.strategy = &search::kTransferStrategy;
    tuning.trials = engine::kMostTrials;  // the search ends when all programs are measured
    return {};
  }

  // Returns the run of another method that did the same: a transfer from the same source, or a search of the
  // same duration.
  const NetworkRun* same_as(const NetworkMethod& method, const NetworkRun& run) const {
    for (const NetworkMethod& other : c_.methods) {
      const NetworkRun* made = earlier(run, other.name);
      if (made == nullptr || other.kind != method.kind) continue;
      if (method.kind == NetworkMethodKind::kTransfer && made->source == run.source) return made;
      if (method.kind == NetworkMethodKind::kSameTime &&
          earlier(run, other.like)->seconds == earlier(run, method.like)->seconds)
        return made;
    }
    return nullptr;
  }

  std::map<std::string, double> targets_of(const NetworkRun& run) const {
    std::map<std::string, double> targets;
    for (const NetworkMethod& other : c_.methods)
      if (other.kind == NetworkMethodKind::kTransfer || other.kind == NetworkMethodKind::kWritten)
        targets[other.name] = earlier(run, other.name)->kernel_seconds;
    return targets;
  }

  // Makes a part. Returns false if it was interrupted.
  Result<bool> make(const NetworkMethod& method, record::Database& database, NetworkRun& run) {
    std::vector<search::TuneTask> tasks;
    for (size_t t = 0; t < network_->tasks.size(); ++t) {
      const int calls = network_->model.partition.tasks[t].calls;
      tasks.push_back({.task = network_->tasks[t],
                       .weight = static_cast<double>(calls),
                       .hint_seconds = network_->untuned[t] / calls});
    }
    search::TuneOptions tuning;
    tuning.batch = c_.batch;
    tuning.seed = run.seed;
    tuning.threads = c_.threads;
    const double start = clock_.monotonic_seconds();
    TS_RETURN_IF_ERROR(prepare(method, tasks, tuning, run));
    if (const NetworkRun* same = same_as(method, run)) {
      run = *same;
      run.method = method.name;
      return true;
    }
    if (cancel_) return false;
    const double before = clock_.monotonic_seconds() - start;
    std::unique_ptr<learn::CostModel> model;
    if (tuning.strategy->uses_scores) {
      TS_ASSIGN_OR_RETURN(
          model,
          learn::make_search_model(
              {.model = c_.cost_model, .seed = run.seed, .threads = c_.threads, .kinds = &cost_model_kinds()},
              device_));
    }
    const bool matches = method.kind == NetworkMethodKind::kUntilMatch;
    NetworkWatch watch(run, matches ? targets_of(run) : std::map<std::string, double>(), before, cancel_);
    TS_RETURN_IF_ERROR(engine::register_device(device_, database));
    const auto report =
        search::tune(tasks, device_, tuning,
                     {database, *measurer_, model.get(), clock_, log_, matches ? watch.stop : cancel_,
                      [&watch](const search::TuneProgress& p) { watch(p); }});
    if (cancel_) return false;
    if (!report.ok())
      return Error{report.error().code, run.network + ", " + method.title, report.error().message()};
    run.seconds = before + report->final.elapsed_seconds;
    run.trials = report->final.trials;
    run.failures = report->final.failures;
    run.untuned_kernel_seconds = report->final.model_default_seconds();
    run.kernel_seconds = report->final.model_best_seconds();
    std::vector<engine::TaskSchedule> schedules;
    if (method.kind == NetworkMethodKind::kRandomStart) {
      TS_ASSIGN_OR_RETURN(schedules, fastest_random(database, network_->tasks));
      run.curve.clear();
      run.kernel_seconds = 0;
      for (size_t t = 0; t < schedules.size(); ++t) {
        const double alone = schedules[t].measured_seconds;
        run.kernel_seconds += tasks[t].weight * (alone > 0 ? alone : report->final.tasks[t].default_seconds);
      }
    } else {
      for (size_t t = 0; t < tasks.size(); ++t) {
        const double alone = report->final.tasks[t].best_seconds;
        schedules.push_back({report->best_traces[t], std::isfinite(alone) ? alone : 0});
      }
    }
    TS_RETURN_IF_ERROR(run_whole(method, std::move(schedules), run));
    return !cancel_;
  }

  // Runs the network with the schedules and untuned, in turn.
  Status run_whole(const NetworkMethod& method, std::vector<engine::TaskSchedule> schedules,
                   NetworkRun& run) {
    engine::ModelTrials& trials = *network_->trials;
    trials.keep_first();
    TS_RETURN_IF_ERROR(trials.add(std::move(schedules)));
    TS_ASSIGN_OR_RETURN(const engine::Comparison outputs, trials.compare_outputs(1));
    if (!outputs.ok)
      return Error{ErrorCode::kMismatch, run.network + ", " + method.title,
                   "the network does not compute the outputs of the untuned one: " + outputs.detail};
    run.worst_difference = outputs.worst_absolute;
    TS_RETURN_IF_ERROR(trials.time(kWholeTimingSeconds));
    run.whole = {trials.model_seconds(0), trials.model_seconds(1),
                 std::max(trials.spread(0), trials.spread(1))};
    return {};
  }

  const target::Device& device_;
  const NetworkComparison& c_;
  const Clock& clock_;
  LogSink& log_;
  const std::atomic<bool>& cancel_;
  std::unique_ptr<NetworkAtHand> network_;  // null until a part of it is made
  std::unique_ptr<measure::Measurer> measurer_;
  Proposers proposers_;
  std::vector<NetworkRun> runs_;
};

}  // namespace

std::vector<NetworkMethod> network_methods(bool language_model) {
  using enum NetworkMethodKind;
  using engine::SourceRanking;
  std::vector<NetworkMethod> methods = {
      {"random", "random start", kRandomStart},
      {"transfer-heuristic", "transfer, source by heuristic", kTransfer, SourceRanking::kHeuristic},
      {"transfer-gain", "transfer, source by gain", kTransfer, SourceRanking::kGain},
      {"search-heuristic", "search as long as transfer by heuristic", kSameTime, {}, "transfer-heuristic"},
      {"search-gain", "search as long as transfer by gain", kSameTime, {}, "transfer-gain"}};
  if (language_model) {
    methods.push_back({"lm", "language model", kWritten});
    methods.push_back({"search-lm", "search as long as the language model", kSameTime, {}, "lm"});
  }
  methods.push_back({"search-match", "search until it matches", kUntilMatch});
  return methods;
}

Status check_network_comparison(const target::Device& device, const NetworkComparison& comparison) {
  TS_RETURN_IF_ERROR(engine::check_measurable(device, "a comparison"));
  const auto model =
      learn::make_search_model({.model = comparison.cost_model, .kinds = &cost_model_kinds()}, device);
  if (!model.ok()) return model.error();
  if (comparison.language_model.empty()) return {};
  const auto language_model = learn::lm::read_language_model(comparison.language_model);
  return language_model.ok() ? Status() : Status(language_model.error());
}

Result<std::vector<NetworkRun>> compare_networks(const target::Device& device,
                                                 const NetworkComparison& comparison, const Clock& clock,
                                                 LogSink& log, const std::atomic<bool>& cancel) {
  TS_RETURN_IF_ERROR(check_network_comparison(device, comparison));
  return NetworkComparer(device, comparison, clock, log, cancel).run();
}

NetworkScore network_score(const std::vector<NetworkRun>& runs, const std::string& network,
                           const std::string& method, const std::string& reference) {
  NetworkScore score;
  double logs = 0, count = 0;
  for (const NetworkRun& run : runs) {
    if (run.network != network || run.method != method) continue;
    double ratio = run.whole.ratio();
    if (!reference.empty()) {
      const auto other = std::find_if(runs.begin(), runs.end(), [&](const NetworkRun& r) {
        return r.network == network && r.method == reference && r.seed == run.seed;
      });
      if (other == runs.end()) continue;
      ratio /= other->whole.ratio();
    }
    score.low = count == 0 ? ratio : std::min(score.low, ratio);
    score.high = std::max(score.high, ratio);
    logs += std::log(ratio);
    count += 1;
  }
  if (count > 0) score.mean = std::exp(logs / count);
  return score;
}

}  // namespace tensorsmith::lab
