// What measuring and proposing cost in this run so far, and what that allows.
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
        candidate_seconds_(tasks, 0) {}

  void measured(size_t task, double seconds) {
    measuring_seconds_ += seconds;
    task_seconds_[task] += seconds;
  }
  void count_trial(size_t task) { ++task_trials_[task]; }
  // A proposal of the task that scored so many candidates took so long.
  void proposed(size_t task, size_t scored, double seconds);

  // Seconds of measuring that a trial takes. Tasks differ: big kernels are slow to build and to run.
  double trial_cost(size_t task) const;
  double measuring_seconds() const { return measuring_seconds_; }
  // Seconds of measuring that the limits leave, if measuring keeps its share of the time. +inf without limits.
  double measuring_seconds_left() const;
  // Measurements of the task's next round.
  size_t batch_size(size_t task) const;
  // Candidates that a proposal of the task may score in full, so that proposing keeps to its share of the time:
  // of all proposals together, and of this one if it scores as slowly as the task did before.
  size_t score_budget(size_t task) const;
  // After which the next proposal scores no further candidate in full.
  double proposal_seconds() const;

 private:
  const TuneOptions& options_;
  const Limits& limits_;
  std::vector<double> task_seconds_;       // spent on measuring, by task
  std::vector<int64_t> task_trials_;       // in this run, by task
  std::vector<double> candidate_seconds_;  // of scoring one, by task; 0: not known
  double slowest_candidate_ = 0;
  double measuring_seconds_ = 0, proposing_seconds_ = 0;
  int64_t proposals_ = 0;
};

}  // namespace tensorsmith::search
