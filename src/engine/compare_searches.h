// Strategies and cost models beside each other: the same tasks searched by each of several methods with several seeds.
// On recorded programs (search/recorded_space.h), which takes no machine and seconds instead of hours, or measured on
// this machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/load_model.h"
#include "engine/warm_start.h"
#include "learn/dataset/store.h"
#include "learn/search_model.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct SearchMethod {
  std::string strategy;  // by name (search/strategy.h)
  std::string model;     // as SearchModelOptions::model
  bool seeded = false;   // begins with what was fast elsewhere; measured searches only
  // A file; where given, what this language model writes is measured and nothing else, ranked by the model if there is one.
  // Measured searches only; the strategy is kLanguageModelStrategy.
  std::string language_model = {};
};
inline constexpr std::string_view kLanguageModelStrategy = "lm";

struct CompareOptions {
  std::vector<SearchMethod> methods;
  int64_t trials = 64;  // of each task
  int seeds = 3;        // 0, 1, ...
  int batch = search::TuneOptions().batch;
  double epsilon = search::TuneOptions().epsilon;
  bool frozen = false;  // models do not learn from what the search measures
};

// One search: a task on a device by a method.
struct SearchRun {
  std::string device, task, name;  // the task's key, then its name for people
  size_t method = 0;               // in CompareOptions::methods
  uint64_t seed = 0;
  bool seen = false;            // the model was trained on programs of the task
  std::vector<double> seconds;  // of each trial's program; +inf: failed
  double untuned = 0;           // seconds of the untuned program
  // Of the fastest program, after each trial; +inf before anything ran. The untuned program counts where the strategy
  // uses the draft that found it.
  std::vector<double> best;
  std::vector<double> spent;  // of the search, after each trial; on recorded programs what a trial would take
  // Of all programs that are known of the task: the recorded ones, or those that any of the searches measured.
  double fastest = 0;

  // Of the fastest program's speed, what is reached after this part of the trials, in (0, 1]; 0 before anything ran.
  double share_reached(double part) const;
};

struct CompareProgress {
  size_t done = 0, all = 0;  // searches
};
using CompareProgressFn = std::function<void(const CompareProgress&)>;

struct SimulationOptions {
  double share = 0;  // trials as a share of each task's programs, in (0, 1]; 0: CompareOptions::trials
  int64_t least_programs = 0;  // tasks with fewer that ran are left out; 0: three times the trials
  int threads = 1;             // tasks that are simulated at a time
};

// records: of the store, ascending; devices: by the store's numbers. Runs by task, method, seed. Cancelled: the tasks
// that were done. Errors: those of make_search_model; kInvalidArgument where no task has enough programs.
Result<std::vector<SearchRun>> simulate_searches(
    const learn::Store& store, const std::vector<const target::Device*>& devices,
    const std::vector<int64_t>& records, const CompareOptions& options, const SimulationOptions& simulation,
    LogSink& log, const CompareProgressFn& progress, const std::atomic<bool>& cancel);

struct MeasuredComparison {
  std::vector<SharedTask> tasks;
  const WarmStart* known = nullptr;  // for methods that are seeded; outlives the call
  std::vector<std::string> worker;   // the command line of measure's worker processes
  int threads = 1;                   // of a search
  // A run that was made before: fills it in. And what becomes of a new one.
  std::function<bool(SearchRun&)> find = {};
  std::function<Status(const SearchRun&)> keep = {};
};

// The tasks that take the most time by the estimate: of each model `count`; 0 = all.
Result<std::vector<SharedTask>> heaviest_tasks(const std::vector<ModelSource>& models,
                                               const target::Device& device, size_t count);

// Searches of one task and seed take turns, so that all methods meet the same machine. Runs by seed, task, method.
// Cancelled: what was done. kUnsupported for a device that is not local.
Result<std::vector<SearchRun>> measure_searches(const target::Device& device, const CompareOptions& options,
                                                const MeasuredComparison& comparison, const Clock& clock,
                                                LogSink& log, const CompareProgressFn& progress,
                                                const std::atomic<bool>& cancel);

// How a method did, over tasks and seeds. Each seed gives one geometric mean over the tasks; these have a mean and a
// standard deviation (0 of one seed).
struct MethodScore {
  size_t tasks = 0;
  size_t seen = 0;                      // tasks that the model was trained on
  std::vector<double> mean, deviation;  // of share_reached, by the parts asked for
  double worst = 1;                     // of the last part: the lowest over tasks, of the mean over seeds
};
MethodScore score_of(const std::vector<SearchRun>& runs, size_t method, const std::vector<double>& parts);

// Share of the fastest program's speed after each trial, [0] after the first: the geometric mean over tasks, and over
// seeds where none is given.
std::vector<double> mean_curve(const std::vector<SearchRun>& runs, size_t method,
                               std::optional<uint64_t> seed = std::nullopt);
// How many times as fast as the untuned program the best one is: the geometric mean over tasks and seeds.
double gain_over_untuned(const std::vector<SearchRun>& runs, size_t method);
// Seconds of a search that these trials took, in the mean over tasks and seeds.
std::vector<double> mean_seconds(const std::vector<SearchRun>& runs, size_t method);

}  // namespace tensorsmith::engine
