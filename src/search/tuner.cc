#include "search/tuner.h"

#include <cmath>

#include "search/tuning_run.h"

namespace tensorsmith::search {

namespace {

double known_seconds(double measured, const TaskProgress& task) {
  return !std::isfinite(measured) && task.trials == 0 && task.hint_seconds > 0 ? task.hint_seconds : measured;
}

}  // namespace

double TuneProgress::model_default_seconds() const {
  double total = 0;
  for (const auto& task : tasks) total += task.weight * known_seconds(task.default_seconds, task);
  return total;
}

double TuneProgress::model_best_seconds() const {
  double total = 0;
  for (const auto& task : tasks) total += task.weight * known_seconds(task.best_seconds, task);
  return total;
}

std::string_view to_string(TaskEnd end) {
  switch (end) {
    case TaskEnd::kOpen:
      return "open";
    case TaskEnd::kSmall:
      return "small";
    case TaskEnd::kExhausted:
      return "exhausted";
  }
  return "";
}

Result<TuneReport> tune(const std::vector<TuneTask>& tasks, const target::Device& device,
                        const TuneOptions& options, const TuneServices& services) {
  const auto invalid = [](std::string reason) {
    return Error{ErrorCode::kInvalidArgument, "tune", std::move(reason)};
  };
  if (options.trials < 0 || options.seconds < 0) return invalid("the limits must not be negative");
  if (options.trials == 0 && options.seconds == 0 && options.until_gain == 0 && !options.survey)
    return invalid("no limit is given; set a number of trials, a number of seconds or a minimum gain");
  if (!(options.until_gain >= 0 && options.until_gain < 1)) return invalid("until_gain must be in [0, 1)");
  if (!(options.epsilon >= 0 && options.epsilon <= 1)) return invalid("epsilon must be in [0, 1]");
  if (options.batch < 1) return invalid("the batch must be at least 1");
  if (options.survey && options.survey->per_task < 1) return invalid("a survey needs programs of each task");
  if (options.threads < 1) return invalid("the number of threads must be at least 1");
  for (const TuneTask& task : tasks)
    TS_CHECK(task.task->device().key() == device.key(),
             "task " + task.task->name() + " is of another device");
  return TuningRun(tasks, device, options, services).run();
}

}  // namespace tensorsmith::search
