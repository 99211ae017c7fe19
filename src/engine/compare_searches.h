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
#include "engine/proposals.h"
#include "engine/warm_start.h"
#include "learn/dataset/store.h"
#include "learn/search_model.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct SearchMethod {
  std::string
      strategy;  // by name (search/strategy.h), or one that proposes (proposals.h): then nothing else is measured
  std::string model;                // as SearchModelOptions::model; of one that proposes, a file or "none"
  bool seeded = false;              // begins with what was fast elsewhere; measured searches only
  std::string language_model = {};  // a file, of kWrittenProposals and of strategies that ask a writer
  int64_t trials = 0;               // 0: CompareOptions::trials
};

struct CompareOptions {
  std::vector<SearchMethod> methods;
  int64_t trials = 64;  // of each task
  int seeds = 3;        // 0, 1, ...
  int batch = search::TuneOptions().batch;
  double epsilon = search::TuneOptions().epsilon;
  bool frozen = false;  // models do not learn from what the search measures
  // The fastest of the first n programs of each search, for each n here and at its end, is timed again beside those of the
  // other methods (SearchRun::winners): the first time of what is chosen for it flatters it. Measured searches only.
  std::vector<int64_t> again = {};
};

// A program that was the fastest of a search when it was measured. Number 0 is the untuned program, which the others are
// not compared with; 1 is the first one after it.
struct Winner {
  int64_t number = 0;
  std::string trace;
  double again = 0;  // seconds, timed again; 0: was not
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
  std::vector<Winner> winners;  // measured searches, by number
  // Of all programs that are known of the task: the recorded ones, or those that any of the searches measured.
  double fastest = 0;

  // Of the fastest program's speed, what is reached after this part of the trials, in (0, 1]; 0 before anything ran.
  double share_reached(double part) const;
  // Of the first n programs after the untuned one; 0: all. Null: none of them ran.
  const Winner* winner_of(int64_t n) const;
  // The fastest, timed again, of the programs that led when the first n programs after the untuned one were measured; 0:
  // all, -1: none. So a search is not held to one lucky time, as tune confirms its winners. with_untuned: the untuned
  // program counts as one of them, as it does where there is no other. +inf: nothing was timed again.
  double again_seconds(int64_t n, bool with_untuned) const;
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
  std::function<Status(const SearchRun&)> keep = {};  // again when its winners were timed
  DecodingReport* decoding = nullptr;                 // filled: what language models wrote
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

// The speed of the fastest of a method's first n programs as a share of that of the fastest of another search, both timed
// again (SearchRun::again_seconds).
// Geometric means as above; median and worst over tasks, of the geometric mean over seeds.
struct AgainScore {
  size_t tasks = 0;
  double mean = 0, deviation = 0, median = 0, worst = 0;
};
// n and with_untuned: as in again_seconds; of the other search all programs count, the untuned one, too.
AgainScore again_score(const std::vector<SearchRun>& runs, size_t method, int64_t n, bool with_untuned,
                       size_t reference);

// Share of the fastest program's speed after each trial, [0] after the first: the geometric mean over tasks, and over
// seeds where none is given.
std::vector<double> mean_curve(const std::vector<SearchRun>& runs, size_t method,
                               std::optional<uint64_t> seed = std::nullopt);
// How many times as fast as the untuned program the best one is: the geometric mean over tasks and seeds.
double gain_over_untuned(const std::vector<SearchRun>& runs, size_t method);
// Seconds of a search that these trials took, in the mean over tasks and seeds.
std::vector<double> mean_seconds(const std::vector<SearchRun>& runs, size_t method);

}  // namespace tensorsmith::engine
