#include "tools/tune_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "engine/device/measured_device.h"
#include "engine/report/report_json.h"
#include "engine/report/report_of_run.h"
#include "engine/tune/tune_options.h"
#include "engine/tune/unmeasured.h"
#include "record/database.h"
#include "search/tuner.h"
#include "tools/command_line.h"
#include "tools/console.h"
#include "tools/event_file.h"
#include "tools/interrupt.h"
#include "tools/live_report.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/output_files.h"
#include "tools/progress_display.h"
#include "tools/report.h"
#include "tools/report_page.h"
#include "tools/report_run.h"
#include "tools/ticker.h"
#include "tools/tune_report.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

constexpr double kTickSeconds = 0.5;  // seconds between redraws without other events

// Prints log lines without mixing with the progress line.
class LogApart final : public LogSink {
 public:
  LogApart(ProgressDisplay& display, LogLevel threshold)
      : display_(display), threshold_(threshold), sink_(threshold) {}
  void log(LogLevel level, std::string_view message) override {
    if (level >= threshold_) display_.print_apart([&] { sink_.log(level, message); });
  }

 private:
  ProgressDisplay& display_;
  LogLevel threshold_;
  StderrLogSink sink_;
};

// Returns the models with their output directories, after checking that these can be written.
Result<std::vector<engine::ModelToTune>> plan_outputs(const TuneRunOptions& options) {
  std::vector<InputPath> inputs{{"--cost-model", options.tuning.cost_model.model},
                                {"--lm", options.tuning.language_model},
                                {"--device", device_file(options.device.device)}};
  std::vector<OutputPath> outputs;
  std::vector<engine::ModelToTune> models;
  const std::vector<std::string> names = folder_names(options.models);
  for (size_t m = 0; m < options.models.size(); ++m) {
    inputs.push_back({"MODEL", options.models[m]});
    const std::string directory =
        options.directory_option->count() == 0 ? folder_beside(options.models[m], "_tuned")
        : options.models.size() == 1           ? options.directory
                                               : (fs::path(options.directory) / names[m]).string();
    // With several models, -o names the folder that holds their folders.
    const bool in_folder = options.models.size() > 1 && options.directory_option->count() > 0;
    outputs.push_back({"-o", directory, OutputKind::kModelDirectory, in_folder});
    models.push_back({nullptr, directory, fs::path(options.models[m]).filename().string()});
  }
  const std::string& database = options.tuning.where.database;
  outputs.push_back({"--db", database, OutputKind::kDatabase});
  if (!options.report.empty()) outputs.push_back({"--report", options.report, OutputKind::kReport});
  for (const std::string& entry : options.tuning.sources)
    if (entry != database) inputs.push_back({"--from", entry});
  TS_RETURN_IF_ERROR(check_outputs(outputs, inputs, options.force));
  return models;
}

// Returns notes about the defaults that the run uses.
std::vector<std::string> default_notes(const TuneRunOptions& options,
                                       const std::vector<engine::ModelToTune>& models) {
  std::vector<std::string> parts;
  if (options.seconds_by_default)
    parts.push_back(fmt::format("tuning for {:g} s (change with --seconds)", options.tuning.search.seconds));
  if (options.directory_option->count() == 0) {
    std::string folders;
    for (const auto& model : models) folders += (folders.empty() ? "" : ", ") + model.directory;
    parts.push_back(fmt::format("the compiled {} to {} (change with -o)",
                                models.size() == 1 ? "model goes" : "models go", folders));
  }
  if (parts.empty()) return {};
  return {fmt::format("{}", fmt::join(parts, "; "))};
}

// Loads the models in order and prints their notes.
Result<std::deque<engine::LoadedModel>> load_models(
    const TuneRunOptions& options, const target::Device& device,
    const std::function<void(const graph::Graph&)>& print_notes) {
  TS_ASSIGN_OR_RETURN(engine::ModelSource source, options.import.source());
  std::deque<engine::LoadedModel> loaded;
  for (const std::string& path : options.models) {
    source.path = path;
    TS_ASSIGN_OR_RETURN(auto model, engine::load_model(source, device));
    print_notes(model.graph);
    loaded.push_back(std::move(model));
  }
  return loaded;
}

// Prints the heading of each report if there are several models.
void print_model(size_t place, const std::string& model) {
  if (place > 0) print_out("\n");
  print_out("{}:\n", model);
}

