// One tuning run: the loop behind tune().
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "search/task_scheduler.h"
#include "search/task_state.h"
#include "search/tuner.h"

namespace tensorsmith::search {

class TuningRun {
 public:
  TuningRun(const std::vector<TuneTask>& tasks, const target::Device& device, const TuneOptions& options,
            record::Database& database, measure::Measurer& measurer, learn::Trainer& trainer,
            const Clock& clock, LogSink& log, const ProgressFn& progress, const std::atomic<bool>& cancel);

  Result<TuneReport> run();

 private:
  Status prepare();
  Status measure_defaults();
  // Whether a measurement is one of the trials that the limits are about.
  enum class Counts { kYes, kNo };
  // The default schedule; plain loops too if that cannot be built or run.
  Status measure_default(size_t task, Counts counts = Counts::kYes);
  Status search();
  Status survey();
  // Of one task; true: it has all that it should have, or cannot have more.
  Result<bool> survey_visit(size_t task);
  Status confirm();
  TuneReport report();

  // Whether a record can be true.
  bool is_believed(size_t task, const record::MeasureResult& result);
  // Measures again what the database says is the fastest, and the default, until the fastest is one that ran
  // here; what fails or is slower here falls back.
  Status verify_records(size_t task);
  Status verify_all_records();
  // Once each: of records that cannot be true, and of those that do not hold here.
  void warn_of_records();
  // Every default that was not measured so far, whatever the limits. kMismatch names a task whose default
  // computes a wrong result.
  Status check_untuned();
  // kMismatch names a task of which no program ran, and why.
  Status check_all_have_programs() const;
  // The error with the task as its place.
  Error named(size_t task, const Error& error) const;

  // Measures and keeps the results; those already in the database are taken from there. Ends early when the
  // limits are reached.
  Status measure(size_t task, std::vector<Proposal> proposals, Counts counts = Counts::kYes);
  Status one_round(size_t task, size_t count);
  // The task's starters while little of it is measured, then the best candidates of tasks with the same
  // operators, rescaled to this task; nearest in size first.
  std::vector<ProposedCandidate> transferred(size_t task) const;
  void retrain();
  std::vector<size_t> warm_up_order() const;
  TaskStatus status_of(size_t task) const;
  void send_progress(size_t task);

  double elapsed() const { return clock_.monotonic_seconds() - start_; }
  // Whether the limits allow another measurement.
  bool finished() const;
  // Of the limits, how much is used up, in [0, 1].
  double progress() const;
  size_t batch_size(size_t task) const;
  size_t score_budget() const;
  // Seconds of measuring that a trial takes.
  double trial_cost(size_t task) const;

  const std::vector<TuneTask>& tasks_;
  const target::Device& device_;
  const TuneOptions& options_;
  record::Database& database_;
  measure::Measurer& measurer_;
  learn::Trainer& trainer_;
  const Clock& clock_;
  LogSink& log_;
  const ProgressFn& progress_;
  const std::atomic<bool>& cancel_;

  const StrategyKind* strategy_ = nullptr;
  ThreadPool pool_;
  Rng rng_;
  double start_;
  std::vector<std::unique_ptr<TaskState>> states_;
  std::vector<uint64_t> groups_;
  std::vector<double> task_seconds_;  // spent on measuring, by task
  std::vector<int64_t> task_trials_;  // in this run, by task
  std::vector<double> flops_;
  std::vector<double> bounds_;           // seconds, by task: see TaskStatus
  std::vector<sched::Trace> confirmed_;  // by task; empty before confirm()
  std::vector<char> is_confirmed_;
  std::unique_ptr<learn::CostModel> model_;
  size_t rows_at_training_ = 0;
  double training_seconds_ = 0, proposing_seconds_ = 0, measuring_seconds_ = 0;
  int64_t proposals_ = 0;
  int64_t trials_ = 0, resumed_ = 0;
  std::vector<double> least_seconds_;  // by task, what no program stays below
  int64_t implausible_ = 0, contradicted_ = 0;
  std::string first_implausible_, first_contradicted_;
  bool said_implausible_ = false, said_contradicted_ = false;
  int lost_workers_ = 0;                                       // in a row
  double turn_end_ = std::numeric_limits<double>::infinity();  // of a survey's turn, on the clock
};

}  // namespace tensorsmith::search
