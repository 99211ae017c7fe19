#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "learn/dataset/import.h"
#include "learn/latency/held_out.h"
#include "record/database.h"
#include "target/assumed.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/log_sink.h"
#include "tools/measured_device.h"
#include "tools/predict_model.h"
#include "tools/report.h"
#include "tools/starter.h"
#include "tools/tuned_schedules.h"

namespace tensorsmith::tools {
namespace {

// The model that is shipped for schedules of our design space, which has CPUs only.
constexpr const char* kLatencyModelFile = "cpu.safetensors";

struct PredictOptions {
  ModelOptions model;
  DeviceOptions device;
  ScheduleOptions schedules;
  std::string latency_model;
  DatabaseOption database;
  bool untuned = false;
  bool json = false;
};

struct Prepared {
  target::Device device;
  std::vector<target::AssumedAttribute> assumed;
  std::vector<TaskSchedule> schedules;
  std::vector<char> tuned;  // by task
};

// The schedules that `compile` would take, and the device with all that is known of it.
Result<Prepared> prepare(const PredictOptions& options, const LoadedModel& model) {
  Prepared out;
  TS_ASSIGN_OR_RETURN(const target::Device whole, target::find_device(options.device.device));
  if (whole.kind == target::DeviceKind::kCpu && options.device.threads > whole.cores) {
    return Error{
        ErrorCode::kInvalidArgument, "--threads " + std::to_string(options.device.threads),
        whole.name + " has " + std::to_string(whole.cores) + (whole.cores == 1 ? " core" : " cores")};
  }
  TS_ASSIGN_OR_RETURN(out.device, options.device.resolve());
  if (out.device.kind == target::DeviceKind::kGpu) {
    return Error{ErrorCode::kUnsupported, "--device " + options.device.device,
                 "there is no design space for GPUs yet, so no schedule whose latency could be predicted; "
                 "name a CPU"};
  }
  TS_ASSIGN_OR_RETURN(out.schedules, default_schedules(model.partition, out.device, options.schedules));
  out.tuned.assign(out.schedules.size(), 0);
  if (options.database.is_there()) {
    if (!options.untuned) {
      StderrLogSink log(LogLevel::kWarning);
      TS_ASSIGN_OR_RETURN([[maybe_unused]] const size_t found,
                          apply_best_records(model.partition, out.device, options.database.path,
                                             options.schedules, out.schedules, log));
      for (size_t t = 0; t < out.tuned.size(); ++t) out.tuned[t] = out.schedules[t].measured_seconds > 0;
    }
    TS_ASSIGN_OR_RETURN(auto database, record::Database::open_read_only(options.database.path));
    TS_ASSIGN_OR_RETURN(out.device, described_device(out.device, *database));
  } else {
    out.device = with_measurements(std::move(out.device));
  }
  TS_ASSIGN_OR_RETURN(out.assumed, target::assumed_attributes(options.device.device, out.device));
  out.device = target::with_assumed_figures(std::move(out.device));
  return out;
}

// Models without a physical part say nothing of programs of another kind of device than they know.
Status check_kind(const learn::LatencyModel& model, const std::string& file, const target::Device& device) {
  const learn::ModelCard& card = model.card();
  if (learn::knows_kind(card, device.kind) || card.new_kind[0].known() || card.new_kind[1].known()) return {};
  return Error{
      ErrorCode::kMismatch, file,
      "was trained on GPUs only and says nothing of programs on " + device.name +
          ", a CPU; name a model that knows CPUs, or --model none for the least time that the device allows"};
}

// What whoever reads the prediction has to know of it, a line each.
std::vector<std::string> notes_on(const Prepared& prepared, const ModelPrediction& p,
                                  const learn::LatencyModel* model) {
  std::vector<std::string> out;
  if (!prepared.assumed.empty())
    out.push_back("assumed of " + prepared.device.name +
                  ", which does not say it: " + target::to_string(prepared.assumed));
  if (model != nullptr) {
    target::Device named = prepared.device;
    named.name = learn::stored_device_name(prepared.device);
    for (std::string& note : learn::describe_unseen(model->card(), p.unseen, named))
      out.push_back(std::move(note));
  }
  const auto raised = std::count_if(p.tasks.begin(), p.tasks.end(), [](const auto& t) { return t.raised; });
  if (raised > 0)
    out.push_back(
        fmt::format("{} of {} tasks: the model said less than the device's peak and bandwidths allow; "
                    "they take the least time that these allow",
                    raised, p.tasks.size()));
  return out;
}

std::string format_error(double log_sigma) {
  return log_sigma > 0 ? fmt::format("{:.0f} %", 100 * std::expm1(log_sigma)) : "-";
}

nlohmann::json as_json(const LoadedModel& model, const Prepared& prepared, const ModelPrediction& p,
                       const std::string& predictor, double retention,
                       const std::vector<std::string>& notes) {
  nlohmann::json tasks = nlohmann::json::array();
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    const auto& task = model.partition.tasks[t];
    nlohmann::json entry = {{"name", task.name},
                            {"key", task.key},
                            {"calls", task.calls},
                            {"schedule", prepared.tuned[t] ? "tuned" : "untuned"},
                            {"seconds", p.tasks[t].seconds},
                            {"least_seconds", p.tasks[t].least_seconds},
                            {"log_sigma", p.tasks[t].log_sigma}};
    if (prepared.tuned[t]) entry["measured_seconds"] = prepared.schedules[t].measured_seconds;
    if (!p.tasks[t].roofline_because.empty()) entry["roofline_because"] = p.tasks[t].roofline_because;
    tasks.push_back(std::move(entry));
  }
  nlohmann::json calls = nlohmann::json::array();
  for (size_t c = 0; c < p.calls.size(); ++c)
    calls.push_back({{"task", model.partition.calls[c].task},
                     {"start_seconds", p.calls[c].start_seconds},
                     {"seconds", p.calls[c].seconds},
                     {"refill_seconds", p.calls[c].refill_seconds}});
  nlohmann::json assumed = nlohmann::json::object();
  for (const auto& attribute : prepared.assumed) assumed[attribute.name] = attribute.value;
  const nlohmann::json unknown;
  return {{"model", model.graph.name},
          {"device", nlohmann::json::parse(target::to_json(prepared.device))},
          {"predictor", predictor},
          {"seconds", p.seconds},
          {"log_sigma", p.log_sigma},
          {"least_seconds", p.least_seconds},
          {"low_seconds", p.log_90 > 0 ? nlohmann::json(p.low_seconds()) : unknown},
          {"high_seconds", p.log_90 > 0 ? nlohmann::json(p.high_seconds()) : unknown},
          {"unseen", {{"device", p.unseen.device}, {"threads", p.unseen.threads}, {"kind", p.unseen.kind}}},
          {"assumed", assumed},
          {"notes", notes},
          {"refill_seconds", p.refill_seconds},
          {"cache_retention", retention},
          {"launch_seconds", p.launch_seconds},
          {"tasks", tasks},
          {"calls", calls}};
}

void print(const LoadedModel& model, const Prepared& prepared, const ModelPrediction& p,
           const std::string& predictor, const std::vector<std::string>& notes) {
  Table table({"task", "calls", "schedule", "a call", "error", "all calls", "share"});
  std::vector<size_t> order(p.tasks.size());
  for (size_t t = 0; t < order.size(); ++t) order[t] = t;
  const auto all_calls = [&](size_t t) { return p.tasks[t].seconds * model.partition.tasks[t].calls; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return all_calls(a) > all_calls(b); });
  for (const size_t t : order) {
    const auto& task = model.partition.tasks[t];
    table.add({task.name + (p.tasks[t].roofline_because.empty() ? "" : " (roofline)"),
               std::to_string(task.calls), prepared.tuned[t] ? "tuned" : "untuned",
               format_seconds(p.tasks[t].seconds), format_error(p.tasks[t].log_sigma),
               format_seconds(all_calls(t)), fmt::format("{:.1f} %", 100 * all_calls(t) / p.seconds)});
  }
  print_lines(table.text());
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    if (!p.tasks[t].roofline_because.empty())
      print_out("{} (roofline): {}\n", model.partition.tasks[t].name, p.tasks[t].roofline_because);
  }
  print_out("{} kernel calls one after the other; refilling caches {}, launches {}\n", p.calls.size(),
            format_seconds(p.refill_seconds), format_seconds(p.launch_seconds));
  for (const std::string& note : notes) print_out("note: {}\n", note);
  const std::string range = p.log_90 > 0 ? fmt::format(" (90 %: {} to {})", format_seconds(p.low_seconds()),
                                                       format_seconds(p.high_seconds()))
                                         : std::string(" (error not known)");
  print_out("a run on {}: {}{}, by {}\n", prepared.device.name, format_seconds(p.seconds), range, predictor);
}

