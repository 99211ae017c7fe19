#include "lab/collect.h"

#include <algorithm>
#include <set>

#include "engine/device/measured_device.h"
#include "engine/fleet/fleet_measurer.h"
#include "engine/tune/prepare_tasks.h"
#include "lab/strategies/strategies.h"
#include "learn/search_model.h"

namespace tensorsmith::lab {
namespace {

// Uses short timings: a model learns more from ten programs timed within a few percent than from
// one timed exactly.
measure::MeasureOptions measure_options() {
  measure::MeasureOptions options;
  options.min_repeats = 3;
  options.max_repeats = 5;
  options.min_repeat_s = 0.0005;
  options.target_spread = 0.05;
  options.loser_factor = 0;  // slow programs are as useful as training labels as fast ones
  return options;
}

// Passes on each distinct message once.
class OnceLogSink final : public LogSink {
 public:
  explicit OnceLogSink(LogSink& sink) : sink_(sink) {}
  void log(LogLevel level, std::string_view message) override {
    if (said_.emplace(message).second) sink_.log(level, message);
  }

 private:
  LogSink& sink_;
  std::set<std::string> said_;
};

}  // namespace

Result<CollectReport> collect(const std::vector<engine::SharedTask>& tasks, const CollectOptions& options,
                              record::Database& database, const Clock& clock, LogSink& sink,
                              CollectEvents& events, const std::atomic<bool>& cancel) {
  std::vector<const graph::Task*> wanted_tasks;
  for (const engine::SharedTask& shared : tasks) wanted_tasks.push_back(&shared.task);
  for (const target::Device& device : options.devices) {
    TS_RETURN_IF_ERROR(engine::check_measurable(device, "collecting"));
    TS_RETURN_IF_ERROR(engine::register_device(device, database));
  }
  // Each turn of a device creates a measurer and a search, which repeat their warnings.
  OnceLogSink log(sink);
  learn::SearchModelOptions model_options = options.cost_model;
  model_options.seed = options.seed;
  model_options.threads = options.threads;
  const double start = clock.monotonic_seconds();
  CollectReport total;
  const auto seconds_left = [&] { return start + options.seconds - clock.monotonic_seconds(); };
  const auto finished = [&] {
    return cancel || (options.records > 0 && total.trials >= options.records) ||
           (options.seconds > 0 && seconds_left() <= 0);
  };
  // The search resumes from the database, which has the measurements of earlier turns.
  for (int64_t wanted = options.batch; !finished(); wanted += options.batch) {
    const int64_t per_task = std::min(wanted, options.per_task);
    for (size_t d = 0; d < options.devices.size() && !finished(); ++d) {
      const target::Device& device = options.devices[d];
      TS_ASSIGN_OR_RETURN(auto measurer, engine::make_run_measurer(options.where, database, device,
                                                                   measure_options(), clock, log, cancel));
      TS_ASSIGN_OR_RETURN(const auto cost_model, learn::make_search_model(model_options, device));
      // Only the design spaces of one device are in memory at a time.
      TS_ASSIGN_OR_RETURN(engine::PreparedTasks prepared,
                          engine::prepare_tasks(wanted_tasks, device, {}, options.threads));
      std::vector<search::TuneTask> tune_tasks;
      for (auto& task : prepared) tune_tasks.push_back({.task = std::move(task)});
      search::TuneOptions tuning;
      tuning.survey = search::Survey{per_task, options.slowest_seconds};
      if (options.records > 0) tuning.trials = options.records - total.trials;
      tuning.batch = options.batch;
      tuning.strategy = &kMixedStrategy;
      tuning.seed = options.seed;
      tuning.threads = options.threads;
      total.elapsed_seconds = clock.monotonic_seconds() - start;
      // Starting the worker and reading the model took time too; 0 would mean no limit.
      if (options.seconds > 0) tuning.seconds = seconds_left();
      if (options.seconds > 0 && tuning.seconds <= 0) break;
      TS_ASSIGN_OR_RETURN(
          const search::TuneReport report,
          search::tune(tune_tasks, device, tuning,
                       {database, *measurer, cost_model.get(), clock, log, cancel,
                        [&](const search::TuneProgress& p) { events.progress(d, total, p); }}));
      total.trials += report.final.trials;
      if (wanted == options.batch) total.resumed += report.final.resumed;
    }
    if (per_task == options.per_task) break;
  }
  total.elapsed_seconds = clock.monotonic_seconds() - start;
  total.interrupted = cancel;
  return total;
}

}  // namespace tensorsmith::lab
