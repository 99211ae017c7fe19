#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/shipped_file.h"
#include "engine/predict/predict.h"
#include "engine/report/report_json.h"
#include "lab/kinds/kinds.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/log_sink.h"
#include "tools/options.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct PredictOptions {
  ModelOptions model;
  DeviceOptions device;
  engine::ScheduleOptions schedules;
  std::string latency_model;
  DatabaseOption database;
  bool untuned = false;
  bool json = false;
};

std::string format_error(double log_sigma) {
  return log_sigma > 0 ? fmt::format("{:.0f} %", 100 * std::expm1(log_sigma)) : "-";
}

void print(const engine::Prediction& prediction) {
  const engine::ModelPrediction& p = prediction.latency;
  const graph::Partition& partition = prediction.model.partition;
  Table table({"task", "calls", "schedule", "time per call", "error", "time of all calls", "share of run"});
  std::vector<size_t> order(p.tasks.size());
  for (size_t t = 0; t < order.size(); ++t) order[t] = t;
  const auto all_calls = [&](size_t t) { return p.tasks[t].seconds * partition.tasks[t].calls; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return all_calls(a) > all_calls(b); });
  for (const size_t t : order) {
    const auto& task = partition.tasks[t];
    table.add({task.name + (p.tasks[t].roofline_because.empty() ? "" : " (roofline)"),
               std::to_string(task.calls), prediction.tuned[t] ? "tuned" : "untuned",
               format_seconds(p.tasks[t].seconds), format_error(p.tasks[t].log_sigma),
               format_seconds(all_calls(t)), fmt::format("{:.1f} %", 100 * all_calls(t) / p.seconds)});
  }
  print_lines(table.text());
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    if (!p.tasks[t].roofline_because.empty())
      print_out("{} (roofline): {}\n", partition.tasks[t].name, p.tasks[t].roofline_because);
  }
  const bool gpu = prediction.device.kind() == target::DeviceKind::kGpu;
  print_out("the run makes {} kernel calls, one after the other; added for reloading caches: {}; {}\n",
            p.calls.size(), format_seconds(p.refill_seconds),
            gpu ? "launches are part of the tasks' times"
                : "added for launches: " + format_seconds(p.launch_seconds));
  for (const std::string& note : prediction.notes) print_out("note: {}\n", note);
  const std::string range = p.log_90 > 0
                                ? fmt::format(" (90 % interval: {} to {})", format_seconds(p.low_seconds()),
                                              format_seconds(p.high_seconds()))
                                : std::string(" (its error is unknown)");
  print_out("predicted time of a run on {}: {}{}; predicted by {}\n", prediction.device.name,
            format_seconds(p.seconds), range, prediction.predictor);
}

Status predict(const PredictOptions& options) {
  engine::PredictOptions predict_options;
  predict_options.kinds = &lab::cost_model_kinds();
  predict_options.cpu_model = shipped_file(kCostModelFile);
  predict_options.roofline = options.latency_model == "none";
  if (!predict_options.roofline) predict_options.latency_model = options.latency_model;
  predict_options.device = options.device.device;
  predict_options.threads = options.device.threads;
  if (options.database.is_there()) predict_options.database = options.database.path;
  predict_options.untuned = options.untuned;
  predict_options.schedules = options.schedules;
  StderrLogSink log(LogLevel::kWarning);
  TS_ASSIGN_OR_RETURN(const engine::ModelSource source, options.model.source());
  TS_ASSIGN_OR_RETURN(const engine::Prediction prediction, engine::predict(source, predict_options, log));
  for (const std::string& warning : prediction.warnings) warn(warning);
  if (options.json) {
    print_notes(prediction.notes);
    print_json(engine::to_json(prediction), 2);
  } else {
    print(prediction);
  }
  return {};
}

}  // namespace

void add_predict_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = app.add_subcommand(
      "predict", "Predict how long a model takes on a device, as a whole and by task, without running it");
  options->model.add_to(*command);
  options->device.add_to(*command);
  command
      ->add_option("--model", options->latency_model,
                   "Cost model that predicts, a file made by `train`, or none for the device's roofline "
                   "(default: on CPUs the "
                   "model that comes with Tensorsmith, on GPUs the estimate of the design space)")
      ->type_name("MODEL");
  options->database.add_to(
      *command,
      "Record database to take the schedules of tuned tasks from (except when the estimate "
      "predicts), and measured properties of the device");
  command->add_flag("--untuned", options->untuned, "Predict the times of the default schedules");
  add_tune_option(*command, "winograd", &options->schedules.winograd);
  command->add_flag("--json", options->json, "Print the prediction as JSON, with the start of each call");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return predict(*options); }); });
}

}  // namespace tensorsmith::tools
