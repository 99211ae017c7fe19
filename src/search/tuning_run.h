// One tuning run: the loop behind tune().
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "search/forecast.h"
#include "search/limits.h"
#include "search/model_updates.h"
#include "search/pace.h"
#include "search/record_doubts.h"
#include "search/task_scheduler.h"
#include "search/task_state.h"
#include "search/tuner.h"

namespace tensorsmith::search {

class TuningRun {
 public:
  TuningRun(const std::vector<TuneTask>& tasks, const target::Device& device, const TuneOptions& options,
            const TuneServices& services);

  Result<TuneReport> run();

 private:
  Status prepare();
  // Of a task: what earlier runs found out, as far as it is believed.
  Status take_records(size_t task);
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
  TuneProgress progress_report() const;
  // Share of the model's time that measuring for as long again is expected to gain; nullopt where nobody asks
  // (TuneOptions::until_gain) or too little is known.
  std::optional<double> gain_of_as_long_again() const;

  // Measures again what the database says is the fastest, and the default, until the fastest is one that ran
  // here; what fails or is slower here falls back.
  Status verify_records(size_t task);
  Status verify_all_records();
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
  // Those of the proposals that are not in the database; takes what is.
  Result<std::vector<Proposal>> not_in_database(size_t task, std::vector<Proposal> proposals);
  Status one_round(size_t task, size_t count);
  // One round of the search; what it brought goes into the forecast.
  Status tuning_round(size_t task);
  // The task's seeds while little of it is measured, then the best candidates of tasks with the same
  // operators, rescaled to this task; nearest in size first.
  std::vector<ProposedCandidate> transferred(size_t task, const ProposalRequest& request);
  // Of the task's seeds those that are measured: the nearest, then those that the scores think fastest.
  std::vector<ProposedCandidate> chosen_seeds(size_t task, const ProposalRequest& request);
  std::vector<size_t> warm_up_order() const;
  TaskStatus status_of(size_t task) const;
  std::vector<TaskStatus> statuses() const;
  void send_progress(size_t task);

  const std::vector<TuneTask>& tasks_;
  const target::Device& device_;
  const TuneOptions& options_;
  const TuneServices& services_;

  Limits limits_;
  Pace pace_;
  Forecast forecast_;
  const StrategyKind* strategy_;
  ModelUpdates model_;
  RecordDoubts doubts_;
  ThreadPool pool_;
  Rng rng_;
  // By task.
  std::vector<std::unique_ptr<TaskState>> states_;
  std::vector<uint64_t> groups_;
  std::vector<double> flops_;
  std::vector<double> bounds_;  // seconds, see TaskStatus
  std::vector<std::optional<sched::Trace>> confirmed_;

  SearchEnd end_ = SearchEnd::kLimit;
  double last_gain_ = 0;  // see TuneReport
  int64_t failures_ = 0, resumed_ = 0;
  double expected_model_seconds_ = 0;                          // see TuneProgress
  int lost_workers_ = 0;                                       // in a row
  double turn_end_ = std::numeric_limits<double>::infinity();  // of a survey's turn, on the clock
};

}  // namespace tensorsmith::search
