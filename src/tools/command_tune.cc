#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "engine/measured_device.h"
#include "engine/tune_model.h"
#include "record/database.h"
#include "search/strategy.h"
#include "search/tuner.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/progress_display.h"
#include "tools/shipped_file.h"
#include "tools/ticker.h"
#include "tools/tune_report.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

struct TuneCommandOptions {
  ModelOptions model;
  DeviceOptions device;
  engine::ScheduleOptions schedules;
  std::string directory;
  std::string database = "tensorsmith.db";
  int64_t trials = 0;
  double seconds = 0;
  std::string strategy = search::TuneOptions().strategy;
  int batch = 16;
  uint64_t seed = 0;
  bool flush_cache = false;
  bool skip_end_to_end = false;
  learn::SearchModelOptions cost_model;
  std::string starter;
  bool json = false;
  bool quiet = false;
};

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

Status tune(const TuneCommandOptions& options) {
  if (options.trials == 0 && options.seconds == 0) {
    return Error{ErrorCode::kInvalidArgument, "tune", "say how long to search: --seconds S or --trials N"};
  }
  engine::TuneModelOptions tune_options;
  TS_RETURN_IF_ERROR(search::find_strategy(options.strategy));
  tune_options.strategy = options.strategy;
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  if (!engine::is_local(device)) {
    return Error{ErrorCode::kUnsupported, "--device " + options.device.device,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  }
  TS_RETURN_IF_ERROR(check_outputs({{"-o", options.directory, OutputKind::kModelDirectory},
                                    {"--db", options.database, OutputKind::kDatabase}},
                                   {{"MODEL", options.model.path},
                                    {"--starter", options.starter == "none" ? "" : options.starter},
                                    {"--cost-model", options.cost_model.model},
                                    {"--device", device_file(options.device.device)}}));
  const SystemClock clock;
  ProgressDisplay display(clock, {options.trials, options.seconds}, standard_error_display(options.quiet));
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
  if (options.starter != "none")
    tune_options.starter = options.starter.empty() ? shipped_file(kStarterFile) : options.starter;
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
    return Error{ErrorCode::kCancelled, "tune",
                 "interrupted; the best so far is compiled, run it again to go on"};
  }
  return {};
}

}  // namespace

void add_tune_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TuneCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "tune", "Search fast schedules for a model on this machine and compile it with them");
  options->model.add_to(*command);
  options->device.add_to(*command);
  command->add_option("-o,--output", options->directory, "Directory of the compiled model")->required();
  command->add_option("--db", options->database, "Record database; a run goes on from what is there")
      ->capture_default_str();
  add_whole(*command, "--trials", options->trials, 0, kMaxCount, "Measurements to make (0 = no limit)");
  add_real(*command, "--seconds", options->seconds, 0, kMaxSeconds,
           "Time for everything until the model is written (0 = no limit)");
  add_schedule_options(*command, options->schedules);
  add_cost_model_options(*command, options->cost_model);
  command->add_option("--starter", options->starter,
                      "Records of fast programs to begin with (an export of `db export --fastest`); none to "
                      "begin from nothing, default: those shipped with the program");
  command->add_option("--strategy", options->strategy, "One of " + search::strategy_names())
      ->capture_default_str();
  add_whole(*command, "--batch", options->batch, 1, 1024, "Measurements a round");
  add_seed(*command, options->seed, "Seed of every random choice");
  command->add_flag("--flush-cache", options->flush_cache, "Measure with cold caches");
  command->add_flag("--skip-end-to-end", options->skip_end_to_end,
                    "Choose by the tasks' own times; do not run the whole model, untuned and tuned");
  command->add_flag("--json", options->json, "Machine-readable report on standard output");
  command->add_flag("--quiet", options->quiet, "No progress on standard error");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return tune(*options); }); });
}

}  // namespace tensorsmith::tools
