#include "tools/tune_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "engine/device/measured_device.h"
#include "engine/model/compile_model.h"
#include "engine/predict/shipped_file.h"
#include "engine/report/report_json.h"
#include "engine/report/report_of_run.h"
#include "engine/tune/tune_sources.h"
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

// Number of programs of other tasks that are considered if nothing is measured.
constexpr size_t kUnmeasuredSources = 3;

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
  std::vector<InputPath> inputs{{"--cost-model", options.cost_model.model},
                                {"--lm", options.language_model},
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
    outputs.push_back({"-o", directory, OutputKind::kModelDirectory});
    models.push_back({nullptr, directory, fs::path(options.models[m]).filename().string()});
  }
  outputs.push_back({"--db", options.database, OutputKind::kDatabase});
  if (!options.report.empty()) outputs.push_back({"--report", options.report, OutputKind::kReport});
  for (const std::string& entry : options.from)
    if (entry != options.database) inputs.push_back({"--from", entry});
  TS_RETURN_IF_ERROR(check_outputs(outputs, inputs, options.force));
  return models;
}

// Returns notes about the defaults that the run uses.
std::vector<std::string> default_notes(const TuneRunOptions& options,
                                       const std::vector<engine::ModelToTune>& models) {
  std::vector<std::string> parts;
  if (options.seconds_by_default)
    parts.push_back(fmt::format("tuning for {:g} s (change with --seconds)", options.seconds));
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

const char* reason_text(engine::UnmeasuredChoice::Reason reason) {
  switch (reason) {
    case engine::UnmeasuredChoice::Reason::kUntuned:
      return "untuned";
    case engine::UnmeasuredChoice::Reason::kRecord:
      return "record";
    case engine::UnmeasuredChoice::Reason::kSeed:
      return "fast elsewhere";
    case engine::UnmeasuredChoice::Reason::kPredicted:
      return "predicted";
  }
  return "";
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
               reason_text(choice.reason), choice.gain > 1 ? fmt::format("{:.2f}x", choice.gain) : "",
               choice.source ? source_text(*choice.source) : ""});
  }
  print_lines(table.text());
}

nlohmann::json choices_json(const engine::LoadedModel& model, const std::string& directory,
                            const std::vector<engine::UnmeasuredChoice>& choices) {
  nlohmann::json tasks = nlohmann::json::array();
  for (size_t t = 0; t < choices.size(); ++t) {
    tasks.push_back({{"name", model.partition.tasks[t].name},
                     {"calls", model.partition.tasks[t].calls},
                     {"chosen", reason_text(choices[t].reason)},
                     {"expected_gain", choices[t].gain}});
    if (choices[t].source) tasks.back()["source"] = engine::to_json(*choices[t].source);
  }
  return {{"directory", directory}, {"tasks", tasks}};
}

// Returns the settings that reproduce the run, for its report.
ReportSettings run_settings(const TuneRunOptions& options) {
  ReportSettings settings = common_settings(options.version);
  const auto add = [&](const char* name, std::string value) {
    settings.emplace_back(name, std::move(value));
  };
  add("seed", std::to_string(options.seed));
  add("strategy", std::string(options.strategy->name));
  add("cost model", options.cost_model.model);
  if (!options.language_model.empty()) add("language model", options.language_model);
  if (options.seconds > 0) add("seconds", fmt::format("{}", options.seconds));
  if (options.trials > 0 && options.trials < kMaxCount) add("trials", std::to_string(options.trials));
  if (options.until_gain > 0) add("until gain", fmt::format("{}", options.until_gain));
  add("measurements per round", std::to_string(options.batch));
  add("share of random candidates", fmt::format("{}", options.epsilon));
  std::vector<std::string> from;
  for (const std::string& source : options.from) from.push_back(record::shown_database(source));
  add("records of other tasks and devices", !options.warm_start ? "not used"
                                            : from.empty()      ? "the starter records"
                                                                : fmt::format("{}", fmt::join(from, ", ")));
  add("database", record::shown_database(options.database));
  return settings;
}

// Returns where the run's results are, for the report page.
std::string results_text(const TuneRunOptions& options, const std::vector<engine::ModelToTune>& models) {
  std::string folders;
  for (const engine::ModelToTune& model : models) folders += (folders.empty() ? "" : ", ") + model.directory;
  const std::string folder =
      models.size() == 1 ? "Folder of the compiled model: " : "Folders of the compiled models: ";
  if (!options.report.empty()) return folder + folders + ". File with this page: " + options.report + ".";
  std::string command = "tensorsmith report " + shell_word(record::shown_database(options.database));
  for (const engine::ModelToTune& model : models) command += " " + shell_word(model.directory);
  return folder + folders + ". To keep this page: " + command + " -o report.html";
}

// Returns the cost model for the report's predictions: the run's if it is a file; empty: the
// shipped one.
std::string predictor_of(const TuneRunOptions& options) {
  std::error_code ignored;
  return options.cost_model_given && fs::is_regular_file(options.cost_model.model, ignored)
             ? options.cost_model.model
             : std::string();
}

}  // namespace

