#include "search/tuner.h"

#include "search/tuning_run.h"

namespace tensorsmith::search {

double TuneProgress::model_default_seconds() const {
  double total = 0;
  for (const auto& task : tasks) total += task.weight * task.default_seconds;
  return total;
}

double TuneProgress::model_best_seconds() const {
  double total = 0;
  for (const auto& task : tasks) total += task.weight * task.best_seconds;
  return total;
}

Result<TuneReport> tune(const std::vector<TuneTask>& tasks, const target::Device& device,
                        const TuneOptions& options, record::Database& database, measure::Measurer& measurer,
                        learn::Trainer& trainer, const Clock& clock, LogSink& log, const ProgressFn& progress,
                        const std::atomic<bool>& cancel) {
  const auto invalid = [](std::string reason) {
    return Error{ErrorCode::kInvalidArgument, "tune", std::move(reason)};
  };
  if (options.trials < 0 || options.seconds < 0) return invalid("the limits must not be negative");
  if (options.trials == 0 && options.seconds == 0 && !options.survey)
    return invalid("no limit is given; set a number of trials or of seconds");
  if (options.batch < 1) return invalid("the batch must be at least 1");
  if (options.survey && options.survey->per_task < 1) return invalid("a survey needs programs of each task");
  if (options.threads < 1) return invalid("the number of threads must be at least 1");
  return TuningRun(tasks, device, options, database, measurer, trainer, clock, log, progress, cancel).run();
}

}  // namespace tensorsmith::search
