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
      : options_(options), limits_(limits), task_seconds_(tasks, 0), task_trials_(tasks, 0) {}

  void measured(size_t task, double seconds) {
    measuring_seconds_ += seconds;
    task_seconds_[task] += seconds;
  }
  void count_trial(size_t task) { ++task_trials_[task]; }
  void proposed(double seconds) {
    proposing_seconds_ += seconds;
    ++proposals_;
  }

  // Seconds of measuring that a trial takes. Tasks differ: big kernels are slow to build and to run.
  double trial_cost(size_t task) const;
  // Measurements of the task's next round.
  size_t batch_size(size_t task) const;
  // Candidates that a proposal may score in full, so that proposing keeps to its share of the time.
  size_t score_budget() const;

 private:
  const TuneOptions& options_;
  const Limits& limits_;
  std::vector<double> task_seconds_;  // spent on measuring, by task
  std::vector<int64_t> task_trials_;  // in this run, by task
  double measuring_seconds_ = 0, proposing_seconds_ = 0;
  int64_t proposals_ = 0;
};

}  // namespace tensorsmith::search