void print_choices(const engine::LoadedModel& model, const std::vector<engine::UnmeasuredChoice>& choices) {
  Table table({"task", "calls", "chosen", "expected gain", "schedule of"});
  for (size_t t = 0; t < choices.size(); ++t) {
    const engine::UnmeasuredChoice& choice = choices[t];
    table.add({model.partition.tasks[t].name, std::to_string(model.partition.tasks[t].calls),
               to_string(choice.reason), choice.gain > 1 ? fmt::format("{:.2f}x", choice.gain) : "",
               choice.source ? source_text(*choice.source) : ""});
  }
  print_lines(table.text());
}

// Prints the document of a single model, or one document with those of all models.
void print_documents(const nlohmann::json& documents) {
  print_json(documents.size() == 1 ? documents.front() : nlohmann::json{{"models", documents}}, 2);
}

// Returns the settings that reproduce the run, for its report.
ReportSettings run_settings(const TuneRunOptions& options) {
  ReportSettings settings = common_settings(options.version);
  settings.emplace_back("strategy", options.tuning.search.strategy->name);
  for (auto& setting : engine::reported_tune_options(options.tuning)) settings.push_back(std::move(setting));
  std::vector<std::string> from;
  for (const std::string& source : options.tuning.sources) from.push_back(record::shown_database(source));
  settings.emplace_back("records of other tasks and devices", !options.tuning.warm_start ? "not used"
                                                              : from.empty()
                                                                  ? "the starter records"
                                                                  : fmt::format("{}", fmt::join(from, ", ")));
  settings.emplace_back("database", record::shown_database(options.tuning.where.database));
  return settings;
}

// Returns where the run's results are, for the report page.
std::string results_text(const TuneRunOptions& options, const std::vector<engine::ModelToTune>& models) {
  std::string folders;
  for (const engine::ModelToTune& model : models) folders += (folders.empty() ? "" : ", ") + model.directory;
  const std::string folder =
      models.size() == 1 ? "Folder of the compiled model: " : "Folders of the compiled models: ";
  if (!options.report.empty()) return folder + folders + ". File with this page: " + options.report + ".";
  std::string command =
      "tensorsmith report " + shell_word(record::shown_database(options.tuning.where.database));
  for (const engine::ModelToTune& model : models) command += " " + shell_word(model.directory);
  return folder + folders + ". To keep this page: " + command + " -o report.html";
}

// Returns the cost model for the report's predictions: the run's if it is a file; empty: the
// shipped one.
std::string predictor_of(const TuneRunOptions& options) {
  std::error_code ignored;
  const std::string& model = options.tuning.cost_model.model;
  return model != learn::kShippedModel && fs::is_regular_file(model, ignored) ? model : std::string();
}

// Prints the result of each model.
void print_results(const TuneRunOptions& options, const std::vector<engine::ModelToTune>& models,
                   const std::vector<engine::TunedModel>& tuned, double elapsed) {
  const std::string database = record::shown_database(options.tuning.where.database);
  if (options.json) {
    nlohmann::json documents = nlohmann::json::array();
    for (size_t m = 0; m < models.size(); ++m)
      documents.push_back(engine::to_json(tuned[m], models[m].directory, database));
    print_documents(documents);
    return;
  }
  const bool only_seeds = options.tuning.search.strategy->only_seeds;
  for (size_t m = 0; m < models.size(); ++m) {
    if (models.size() > 1) print_model(m, options.models[m]);
    print_tune_report(tuned[m], models[m].directory, database, elapsed);
    const auto& tasks = tuned[m].report.final.tasks;
    if (only_seeds && std::none_of(tasks.begin(), tasks.end(), [](const auto& t) { return t.trials > 1; }))
      print_out(
          "the other models have no schedule that suits any of its tasks, so the model stays untuned\n");
  }
}

