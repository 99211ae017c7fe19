// One tuning run: the implementation of tune().
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
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
  const PreparedTask& task_of(size_t task) const { return *tasks_[task].task; }
  const MeasuredPrograms& programs_of(size_t task) const { return states_[task]->programs(); }

  Status prepare();
  // Adds the energy to a record if the objective uses it. Returns false if it was not measured.
  bool complete(record::Record& record) const;
  // Takes the task's records of earlier runs, as far as they are believed.
  Status take_records(size_t task);
  Status measure_defaults();
  // Whether a measurement counts as a trial for the limits.
  enum class Counts { kYes, kNo };
  // Measures the default schedule, and plain loops if that cannot be built or run.
  Status measure_default(size_t task, Counts counts = Counts::kYes);
  Status search();
  Status survey();
  // Visits one task; returns true if it has all its measurements or cannot get more.
  Result<bool> survey_visit(size_t task);
  Status confirm();
  TuneProgress progress_report() const;
  std::vector<TaskAllocation> allocation() const;
  // Returns the model's time as the scheduler sees it (MeasuredPrograms::judged_seconds).
  double judged_model_seconds() const;
  // Returns the share of the model's time that measuring for as long again is expected to gain;
  // nullopt if it is not used (TuneOptions::until_gain) or too little is known.
  std::optional<double> gain_of_as_long_again() const;

  // Measures again the default and the program that is fastest according to the database, until the
  // fastest is one that ran here. Programs that fail or are slower here fall back.
  Status verify_records(size_t task);
  Status verify_all_records();
  // Measures every default that was not measured so far, regardless of the limits. kMismatch names
  // a task whose default computes a wrong result.
  Status check_untuned();
  // kMismatch names a task of which no program ran, and the reasons.
  Status check_all_have_programs() const;
  // Returns the error with the task as its place.
  Error named(size_t task, const Error& error) const;

  // Measures the proposals and keeps the results; takes results that are already in the database
  // from there. Ends early if the limits are reached.
  Status measure(size_t task, std::vector<Proposal> proposals, Counts counts = Counts::kYes);
  // Returns those of the proposals that are not in the database, and takes the results of the
  // others.
  Result<std::vector<Proposal>> not_in_database(size_t task, std::vector<Proposal> proposals);
  Status one_round(size_t task, size_t count);
  // Does one round of the search and adds its gain to the forecast.
  Status tuning_round(size_t task, RoundReason reason);
  // Returns how many of the task's seeds its next round should measure.
  size_t seeds_due(size_t task) const;
  // Returns the task's seeds while few of its programs are measured, then the best candidates of
  // tasks with the same operators, rescaled to this task, nearest in size first.
  std::vector<ProposedCandidate> transferred(size_t task, const ProposalRequest& request);
  // Returns the seeds to measure: the nearest one, then those with the best scores.
  std::vector<ProposedCandidate> chosen_seeds(size_t task, const ProposalRequest& request);
  std::vector<size_t> warm_up_order() const;
  TaskStatus status_of(size_t task) const;
  std::vector<TaskStatus> statuses() const;
  void send_progress(size_t task);

  const std::vector<TuneTask>& tasks_;
  const target::Device& device_;
  const TuneOptions& options_;
  const TuneServices& services_;
  const record::MeasureSettings settings_;  // of the run's records

  Limits limits_;
  Pace pace_;
  Forecast forecast_;
  ModelUpdates model_;
  RecordDoubts doubts_;
  ThreadPool pool_;
  Rng rng_;
  // Joules by record key; empty if the objective does not use energy.
  std::unordered_map<std::string, double> energies_;
  // By task.
  std::vector<std::unique_ptr<TaskState>> states_;
  std::vector<std::optional<sched::Trace>> confirmed_;
  std::vector<std::array<int64_t, kRoundReasons.size()>> rounds_;  // by RoundReason

  SearchEnd end_ = SearchEnd::kLimit;
  double last_gain_ = 0;  // see TuneReport
  int64_t failures_ = 0, resumed_ = 0;
  double expected_model_seconds_ = 0;                          // see TuneProgress
  int lost_workers_ = 0;                                       // consecutive ones
  double turn_end_ = std::numeric_limits<double>::infinity();  // clock time at which a survey's turn ends
};

}  // namespace tensorsmith::search