Status run_unmeasured(const TuneRunOptions& options) {
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  TS_ASSIGN_OR_RETURN(const std::vector<engine::ModelToTune> models, plan_outputs(options));
  TS_ASSIGN_OR_RETURN(const target::Device local, target::probe_local());
  StderrLogSink log(options.quiet ? LogLevel::kError : LogLevel::kWarning);
  engine::WarmStart known;
  TS_ASSIGN_OR_RETURN(const engine::TuneSources sources,
                      engine::read_tune_sources(options.from, options.warm_start));
  for (const std::string& file : sources.files) TS_RETURN_IF_ERROR(known.add_file(file));
  std::error_code ignored;
  const bool has_database =
      record::is_database_address(options.database) || fs::exists(options.database, ignored);
  if (has_database && options.warm_start) TS_RETURN_IF_ERROR(known.add_file(options.database));
  learn::SearchModelOptions model_options = options.cost_model;
  if (!options.cost_model_given) model_options.model = engine::shipped_file(engine::kCostModelFile);
  if (model_options.model.empty()) {
    log.log(LogLevel::kWarning,
            std::string("the cost model that comes with Tensorsmith, ") + engine::kCostModelFile +
                ", is missing; candidates are ranked by the design space's estimate only");
    model_options.model = "none";
  }
  model_options.frozen = model_options.model != "none";  // nothing is measured, so nothing is learned
  model_options.threads = local.cores;
  TS_ASSIGN_OR_RETURN(const auto cost_model, learn::make_search_model(model_options, device));
  const std::atomic<bool>& cancel_requested = catch_interrupts();
  TS_ASSIGN_OR_RETURN(const auto loaded, load_models(options, device, [](const graph::Graph& graph) {
                        print_notes(graph.notes);
                      }));
  nlohmann::json reports = nlohmann::json::array();
  for (size_t m = 0; m < models.size(); ++m) {
    const engine::LoadedModel& model = loaded[m];
    TS_ASSIGN_OR_RETURN(
        auto choices,
        engine::choose_unmeasured(
            model, device, known, cost_model.get(),
            {options.schedules, {.other_tasks = kUnmeasuredSources}, options.seed, local.cores}));
    std::vector<engine::TaskSchedule> schedules;
    for (const auto& choice : choices) schedules.push_back(choice.schedule);
    if (has_database && options.warm_start) {
      TS_RETURN_IF_ERROR(engine::apply_best_records(model.partition, device, options.database,
                                                    options.schedules, schedules, log));
      for (size_t t = 0; t < schedules.size(); ++t)
        if (schedules[t].measured_seconds > 0)
          choices[t] = {schedules[t], engine::UnmeasuredChoice::Reason::kRecord, std::nullopt, 1};
    }
    engine::CompileOptions compile_options;
    compile_options.directory = models[m].directory;
    compile_options.model_name = models[m].name;
    compile_options.jobs = local.cores;
    compile_options.log = &log;
    compile_options.cancelled = &cancel_requested;
    compile_options.tuned = std::any_of(choices.begin(), choices.end(), [](const auto& choice) {
      return choice.reason != engine::UnmeasuredChoice::Reason::kUntuned;
    });
    TS_RETURN_IF_ERROR(engine::compile_model(model, device, schedules, compile_options));
    if (options.json) {
      reports.push_back(choices_json(model, models[m].directory, choices));
      continue;
    }
    if (models.size() > 1) print_model(m, options.models[m]);
    print_choices(model, choices);
    print_out("nothing was measured; compiled model: {}\n", models[m].directory);
  }
  if (options.json) print_json(models.size() == 1 ? reports.front() : nlohmann::json{{"models", reports}}, 2);
  return {};
}

