// Tracks the cost of measuring and proposing in this run, and derives batch sizes and budgets from
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/limits.h"
#include "search/tuner.h"

namespace tensorsmith::search {

class Pace {
 public:
  Pace(size_t tasks, const TuneOptions& options, const Limits& limits)
      : options_(options),
        limits_(limits),
        task_seconds_(tasks, 0),
        task_trials_(tasks, 0),
        task_proposing_seconds_(tasks, 0),
        candidate_seconds_(tasks, 0) {}

  void measured(size_t task, double seconds) {
    measuring_seconds_ += seconds;
    task_seconds_[task] += seconds;
  }
  void count_trial(size_t task) { ++task_trials_[task]; }
  // Records that a proposal of the task scored `scored` candidates and took `seconds`.
  void proposed(size_t task, size_t scored, double seconds);

  int64_t trials(size_t task) const { return task_trials_[task]; }
  // Seconds of the run for a task, for measuring and for proposing.
  double seconds(size_t task) const { return task_seconds_[task] + task_proposing_seconds_[task]; }
  // Measuring seconds per trial of the task. Tasks differ: large kernels take longer to build and
  // run.
  double trial_cost(size_t task) const;
  double measuring_seconds() const { return measuring_seconds_; }
  // Measuring seconds that the limits leave, if measuring keeps its present share of the time; +inf
  // without limits.
  double measuring_seconds_left() const;
  // Number of measurements in the task's next round, in which `seeds` candidates from elsewhere are due.
  size_t batch_size(size_t task, size_t seeds) const;
  // Number of candidates that a proposal of the task may fully score. Keeps within their share of
  // the time both all proposals together and this one, assuming that scoring is as slow as in the
  // task's last proposal.
  size_t score_budget(size_t task) const;
  // Seconds after which the next proposal stops scoring candidates fully.
  double proposal_seconds() const;

 private:
  const TuneOptions& options_;
  const Limits& limits_;
  std::vector<double> task_seconds_;  // measuring time by task
  std::vector<int64_t> task_trials_;  // trials in this run by task
  std::vector<double> task_proposing_seconds_;
  std::vector<double> candidate_seconds_;  // to score one candidate, by task; 0: not known
  double slowest_candidate_ = 0;
  double measuring_seconds_ = 0, proposing_seconds_ = 0;
  int64_t proposals_ = 0;
};

}  // namespace tensorsmith::search
