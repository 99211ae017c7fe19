// Forecasts what the rest of a run will gain. It is shown to users and used by --until-gain.
#pragma once

#include <optional>
#include <vector>

#include "search/task_scheduler.h"

namespace tensorsmith::search {

// Returns the expected decrease of sum(weight * seconds) in `seconds` of measuring: each round goes
// to the task with the largest expected_gain() and achieves that gain. No task gets below its
// bound. Exhausted tasks, and tasks of which no program has run, contribute nothing.
double expected_decrease(std::vector<TaskStatus> tasks, double seconds, const SchedulerOptions& options);

// Tracks how much of the expected gains is achieved. Ansor's gain is optimistic, since it is meant
// only for choosing between tasks.
class Forecast {
 public:
  // Adds a round: the decrease of sum(weight * seconds) that expected_gain() predicted, and the
  // actual one. Ignored if either is not finite.
  void add_round(double expected, double actual);
  // Returns the share of the expected decreases that was achieved, in [0, 1]; nullopt before the
  // first few rounds.
  std::optional<double> share_come_true() const;

 private:
  int rounds_ = 0;
  double expected_ = 0, actual_ = 0;
};

}  // namespace tensorsmith::search