Status run_tuning(const TuneRunOptions& options, const std::string& command) {
  engine::TuneModelOptions tune_options;
  tune_options.strategy = options.strategy;
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  if (!engine::is_measurable(device)) {
    return Error{ErrorCode::kUnsupported, "--device " + options.device.device,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  }
  TS_ASSIGN_OR_RETURN(std::vector<engine::ModelToTune> models, plan_outputs(options));
  const SystemClock clock;
  const record::MeasureSettings settings{device.cores, options.flush_cache};
  const int64_t shown_trials = options.trials == kMaxCount ? 0 : options.trials;
  ProgressDisplay display(clock, {shown_trials, options.seconds}, standard_error_display(options.quiet));
  std::optional<Ticker> ticker;
  if (display.redraws()) ticker.emplace(kTickSeconds, [&display] { display.tick(); });
  const double start = clock.monotonic_seconds();
  std::deque<engine::LoadedModel> loaded;
  std::unique_ptr<LiveReport> live;  // refers to the objects above
  if (options.serve >= 0) {
    TS_ASSIGN_OR_RETURN(live,
                        LiveReport::serve(options.serve, clock, {shown_trials, options.seconds}, display));
    display.print_apart([&] { print_notes({"the run's report: " + live->url()}); });
  }
  TS_ASSIGN_OR_RETURN(loaded, load_models(options, device, [&](const graph::Graph& graph) {
                        display.print_apart([&] { print_notes(graph.notes); });
                      }));
  for (size_t m = 0; m < models.size(); ++m) models[m].model = &loaded[m];
  if (!options.quiet) display.print_apart([&] { print_notes(default_notes(options, models)); });
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(options.database));
  if (!options.quiet) display.print_apart([&] { print_notes(options.device.notes(device)); });
  tune_options.trials = options.trials;
  tune_options.until_gain = options.until_gain;
  tune_options.epsilon = options.epsilon;
  if (options.seconds > 0)
    tune_options.seconds = std::max(options.seconds - (clock.monotonic_seconds() - start), 1e-3);
  tune_options.batch = options.batch;
  tune_options.seed = options.seed;
  tune_options.flush_cache = options.flush_cache;
  tune_options.end_to_end = !options.skip_end_to_end;
  tune_options.schedules = options.schedules;
  tune_options.cost_model = options.cost_model;
  tune_options.worker = measure::this_program_as_worker();
  tune_options.database_path = options.database;
  tune_options.fleet = options.fleet;
  tune_options.warm_start = options.warm_start;
  TS_ASSIGN_OR_RETURN(engine::TuneSources sources,
                      engine::read_tune_sources(options.from, options.warm_start));
  tune_options.sources = std::move(sources.files);
  tune_options.source_models = std::move(sources.models);
  tune_options.source_ranking = options.source_ranking;
  tune_options.pool_sources = options.pool_sources;
  tune_options.seeds = options.seeds;
  TS_ASSIGN_OR_RETURN(tune_options.language_model,
                      engine::language_model_for(*options.strategy, options.language_model));
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
    live->follow(
        {models, device, settings, options.database, run_settings(options), results_text(options, models)});
  // From here on a signal ends the search after the current measurement, and the best schedules so
  // far are compiled.
  const std::atomic<bool>& cancel_requested = catch_interrupts();
  auto result =
      engine::tune_models(models, device, tune_options, *database, clock, log, events, cancel_requested);
  if (!result.ok()) {
    if (live) live->end("The run failed: " + result.error().message(), std::nullopt, cancel_requested);
    return result.error();
  }
  const std::vector<engine::TunedModel> tuned = std::move(result).value();
  ticker.reset();
  display.finish();
  if (curves_file != nullptr) TS_RETURN_IF_ERROR(curves_file->finish());
  const double elapsed = clock.monotonic_seconds() - start;
  if (options.json) {
    nlohmann::json reports = nlohmann::json::array();
    for (size_t m = 0; m < models.size(); ++m)
      reports.push_back(
          engine::to_json(tuned[m], models[m].directory, record::shown_database(options.database)));
    print_json(models.size() == 1 ? reports.front() : nlohmann::json{{"models", reports}}, 2);
  } else {
    for (size_t m = 0; m < models.size(); ++m) {
      if (models.size() > 1) print_model(m, options.models[m]);
      print_tune_report(tuned[m], models[m].directory, record::shown_database(options.database), elapsed);
      const auto& tasks = tuned[m].report.final.tasks;
      if (options.strategy->only_seeds &&
          std::none_of(tasks.begin(), tasks.end(), [](const auto& t) { return t.trials > 1; }))
        print_out(
            "the other models have no schedule that suits any of its tasks, so the model stays untuned\n");
    }
  }
  if (!options.report.empty() || live) {
    TS_ASSIGN_OR_RETURN(engine::Report report, engine::report_of_run(models, tuned, nullptr, device, settings,
                                                                     *database, nullptr, clock));
    report.settings = run_settings(options);
    add_importance(report);
    TS_RETURN_IF_ERROR(add_predictions(predictor_of(options), report));
    if (!options.report.empty()) {
      TS_RETURN_IF_ERROR(write_report(report_json(report), options.report));
      if (!options.json) print_out("report: {}\n", options.report);
    }
    if (live)
      live->end(std::string(tuned.front().interrupted ? "The run was interrupted. " : "The run has ended. ") +
                    results_text(options, models),
                std::move(report), cancel_requested);
  }
  if (tuned.front().interrupted) {
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
  add_seconds(command, "--seconds", options.seconds, 0, kMaxSeconds,
              "Time until the compiled model is written: 60, 60s, 10m, 1h (0 = no limit)");
  options.device.add_to(command);
  command
      .add_option("--db", options.database,
                  "Record database, which keeps all measurements: a later run continues from them")
      ->capture_default_str()
      ->configurable()
      ->type_name("FILE");
  command.add_option("--report", options.report, "Write a report of the run as an HTML page")
      ->type_name("FILE");

  options.import.add_import_options(command);

  add_schedule_options(command, options.schedules);
  add_seed(command, options.seed, "Seed of the random numbers")->group(kSearchGroup);
  command
      .add_flag("--flush-cache", options.flush_cache,
                "Empty the processor's caches before each measured run, so that all data comes from memory")
      ->group(kAdvancedGroup);
  command
      .add_flag("--skip-end-to-end", options.skip_end_to_end,
                "Choose schedules by the times of single tasks, without running the whole model")
      ->group(kAdvancedGroup);
  command.add_flag("--fleet", options.fleet, kFleetHelp)->group(kAdvancedGroup);

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