// Returns the run's report with all that can be added to it without measuring.
Result<engine::Report> report_of(const TuneRunOptions& options,
                                 const std::vector<engine::ModelToTune>& models,
                                 const std::vector<engine::TunedModel>& tuned, const target::Device& device,
                                 const record::MeasureSettings& settings, record::Database& database,
                                 const Clock& clock) {
  TS_ASSIGN_OR_RETURN(engine::Report report, engine::report_of_run(models, tuned, nullptr, device, settings,
                                                                   database, nullptr, clock));
  report.settings = run_settings(options);
  add_importance(report);
  Status predicted = add_predictions(predictor_of(options), report);
  // The run's model may only rank programs; the shipped one predicts latency.
  if (!predicted.ok() && predicted.error().code == ErrorCode::kUnsupported)
    predicted = add_predictions("", report);
  TS_RETURN_IF_ERROR(predicted);
  return report;
}

}  // namespace

Status run_unmeasured(const TuneRunOptions& options) {
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  TS_ASSIGN_OR_RETURN(std::vector<engine::ModelToTune> models, plan_outputs(options));
  engine::TuneModelOptions tuning = options.tuning;
  StderrLogSink log(options.quiet ? LogLevel::kError : LogLevel::kWarning);
  const std::atomic<bool>& cancel_requested = catch_interrupts();
  TS_ASSIGN_OR_RETURN(const auto loaded, load_models(options, device, [](const graph::Graph& graph) {
                        print_notes(graph.notes);
                      }));
  for (size_t m = 0; m < models.size(); ++m) models[m].model = &loaded[m];
  TS_ASSIGN_OR_RETURN(const auto choices,
                      engine::compile_unmeasured(models, device, tuning, log, cancel_requested));
  nlohmann::json documents = nlohmann::json::array();
  for (size_t m = 0; m < models.size(); ++m) {
    if (options.json) {
      documents.push_back(engine::to_json(loaded[m], models[m].directory, choices[m]));
      continue;
    }
    if (models.size() > 1) print_model(m, options.models[m]);
    print_choices(loaded[m], choices[m]);
    print_out("nothing was measured; compiled model: {}\n", models[m].directory);
  }
  if (options.json) print_documents(documents);
  return {};
}

Status run_tuning(const TuneRunOptions& options, const std::string& command) {
  engine::TuneModelOptions tuning = options.tuning;
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  if (!engine::is_measurable(device)) {
    return Error{ErrorCode::kUnsupported, "--device " + options.device.device,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  }
  TS_ASSIGN_OR_RETURN(std::vector<engine::ModelToTune> models, plan_outputs(options));
  const SystemClock clock;
  const record::MeasureSettings settings{device.compute_units(), tuning.search.flush_cache};
  const int64_t trials = tuning.search.trials;
  const RunLimits limits{trials == engine::kMostTrials ? 0 : trials, tuning.search.seconds};
  ProgressDisplay display(clock, limits, standard_error_display(options.quiet));
  std::optional<Ticker> ticker;
  if (display.redraws()) ticker.emplace(kTickSeconds, [&display] { display.tick(); });
  const double start = clock.monotonic_seconds();
  std::deque<engine::LoadedModel> loaded;
  std::unique_ptr<LiveReport> live;  // refers to the objects above
  if (options.serve >= 0) {
    TS_ASSIGN_OR_RETURN(live, LiveReport::serve(options.serve, clock, limits, display));
    display.print_apart([&] { print_notes({"the run's report: " + live->url()}); });
  }
  TS_ASSIGN_OR_RETURN(loaded, load_models(options, device, [&](const graph::Graph& graph) {
                        display.print_apart([&] { print_notes(graph.notes); });
                      }));
  for (size_t m = 0; m < models.size(); ++m) models[m].model = &loaded[m];
  if (!options.quiet) display.print_apart([&] { print_notes(default_notes(options, models)); });
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(tuning.where.database));
  if (!options.quiet) display.print_apart([&] { print_notes(options.device.notes(device)); });
  if (tuning.search.seconds > 0)
    tuning.search.seconds = std::max(tuning.search.seconds - (clock.monotonic_seconds() - start), 1e-3);
  tuning.where.worker = measure::this_program_as_worker();
  std::unique_ptr<EventFile> curves_file;
  std::optional<TuneCurves> curves;
  engine::TuneEvents& shown = live ? static_cast<engine::TuneEvents&>(*live) : display;
  if (!options.tensorboard.empty()) {
    TS_ASSIGN_OR_RETURN(curves_file, EventFile::create(options.tensorboard, clock));
    curves.emplace(*curves_file, shown);
  }
  engine::TuneEvents& events = curves ? *curves : shown;
  LogApart log(display, options.quiet ? LogLevel::kError : LogLevel::kWarning);
  if (live)
    live->follow({models, device, settings, tuning.where.database, run_settings(options),
                  results_text(options, models)});
  // From here on a signal ends the search after the current measurement, and the best schedules so
  // far are compiled.
  const std::atomic<bool>& cancel_requested = catch_interrupts();
  auto result = engine::tune_models(models, device, tuning, *database, clock, log, events, cancel_requested);
  if (!result.ok()) {
    const char* how = result.error().code == ErrorCode::kCancelled ? "The run was " : "The run failed: ";
    if (live) live->end(how + result.error().message(), std::nullopt, cancel_requested);
    return result.error();
  }
  const std::vector<engine::TunedModel> tuned = std::move(result).value();
  ticker.reset();
  display.finish();
  if (curves_file != nullptr) TS_RETURN_IF_ERROR(curves_file->finish());
  print_results(options, models, tuned, clock.monotonic_seconds() - start);
  const bool interrupted = tuned.front().interrupted;
  if (!options.report.empty() || live) {
    TS_ASSIGN_OR_RETURN(engine::Report report,
                        report_of(options, models, tuned, device, settings, *database, clock));
    if (!options.report.empty()) {
      TS_RETURN_IF_ERROR(write_report(report_json(report), options.report));
      if (!options.json) print_out("report: {}\n", options.report);
    }
    if (live)
      live->end(
          (interrupted ? "The run was interrupted. " : "The run has ended. ") + results_text(options, models),
          std::move(report), cancel_requested);
  }
  if (interrupted) {
    return Error{ErrorCode::kCancelled, command,
                 "interrupted; the model was compiled with the fastest schedules so far. Run the same "
                 "command again to "
                 "continue"};
  }
  return {};
}

