#include "search/forecast.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::search {

namespace {

// Later rounds are ignored: they add little, and the forecast is repeated after every round of the
// run.
constexpr int kMostRounds = 200;
constexpr int kFewestRounds = 3;  // needed for a meaningful share

}  // namespace

double expected_decrease(std::vector<TaskStatus> tasks, double seconds, const SchedulerOptions& options) {
  if (tasks.empty()) return 0;
  std::vector<double> gains(tasks.size(), 0);
  const auto update = [&](size_t i) {
    const TaskStatus& t = tasks[i];
    const bool open = !t.exhausted && !t.history.empty() && std::isfinite(t.best_seconds);
    gains[i] = open ? expected_gain(tasks, i, options) : 0;
  };
  for (size_t i = 0; i < tasks.size(); ++i) update(i);
  double decrease = 0;
  for (int round = 0; round < kMostRounds && seconds > 0; ++round) {
    const size_t best = std::max_element(gains.begin(), gains.end()) - gains.begin();
    if (gains[best] <= 0) break;
    TaskStatus& t = tasks[best];
    const double spent = std::min(t.round_cost, seconds);
    const double most = t.weight * std::max(0.0, t.best_seconds - t.bound_seconds);
    const double gained = std::min(gains[best] * spent, most);
    decrease += gained;
    seconds -= spent;
    t.best_seconds -= gained / t.weight;
    t.history.push_back(t.best_seconds);
    // A gain depends on the task and on the throughput of its group.
    for (size_t i = 0; i < tasks.size(); ++i)
      if (tasks[i].group == t.group) update(i);
  }
  return decrease;
}

void Forecast::add_round(double expected, double actual) {
  if (!std::isfinite(expected) || !std::isfinite(actual)) return;
  ++rounds_;
  expected_ += expected;
  actual_ += actual;
}

std::optional<double> Forecast::share_come_true() const {
  if (rounds_ < kFewestRounds) return std::nullopt;
  return expected_ > 0 ? std::clamp(actual_ / expected_, 0.0, 1.0) : 0;
}

}  // namespace tensorsmith::search
