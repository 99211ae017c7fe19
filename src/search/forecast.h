// What the rest of a run is expected to gain, for those who watch it. Nothing is decided by it.
#pragma once

#include <optional>
#include <vector>

#include "search/task_scheduler.h"

namespace tensorsmith::search {

// Expected decrease of sum(weight * seconds) in so many seconds of measuring: each round goes to the task with
// the largest expected_gain() and brings what that says. No task gets below its bound. Tasks of which nothing
// ran, and exhausted ones, bring nothing.
double expected_decrease(std::vector<TaskStatus> tasks, double seconds, const SchedulerOptions& options);

// Ansor's gain is a hope: it is for choosing between tasks. This is how much of it comes true.
class Forecast {
 public:
  // What expected_gain() said of a round, as a decrease of sum(weight * seconds), and what the round brought.
  // Rounds of which that is not finite do not count.
  void add_round(double expected, double actual);
  // Of all decreases that were expected, what came true, in [0, 1]; nullopt before the first few rounds.
  std::optional<double> share_come_true() const;

 private:
  int rounds_ = 0;
  double expected_ = 0, actual_ = 0;
};

}  // namespace tensorsmith::search
