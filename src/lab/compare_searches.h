// Compares search strategies and cost models: each of several methods searches the same tasks with
// several seeds. The searches run either on recorded programs (search/recorded_space.h), which
// needs no measurements and takes seconds instead of hours, or on this machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/load_model.h"
#include "engine/tune/warm_start.h"
#include "lab/proposals.h"
#include "learn/dataset/store.h"
#include "learn/search_model.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::lab {

struct SearchMethod {
  // Name of a search strategy (strategies/strategies.h), or of a proposing method (proposals.h), of which
  // only the proposals are measured.
  std::string strategy;
  std::string model;                // as SearchModelOptions::model; for a proposing method a file or "none"
  bool seeded = false;              // begins with programs that were fast elsewhere; measured searches only
  std::string language_model = {};  // file, for kWrittenProposals and strategies that ask a writer
  int64_t trials = 0;               // 0: CompareOptions::trials
};

struct CompareOptions {
  std::vector<SearchMethod> methods;
  int64_t trials = 64;  // per task
  int seeds = 3;        // 0, 1, ...
  int batch = search::TuneOptions().batch;
  double epsilon = search::TuneOptions().epsilon;
  bool frozen = false;  // cost models do not learn from the measurements of the search
  // For each n listed here, and for the end of the search, the fastest of the first n programs is
  // timed again beside the winners of the other methods (SearchRun::winners), because the time that
  // a winner was chosen by is biased low. Measured searches only.
  std::vector<int64_t> again = {};
};

// A program that was the fastest of its search when it was measured. Number 0 is the untuned
// program, which does not compete with the others; number 1 is the first program after it.
struct Winner {
  int64_t number = 0;
  std::string trace;
  double again = 0;  // seconds when timed again; 0: not timed again
};

// One search: a task on a device by a method.
struct SearchRun {
  std::string device, task, name;  // the task's key, then its display name
  size_t method = 0;               // index into CompareOptions::methods
  uint64_t seed = 0;
  bool seen = false;            // the cost model was trained on programs of the task
  std::vector<double> seconds;  // of each trial's program; +inf: failed
  double untuned = 0;           // seconds of the untuned program
  // Seconds of the fastest program after each trial; +inf before any program ran. The untuned
  // program counts if the strategy uses the draft score, which also chose the untuned program.
  std::vector<double> best;
  // elapsed seconds of the search after each trial; on recorded programs the time that the trials
  // would take
  std::vector<double> spent;
  std::vector<Winner> winners;  // by number; measured searches only
  // Seconds of the fastest known program of the task: among all recorded programs, or among those
  // that any of the searches measured.
  double fastest = 0;

  // Speed of the best program after this part of the trials, relative to the fastest known program:
  // in (0, 1]; 0 before any program ran.
  double share_reached(double part) const;
  // The winner among the first n programs after the untuned one; n = 0: among all. Null: none of
  // them ran.
  const Winner* winner_of(int64_t n) const;
  // Least `again` time of the winners among the first n programs after the untuned one; n = 0: all,
  // n = -1: none. All successive winners count, so that one lucky measurement does not decide, just
  // as tune confirms its winners. The untuned program counts if `with_untuned` is set or if no
  // other winner exists. +inf: none was timed again.
  double again_seconds(int64_t n, bool with_untuned) const;
};

struct CompareProgress {
  size_t done = 0, all = 0;  // searches
};
using CompareProgressFn = std::function<void(const CompareProgress&)>;

struct SimulationOptions {
  // Trials as a share of each task's programs, in (0, 1]; 0: use CompareOptions::trials.
  double share = 0;
  // Leaves out tasks with fewer successful programs; 0: three times the trials.
  int64_t least_programs = 0;
  int threads = 1;  // tasks simulated at a time
};

// `records` are record numbers of the store, ascending; `devices` is indexed by the store's device
// numbers. Returns runs by task, method, seed; when cancelled, those of the tasks that finished.
// Errors: those of make_search_model; kInvalidArgument if no task has enough programs.
Result<std::vector<SearchRun>> simulate_searches(
    const learn::Store& store, const std::vector<const target::Device*>& devices,
    const std::vector<int64_t>& records, const CompareOptions& options, const SimulationOptions& simulation,
    LogSink& log, const CompareProgressFn& progress, const std::atomic<bool>& cancel);

struct MeasuredComparison {
  std::vector<engine::SharedTask> tasks;
  const engine::WarmStart* known = nullptr;  // for seeded methods; must outlive the call
  std::vector<std::string> worker;           // the command line of measure's worker processes
  int threads = 1;                           // threads of a search
  // `find` fills in a run that an earlier call made and returns true. `keep` stores a new run, and
  // stores it again once its winners were timed again.
  std::function<bool(SearchRun&)> find = {};
  std::function<Status(const SearchRun&)> keep = {};  // called again when its winners were timed
  engine::DecodingReport* decoding = nullptr;         // if not null, receives the language models' statistics
};

// Returns the tasks with the largest estimated time, `count` per model; 0 = all.
Result<std::vector<engine::SharedTask>> heaviest_tasks(const std::vector<engine::ModelSource>& models,
                                                       const target::Device& device, size_t count);

// The methods take turns on each task and seed, so that all of them meet the same state of the
// machine. Returns runs by seed, task, method; when cancelled, the runs so far. kUnsupported for a
// device that is not local.
Result<std::vector<SearchRun>> measure_searches(const target::Device& device, const CompareOptions& options,
                                                const MeasuredComparison& comparison, const Clock& clock,
                                                LogSink& log, const CompareProgressFn& progress,
                                                const std::atomic<bool>& cancel);

// Score of a method over tasks and seeds. Each seed gives a geometric mean over the tasks; mean and
// deviation are over these means. The deviation of a single seed is 0.
struct MethodScore {
  size_t tasks = 0;
  size_t seen = 0;                      // tasks that the model was trained on
  std::vector<double> mean, deviation;  // of share_reached, one for each requested part
  double worst = 1;                     // for the last part: the lowest, over tasks, of the mean over seeds
};
MethodScore score_of(const std::vector<SearchRun>& runs, size_t method, const std::vector<double>& parts);

// Speed of the winner among a method's first n programs, relative to the winner of a reference
// search, both timed again (SearchRun::again_seconds). Mean and deviation as in MethodScore; median
// and worst over tasks, of the geometric mean over seeds.
struct AgainScore {
  size_t tasks = 0;
  double mean = 0, deviation = 0, median = 0, worst = 0;
};
// n and with_untuned are as in again_seconds and apply to `method`. All programs of the reference
// count, including the untuned one.
AgainScore again_score(const std::vector<SearchRun>& runs, size_t method, int64_t n, bool with_untuned,
                       size_t reference);

// Share of the fastest program's speed after each trial ([0]: after the first): the geometric mean
// over tasks, and also over seeds if `seed` is not given.
std::vector<double> mean_curve(const std::vector<SearchRun>& runs, size_t method,
                               std::optional<uint64_t> seed = std::nullopt);
// Speed-up of the best program over the untuned one: the geometric mean over tasks and seeds.
double gain_over_untuned(const std::vector<SearchRun>& runs, size_t method);
// Seconds of search time after each trial: the mean over tasks and seeds.
std::vector<double> mean_seconds(const std::vector<SearchRun>& runs, size_t method);

}  // namespace tensorsmith::lab
