// Tuning: strategies that propose candidates for one task, and the scheduler that spends trials over all
// tasks.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "base/sinks.h"
#include "base/thread_pool.h"
#include "learn/cost_model.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "search/strategy.h"
#include "space/design_space.h"

namespace tensorsmith::search {

// A candidate that comes from outside, and why: kSeeded or kTransferred.
struct Seed {
  space::Candidate candidate;
  record::Reason reason = record::Reason::kSeeded;
};

struct TuneTask {
  std::string key;  // structural key
  std::string name;
  ir::Workload workload;
  double weight = 1;  // how often the model runs it
  // Of one call of the untuned schedule, as far as known: which tasks matter. 0 = unknown.
  double hint_seconds = 0;
  // What was fast elsewhere, best first. Right after the default, the first few that this task's space has
  // are measured (TuneOptions::seeds).
  std::vector<Seed> seeds = {};
  // Writes candidates for the strategies that ask one; null: there is none.
  std::shared_ptr<ScheduleWriter> writer = nullptr;
  // The programs that it may have; null: those of the workload's design space on the device.
  std::shared_ptr<const SearchSpace> space = nullptr;
};

// Collecting training data instead of tuning: tasks take turns, and each gets the same number of
// measurements.
struct Survey {
  int64_t per_task = 48;  // programs of each task, those in the database included; the default is among them
  // Tasks whose untuned schedule takes longer keep that as their only record.
  double max_default_seconds = 0.05;
  // A task's turn ends after this time, whatever it has: large weights to prepare can make a measurement take
  // a hundred times as long as others.
  double max_turn_seconds = 4;
};

struct TuneOptions {
  int64_t trials = 0;  // total measurements, 0 = no limit
  double seconds = 0;  // wall time, 0 = no limit
  // Ends the search where going on for as long again is expected to gain less than this share of the model's time;
  // 0 = never. One of the three must be given, unless for a survey.
  double until_gain = 0;
  int batch = 16;                          // measured per round
  std::string strategy{kDefaultStrategy};  // by name, see strategy.h
  double epsilon = StrategyView().epsilon;
  uint64_t seed = 0;
  record::MeasureSettings settings;
  // Whether schedules may use Winograd's filtering; without it, records that do are as if they were not
  // there.
  bool winograd = true;
  int threads = 1;               // of the tuner itself
  std::optional<Survey> survey;  // where given, it replaces the search
  size_t seeds = 6;              // of each task, in its first round; the strategy "transfer" takes all
  // What the database holds is not read ahead: the run takes the way of one that begins from nothing, and only its
  // measurer may know what is there (simulation.h). Where measuring has no noise, a killed run that starts
  // again so ends where it would have ended.
  bool replay = false;
  // Close winners are measured again against each other and the default before they are reported.
  bool confirm = true;
};

// What a progress display needs, sent after every measurement.
struct TaskProgress {
  std::string name;
  double weight = 1;
  int64_t trials = 0, failures = 0;
  double default_seconds = 0;  // the untuned schedule, +inf before it is measured
  double best_seconds = 0;     // +inf before
  double hint_seconds = 0;     // as the task has it
  std::string key = {};        // as the task has it
};
struct TuneProgress {
  double elapsed_seconds = 0;
  int64_t trials = 0;    // new measurements in this run
  int64_t failures = 0;  // of these
  int64_t resumed = 0;   // records found in the database
  size_t current_task = 0;
  std::vector<TaskProgress> tasks;
  // What model_best_seconds() is expected to be when the search ends: the gains that the scheduler expects in the time
  // left, times the share of such gains that came true so far (forecast.h). In (0, model_best_seconds()]; 0 = not
  // known, as before the first few rounds and after the search.
  double expected_model_seconds = 0;
  // Sum of weight * seconds. A task that is not measured yet counts with its hint, +inf without one.
  double model_default_seconds() const;
  double model_best_seconds() const;
};
using ProgressFn = std::function<void(const TuneProgress&)>;

// What a run works with; all outlives it.
struct TuneServices {
  record::Database& database;
  measure::Measurer& measurer;
  learn::CostModel* model = nullptr;  // ranks candidates; null: the design space's estimate alone does
  const Clock& clock;
  LogSink& log;
  const std::atomic<bool>& cancel;  // asked between measurements: true ends the run with what it has
  ProgressFn progress = {};         // called after every measurement; may be empty
};

struct RankedTrace {
  sched::Trace trace;
  double seconds = 0;
};

// Why a search ended.
enum class SearchEnd : uint8_t {
  kLimit,      // of trials or seconds, or it was cancelled
  kExhausted,  // every candidate of every task is measured
  kGain,       // little more is expected (TuneOptions::until_gain)
};

struct TuneReport {
  TuneProgress final;
  SearchEnd end = SearchEnd::kLimit;
  double expected_gain = 0;  // with kGain: share of the model's time that as long again was expected to bring
  std::vector<sched::Trace> best_traces;  // by task; the default's when nothing is faster
  // By task: false if the default failed, so that another program must take its place.
  std::vector<bool> untuned_works;
  // By task: the best few that ran, fastest first.
  std::vector<std::vector<RankedTrace>> fastest;
};

// Tunes all tasks. The default schedule of each task is measured first, of tasks that are not worth tuning
// too: every default's output is compared with the reference, and a wrong one is an error (kMismatch, which
// names the task), as is a task of which no program runs. Records go to the database as they arrive, so a
// killed run loses at most the candidate being measured and a new one goes on. What the database holds is not
// measured again, except for what would be chosen: it counts once it ran here too, and records that are
// faster than the device can be do not count.
Result<TuneReport> tune(const std::vector<TuneTask>& tasks, const target::Device& device,
                        const TuneOptions& options, const TuneServices& services);

}  // namespace tensorsmith::search
