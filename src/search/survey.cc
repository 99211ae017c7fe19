// Collects training data: the tasks take turns, and each gets the same number of measurements.
#include <algorithm>
#include <numeric>

#include "search/tuning_run.h"

namespace tensorsmith::search {

namespace {

// A default schedule is not measured if its estimate exceeds the survey's limit by more than this
// factor.
constexpr double kHopelessEstimate = 4;

}  // namespace

Result<bool> TuningRun::survey_visit(size_t task) {
  const MeasuredPrograms& programs = programs_of(task);
  if (!programs.default_known()) {
    // Running the reference program would take minutes.
    if (task_of(task).untuned_estimate() > kHopelessEstimate * options_.survey->max_default_seconds)
      return true;
    TS_RETURN_IF_ERROR(measure_default(task));
    if (limits_.finished()) return false;
  }
  if (!(programs.default_seconds() <= options_.survey->max_default_seconds)) return true;
  const int64_t before = programs.trials(), left = options_.survey->per_task - before;
  if (left <= 0) return true;
  turn_end_ = services_.clock.monotonic_seconds() + options_.survey->max_turn_seconds;
  TS_RETURN_IF_ERROR(one_round(task, std::min<int64_t>(left, options_.batch)));
  return states_[task]->exhausted() || programs.trials() == before ||
         programs.trials() >= options_.survey->per_task;
}

Status TuningRun::survey() {
  // The order is random, so that an interrupted or limited run leaves a fair sample of the tasks.
  std::vector<size_t> open(states_.size());
  std::iota(open.begin(), open.end(), size_t{0});
  for (size_t i = open.size(); i > 1; --i) std::swap(open[i - 1], open[rng_.below(i)]);
  while (!open.empty() && !limits_.finished()) {
    std::vector<size_t> still_open;
    for (const size_t task : open) {
      if (limits_.finished()) return {};
      const auto visited = survey_visit(task);
      if (visited.ok()) {
        if (!*visited) still_open.push_back(task);
        continue;
      }
      // Errors that concern only this task (no reference program, too large) do not end the survey.
      const ErrorCode code = visited.error().code;
      if (code != ErrorCode::kUnsupported && code != ErrorCode::kMismatch &&
          code != ErrorCode::kResourceExhausted && code != ErrorCode::kInvalidArgument)
        return visited.error();
      services_.log.log(LogLevel::kWarning,
                        task_of(task).name() + " is left out: " + visited.error().message());
    }
    open = std::move(still_open);
  }
  return {};
}

}  // namespace tensorsmith::search