Status predict(const PredictOptions& options) {
  std::unique_ptr<learn::LatencyModel> latency_model;
  std::string predictor = "the uncalibrated roofline, the least time that the device allows";
  const std::string file = options.latency_model.empty()     ? shipped_file(kLatencyModelFile)
                           : options.latency_model == "none" ? ""
                                                             : options.latency_model;
  if (!file.empty()) {
    TS_ASSIGN_OR_RETURN(latency_model, learn::load_latency_model(file));
    if (latency_model->ranks_only()) {
      return Error{ErrorCode::kInvalidArgument, file,
                   "is a model that only ranks the programs of a task; predicting seconds needs another"};
    }
    predictor = file + " (" + latency_model->card().kind + ")";
  }
  TS_ASSIGN_OR_RETURN(const LoadedModel model, load_model(options.model));
  TS_ASSIGN_OR_RETURN(const Prepared prepared, prepare(options, model));
  if (latency_model) TS_RETURN_IF_ERROR(check_kind(*latency_model, file, prepared.device));
  const double retention = is_local(prepared.device) ? target::measure_cache_retention(prepared.device) : 1;
  TS_ASSIGN_OR_RETURN(
      const ModelPrediction prediction,
      predict_model(model, prepared.device, prepared.schedules, latency_model.get(), retention));
  const std::vector<std::string> notes = notes_on(prepared, prediction, latency_model.get());
  if (options.json) {
    for (const std::string& note : notes) print_error("tensorsmith: note: {}\n", note);
    print_json(as_json(model, prepared, prediction, predictor, retention, notes), 2);
  } else {
    print(model, prepared, prediction, predictor, notes);
  }
  return {};
}

}  // namespace

void add_predict_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = app.add_subcommand(
      "predict", "Predict a model's latency on a device, by task and as a whole, without running it");
  options->model.add_to(*command);
  options->device.add_to(*command);
  command->add_option(
      "--model", options->latency_model,
      "Latency model to predict with (a file of `train`; by default the one that is shipped), "
      "or none: the device's roofline");
  options->database.add_to(
      *command, "Record database: schedules of tuned tasks, and measured attributes of the device");
  command->add_flag("--untuned", options->untuned, "Predict the untuned default schedules");
  options->schedules.add_to(*command);
  command->add_flag("--json", options->json, "Machine-readable output, with the start of each call");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return predict(*options); }); });
}

}  // namespace tensorsmith::tools
