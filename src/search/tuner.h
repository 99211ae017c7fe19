// Tuning: strategies propose candidates for each task, and a scheduler distributes the trials over
// all tasks.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "base/sinks.h"
#include "base/thread_pool.h"
#include "learn/cost_model.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "search/objective.h"
#include "search/prepared_task.h"
#include "search/strategies.h"
#include "search/task_scheduler.h"

namespace tensorsmith::search {

// A candidate from outside, and why it is tried: kSeeded or kTransferred.
struct Seed {
  space::Candidate candidate;
  record::Reason reason = record::Reason::kSeeded;
};

struct TuneTask {
  std::shared_ptr<const PreparedTask> task;
  double weight = 1;  // number of times the model runs the task
  // Seconds of one call of the untuned schedule, to find out which tasks matter; 0 = not known.
  double hint_seconds = 0;
  // Candidates that were fast elsewhere, best first. The first few that this task's space contains
  // are measured right after the default (TuneOptions::seeds).
  std::vector<Seed> seeds = {};
  // Writes candidates for strategies that use a writer; null: none.
  std::shared_ptr<ScheduleWriter> writer = nullptr;
};

// Options for collecting training data instead of tuning: the tasks take turns, and each gets the
// same number of measurements.
struct Survey {
  int64_t per_task = 48;  // programs of each task, including the default and those in the database
  // A task whose untuned schedule takes longer keeps that as its only record.
  double max_default_seconds = 0.05;
  // A task's turn ends after this time, whatever it has: if large weights must be prepared, a
  // measurement can take a hundred times as long as others.
  double max_turn_seconds = 4;
};

struct TuneOptions {
  int64_t trials = 0;  // total measurements, 0 = no limit
  double seconds = 0;  // wall time, 0 = no limit
  // Ends the search if continuing for as long again is expected to gain less than this share of the
  // model's time; 0 = never. One of the three limits must be given, except for a survey.
  double until_gain = 0;
  int batch = 16;  // measured per round
  // The cost of which the best program of a task has least. If it is not the latency, the measurer must not
  // stop the timing of slow programs early.
  Objective objective;
  const StrategyKind* strategy = &kDefaultStrategy;
  double epsilon = StrategyView().epsilon;
  uint64_t seed = 0;
  bool flush_cache = false;      // measured with empty caches; the measurer must agree
  int threads = 1;               // of the tuner itself, not of the programs
  std::optional<Survey> survey;  // if given, replaces the search
  size_t seeds = 6;              // seeds of each task in its first round; all if StrategyKind::only_seeds
  // Whether to ignore what the database holds: the run takes the same course as one without
  // records, and only its measurer may use them (simulation.h). If measuring has no noise, a killed
  // run that starts again then ends with the same result as an uninterrupted one.
  bool replay = false;
  // Whether close winners are measured again, against each other and the default, before they are
  // reported.
  bool confirm = true;
};

// State of a task for a progress display; sent after every measurement.
struct TaskProgress {
  std::string name;
  double weight = 1;
  int64_t trials = 0, failures = 0;
  double default_seconds = 0;  // of the untuned schedule; +inf before it is measured
  double best_seconds = 0;     // of the best program by the run's objective; +inf before one has run
  double hint_seconds = 0;     // as in TuneTask
  std::string key = {};        // of the task
  // By the run's objective; +inf where the seconds are.
  double default_cost = 0, best_cost = 0;
};
struct TuneProgress {
  double elapsed_seconds = 0;
  int64_t trials = 0;    // new measurements in this run
  int64_t failures = 0;  // failed ones among the trials
  int64_t resumed = 0;   // records found in the database
  size_t current_task = 0;
  std::vector<TaskProgress> tasks;
  // Expected model_best_seconds() at the end of the search: the gains that the scheduler expects in
  // the time left are multiplied by the share of such gains that was achieved so far (forecast.h).
  // In (0, model_best_seconds()]; 0 = not known, as before the first few rounds, after the search
  // and with another objective than latency.
  double expected_model_seconds = 0;
  // Sum of weight * seconds. A task without measurements counts with its hint, or +inf if it has
  // none.
  double model_default_seconds() const;
  double model_best_seconds() const;
};
using ProgressFn = std::function<void(const TuneProgress&)>;

// The services that a run uses; all must outlive it.
struct TuneServices {
  record::Database& database;
  measure::Measurer& measurer;
  learn::CostModel* model = nullptr;  // ranks candidates; null: only the design space's estimate does
  const Clock& clock;
  LogSink& log;
  // Checked between measurements: true ends the run with its present results.
  const std::atomic<bool>& cancel;
  ProgressFn progress = {};  // called after every measurement; may be empty
};

// Whether something keeps a task from further rounds when the search ends.
enum class TaskEnd : uint8_t {
  kOpen,       // nothing
  kSmall,      // it takes too small a share of the model's time
  kExhausted,  // every candidate is measured
};
std::string_view to_string(TaskEnd end);  // "open", "small", "exhausted"

// The measurements and the time that a run spent on a task, and why.
struct TaskAllocation {
  int64_t trials = 0;                                  // new measurements in this run
  double seconds = 0;                                  // for measuring and for proposing
  std::array<int64_t, kRoundReasons.size()> rounds{};  // of the search, by RoundReason
  // Decrease of model_best_seconds() that one more round would be expected to bring for each second of
  // tuning; +inf: not known.
  double next_gain = 0;
  TaskEnd end = TaskEnd::kOpen;
};

struct RankedTrace {
  sched::Trace trace;
  double seconds = 0;
};

// The reason why a search ended.
enum class SearchEnd : uint8_t {
  kLimit,      // trials or seconds are used up, or the run was cancelled
  kExhausted,  // every candidate of every task is measured
  kGain,       // little further gain is expected (TuneOptions::until_gain)
};

struct TuneReport {
  TuneProgress final;
  SearchEnd end = SearchEnd::kLimit;
  std::string objective;  // Objective::text
  // With kGain: expected gain of continuing as long again, as share of the model's time.
  double expected_gain = 0;
  std::vector<sched::Trace> best_traces;  // by task; the default's trace if nothing is better
  // By task: false if the default failed, so that another program must replace it.
  std::vector<bool> untuned_works;
  // By task: the few best programs that ran, best first.
  std::vector<std::vector<RankedTrace>> fastest;
  std::vector<TaskAllocation> allocation;  // by task
};

// Tunes all tasks, which must be prepared for this device. First measures the default schedule of each task,
// even of those not worth tuning, and compares its output with the reference. A wrong output is an error
// (kMismatch, which names the task), as is a task of which no program runs. Records are written to the
// database as they arrive, so a killed run loses at most the candidate being measured, and a new run
// continues from there. Programs in the database are not measured again, except for those that would be
// chosen: they count only after they have run here too. Records that are faster than the device can be are
// ignored.
Result<TuneReport> tune(const std::vector<TuneTask>& tasks, const target::Device& device,
                        const TuneOptions& options, const TuneServices& services);

}  // namespace tensorsmith::search
