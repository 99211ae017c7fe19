#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

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
#include "tools/report.h"
#include "tools/shipped_file.h"

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

nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

// Calls times latency, over the tasks whose untuned and best schedules both ran.
struct MeasuredSum {
  size_t tasks = 0;
  double untuned = 0;
  double tuned = 0;
};

MeasuredSum measured_sum(const search::TuneProgress& progress) {
  MeasuredSum sum;
  for (const auto& task : progress.tasks) {
    if (!std::isfinite(task.default_seconds) || !std::isfinite(task.best_seconds)) continue;
    ++sum.tasks;
    sum.untuned += task.weight * task.default_seconds;
    sum.tuned += task.weight * task.best_seconds;
  }
  return sum;
}

nlohmann::json json_report(const TuneCommandOptions& options, const search::TuneProgress& p,
                           const std::optional<engine::InModel>& in_model) {
  nlohmann::json tasks = nlohmann::json::array();
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    const auto& task = p.tasks[t];
    tasks.push_back({{"name", task.name},
                     {"weight", task.weight},
                     {"trials", task.trials},
                     {"failures", task.failures},
                     {"default_seconds", number_or_null(task.default_seconds)},
                     {"best_seconds", number_or_null(task.best_seconds)}});
    if (!in_model) continue;
    tasks.back()["in_model_untuned_seconds"] = in_model->task_untuned[t];
    tasks.back()["in_model_tuned_seconds"] = in_model->task_tuned[t];
  }
  nlohmann::json out = {{"directory", options.directory},
                        {"database", options.database},
                        {"elapsed_seconds", p.elapsed_seconds},
                        {"trials", p.trials},
                        {"resumed", p.resumed},
                        {"model_default_seconds", number_or_null(p.model_default_seconds())},
                        {"model_best_seconds", number_or_null(p.model_best_seconds())},
                        {"tasks", tasks}};
  if (in_model) {
    out["end_to_end"] = {{"untuned_seconds", in_model->untuned},
                         {"tuned_seconds", in_model->tuned},
                         {"speedup", in_model->untuned / in_model->tuned}};
  }
  return out;
}

void print_report(const TuneCommandOptions& options, const search::TuneReport& report,
                  const std::optional<engine::InModel>& in_model, double elapsed) {
  const search::TuneProgress& p = report.final;
  if (options.json) {
    print_json(json_report(options, p, in_model), 2);
    return;
  }
  const auto speedup = [](double before, double after) {
    return std::isfinite(before) && std::isfinite(after) && after > 0 ? fmt::format("{:.2f}x", before / after)
                                                                      : "-";
  };
  std::vector<std::string> header{"task", "calls", "alone", "best alone", "trials", "failed"};
  if (in_model) header.insert(header.end(), {"untuned", "tuned", "speed-up"});
  Table table(std::move(header));
  for (size_t t = 0; t < p.tasks.size(); ++t) {
    const auto& task = p.tasks[t];
    std::vector<std::string> row{task.name,
                                 fmt::format("{:.0f}", task.weight),
                                 format_seconds(task.default_seconds),
                                 format_seconds(task.best_seconds),
                                 std::to_string(task.trials),
                                 std::to_string(task.failures)};
    if (in_model) {
      row.insert(row.end(), {format_seconds(in_model->task_untuned[t] / task.weight),
                             format_seconds(in_model->task_tuned[t] / task.weight),
                             speedup(in_model->task_untuned[t], in_model->task_tuned[t])});
    }
    table.add(std::move(row));
  }
  print_lines(table.text());
  if (in_model) print_out("alone: measured by itself; untuned, tuned: a call in its place in the model\n");
  print_out("{} trials in {} ({} found in {})\n", p.trials, format_duration(elapsed), p.resumed,
            options.database);
  const MeasuredSum sum = measured_sum(p);
  if (sum.tasks > 0 && !in_model) {
    print_out("sum of {} tasks: untuned {}, tuned {} ({})\n",
              sum.tasks == p.tasks.size() ? "all" : fmt::format("the {} measured", sum.tasks),
              format_seconds(sum.untuned), format_seconds(sum.tuned), speedup(sum.untuned, sum.tuned));
  }
  const auto tried = static_cast<size_t>(
      std::count_if(p.tasks.begin(), p.tasks.end(), [](const auto& task) { return task.trials > 1; }));
  if (tried < p.tasks.size()) {
    print_out("{} of {} tasks keep their untuned schedule: they take too little time, or were not reached\n",
              p.tasks.size() - tried, p.tasks.size());
  }
  if (in_model) {
    print_out("end to end:   untuned {}, tuned {} ({})\n", format_seconds(in_model->untuned),
              format_seconds(in_model->tuned), speedup(in_model->untuned, in_model->tuned));
  }
  print_out("compiled model: {}\n", options.directory);
}

// Shows the search on standard error.
class Display final : public engine::TuneEvents {
 public:
  Display(const Clock& clock, const TuneCommandOptions& options)
      : display_(clock, options.trials, options.seconds), quiet_(options.quiet) {}
  void progress(const search::TuneProgress& p) override {
    if (!quiet_) display_.update(p);
  }
  void search_finished() override { display_.finish(); }

 private:
  ProgressDisplay display_;
  bool quiet_;
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
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const engine::ModelSource source, options.model.source());
  TS_ASSIGN_OR_RETURN(const engine::LoadedModel model, engine::load_model(source));
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(options.database));
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
  StderrLogSink log(options.quiet ? LogLevel::kError : LogLevel::kWarning);
  Display display(clock, options);
  // From here on a signal ends the search after the current measurement, and the best so far is compiled.
  const std::atomic<bool>& cancel_requested = catch_interrupts();
  TS_ASSIGN_OR_RETURN(
      const engine::TunedModel tuned,
      engine::tune_model(model, device, tune_options, *database, clock, log, display, cancel_requested));
  print_report(options, tuned.report, tuned.in_model, clock.monotonic_seconds() - start);
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