std::vector<std::string> folder_names(const std::vector<std::string>& models) {
  std::vector<std::string> names;
  for (const std::string& model : models) {
    std::string name;
    if (model.starts_with("zoo:")) {
      name = model.substr(4);
    } else {
      const fs::path file = fs::path(model).lexically_normal();
      const std::string folder = file.parent_path().filename().string();
      name = file.filename() == "model.onnx" && !folder.empty() ? folder : file.stem().string();
    }
    std::replace(name.begin(), name.end(), ':', '-');
    std::string different = name;
    for (int n = 2; std::find(names.begin(), names.end(), different) != names.end(); ++n)
      different = name + "-" + std::to_string(n);
    names.push_back(std::move(different));
  }
  return names;
}

void add_tune_run_options(CLI::App& command, TuneRunOptions& options) {
  command
      .add_option(
          "model", options.models,
          "ONNX model file, or a network of the zoo (zoo:NAME[:batch=B][:size=S]). Several models are tuned "
          "together and share tasks")
      ->required();
  options.directory_option = command
                                 .add_option("-o,--output", options.directory,
                                             "Folder of the compiled model (default: beside the model, "
                                             "model.onnx -> model_tuned). With several "
                                             "models, the folder in which each gets a folder of its own")
                                 ->type_name("FOLDER");
  add_tune_options(command, {"seconds"}, options.tuning);
  options.device.add_to(command);
  command
      .add_option("--db", options.tuning.where.database,
                  "Record database, which keeps all measurements: a later run continues from them")
      ->capture_default_str()
      ->configurable()
      ->type_name("FILE");
  command.add_option("--report", options.report, "Write a report of the run as an HTML page")
      ->type_name("FILE");

  options.import.add_import_options(command);

  add_tune_options(command, {"objective", "winograd", "seed", "flush_cache", "end_to_end", "fleet"},
                   options.tuning);

  add_whole(command, "--serve", options.serve, 0, 65535,
            "Show the report on this port of 127.0.0.1 during the run (0 = any free port)")
      ->default_str("")
      ->group(kOutputGroup);
  command
      .add_option("--tensorboard", options.tensorboard,
                  "Write curves of the search for TensorBoard into this folder")
      ->type_name("FOLDER")
      ->group(kOutputGroup);
  add_force(command, options.force);
  options.version = command.get_parent()->version();
  command.add_flag("--json", options.json, "Print the result as JSON on standard output")
      ->group(kOutputGroup);
  command.add_flag("--quiet", options.quiet, "Show no progress")->group(kOutputGroup);
}

}  // namespace tensorsmith::tools
