#include "tools/tune_run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "engine/measured_device.h"
#include "record/database.h"
#include "search/strategy.h"
#include "search/tuner.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/output_files.h"
#include "tools/progress_display.h"
#include "tools/shipped_file.h"
#include "tools/ticker.h"
#include "tools/tune_report.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

// Records of fast programs that are shipped.
constexpr const char* kStarterFile = "starter.jsonl.zst";

constexpr double kTickSeconds = 0.5;  // between redraws while nothing else happens

// Log lines that do not run into the line of the display.
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

// The entries of --from: files of records, and models.
struct Sources {
  std::vector<std::string> files;
  std::vector<engine::SourceModel> models;
};

Result<Sources> read_sources(const std::vector<std::string>& from) {
  Sources sources;
  for (const std::string& entry : from) {
    const bool is_model = entry.starts_with("zoo:") || entry.ends_with(".onnx");
    if (!is_model) {
      sources.files.push_back(entry);
      continue;
    }
    TS_ASSIGN_OR_RETURN(const auto tasks, engine::load_tasks({{entry}}));
    engine::SourceModel model;
    model.name = entry;
    for (const auto& shared : tasks) model.tasks.insert(shared.task.key);
    sources.models.push_back(std::move(model));
  }
  return sources;
}

}  // namespace

Status run_tuning(const TuneRunOptions& options, const std::string& command) {
  engine::TuneModelOptions tune_options;
  TS_RETURN_IF_ERROR(search::find_strategy(options.strategy));
  tune_options.strategy = options.strategy;
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  if (!engine::is_local(device)) {
    return Error{ErrorCode::kUnsupported, "--device " + options.device.device,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  }
  std::vector<InputPath> inputs{{"MODEL", options.model.path},
                                {"--cost-model", options.cost_model.model},
                                {"--device", device_file(options.device.device)}};
  for (const std::string& entry : options.from)
    if (entry != options.database) inputs.push_back({"--from", entry});
  TS_RETURN_IF_ERROR(check_outputs({{"-o", options.directory, OutputKind::kModelDirectory},
                                    {"--db", options.database, OutputKind::kDatabase}},
                                   inputs));
  const SystemClock clock;
  const int64_t shown_trials = options.trials == kMaxCount ? 0 : options.trials;
  ProgressDisplay display(clock, {shown_trials, options.seconds}, standard_error_display(options.quiet));
  std::optional<Ticker> ticker;
  if (display.redraws()) ticker.emplace(kTickSeconds, [&display] { display.tick(); });
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const engine::ModelSource source, options.model.source());
  TS_ASSIGN_OR_RETURN(const engine::LoadedModel model, engine::load_model(source, device));
  display.print_apart([&] { print_notes(model.graph.notes); });
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(options.database));
  if (!options.quiet) display.print_apart([&] { print_notes(options.device.notes(device)); });
  tune_options.directory = options.directory;
  tune_options.model_name = fs::path(options.model.path).filename().string();
  tune_options.trials = options.trials;
  if (options.seconds > 0)
    tune_options.seconds = std::max(options.seconds - (clock.monotonic_seconds() - start), 1e-3);
  tune_options.batch = options.batch;
  tune_options.seed = options.seed;
  tune_options.flush_cache = options.flush_cache;
  tune_options.end_to_end = !options.skip_end_to_end;
  tune_options.schedules = options.schedules;
  tune_options.cost_model = options.cost_model;
  tune_options.worker = measure::this_program_as_worker();
  tune_options.warm_start = options.warm_start;
  TS_ASSIGN_OR_RETURN(Sources sources, read_sources(options.from));
  tune_options.sources = std::move(sources.files);
  tune_options.source_models = std::move(sources.models);
  tune_options.source_ranking = options.source_ranking;
  tune_options.pool_sources = options.pool_sources;
  tune_options.seeds = options.seeds;
  if (options.warm_start && options.from.empty())
    if (auto shipped = shipped_file(kStarterFile); !shipped.empty())
      tune_options.sources.push_back(std::move(shipped));
  LogApart log(display, options.quiet ? LogLevel::kError : LogLevel::kWarning);
  // From here on a signal ends the search after the current measurement, and the best so far is compiled.
  const std::atomic<bool>& cancel_requested = catch_interrupts();
  TS_ASSIGN_OR_RETURN(
      const engine::TunedModel tuned,
      engine::tune_model(model, device, tune_options, *database, clock, log, display, cancel_requested));
  ticker.reset();
  display.finish();
  const double elapsed = clock.monotonic_seconds() - start;
  if (options.json) {
    print_json(tune_report_json(tuned, options.directory, options.database), 2);
  } else {
    print_tune_report(tuned, options.directory, options.database, elapsed);
  }
  if (tuned.interrupted) {
    return Error{ErrorCode::kCancelled, command,
                 "interrupted; the best so far is compiled, run it again to go on"};
  }
  return {};
}

void add_tune_run_options(CLI::App& command, TuneRunOptions& options) {
  options.model.add_to(command);
  options.device.add_to(command);
  command.add_option("-o,--output", options.directory, "Directory of the compiled model")->required();
  command.add_option("--db", options.database, "Record database; a run goes on from what is there")
      ->capture_default_str();
  add_real(command, "--seconds", options.seconds, 0, kMaxSeconds,
           "Time for everything until the model is written (0 = no limit)");
  add_schedule_options(command, options.schedules);
  add_seed(command, options.seed, "Seed of every random choice");
  command.add_flag("--flush-cache", options.flush_cache, "Measure with cold caches");
  command.add_flag("--skip-end-to-end", options.skip_end_to_end,
                   "Choose by the tasks' own times; do not run the whole model, untuned and tuned");
  command.add_flag("--json", options.json, "Machine-readable report on standard output");
  command.add_flag("--quiet", options.quiet, "No progress on standard error");
}

}  // namespace tensorsmith::tools
