#include "search/task_scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensorsmith::search {

double expected_gain(std::span<const TaskStatus> tasks, size_t task, const SchedulerOptions& options) {
  const auto& t = tasks[task];
  if (t.history.empty()) return std::numeric_limits<double>::infinity();
  const double g = t.best_seconds;
  const double rounds = t.history.size();
  // The possible gain of a task without a successful program is unknown; it is tried more and more
  // rarely.
  if (!std::isfinite(g)) return t.weight * 1e-6 / rounds;
  double backward = 0;
  const size_t window = options.window;
  if (t.history.size() > window) {
    const double before = t.history[t.history.size() - 1 - window];
    if (std::isfinite(before)) backward = (before - g) / window;
  } else if (std::isfinite(t.history.front())) {
    backward = (t.history.front() - g) / rounds;
  }
  double throughput = 0;
  for (const auto& other : tasks)
    if (other.group == t.group && std::isfinite(other.best_seconds) && other.best_seconds > 0)
      throughput = std::max(throughput, other.flops / other.best_seconds);
  const double most = std::max(0.0, g - t.bound_seconds);
  double reachable = g - most / rounds;
  if (throughput > 0) reachable = std::min(reachable, options.beta * t.flops / throughput);
  const double forward = std::clamp(g - reachable, 0.0, most);
  return t.weight * (options.alpha * backward + (1 - options.alpha) * forward) / t.round_cost;
}

std::vector<bool> worth_tuning(std::span<const TaskStatus> tasks, const SchedulerOptions& options) {
  const auto seconds = [](const TaskStatus& t) {
    return t.weight * (std::isfinite(t.best_seconds) ? t.best_seconds : t.expected_seconds);
  };
  double total = 0;
  for (const auto& t : tasks) total += seconds(t);
  std::vector<bool> worth;
  for (const auto& t : tasks) {
    const bool unknown = !std::isfinite(t.best_seconds) && t.expected_seconds <= 0;
    worth.push_back(unknown || seconds(t) >= options.min_share * total);
  }
  return worth;
}

std::string_view to_string(RoundReason reason) {
  switch (reason) {
    case RoundReason::kFirst:
      return "first";
    case RoundReason::kGain:
      return "gain";
    case RoundReason::kRandom:
      return "random";
  }
  return "";
}

ChosenTask choose_task(std::span<const TaskStatus> tasks, const SchedulerOptions& options, Rng& rng) {
  const std::vector<bool> worth = worth_tuning(tasks, options);
  std::vector<size_t> open, small;
  for (size_t i = 0; i < tasks.size(); ++i)
    if (!tasks[i].exhausted) (worth[i] ? open : small).push_back(i);
  if (open.empty()) open = std::move(small);
  if (open.empty()) return {tasks.size()};
  if (rng.bernoulli(options.epsilon)) return {open[rng.below(open.size())], RoundReason::kRandom};
  size_t best = open.front();
  double gain = -1;
  for (size_t i : open) {
    const double x = expected_gain(tasks, i, options);
    if (x > gain) {
      gain = x;
      best = i;
    }
  }
  return {best, RoundReason::kGain};
}

}  // namespace tensorsmith::search
