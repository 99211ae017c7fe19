#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "learn/cost_model.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "search/tuner.h"
#include "tools/commands.h"
#include "tools/compile_model.h"
#include "tools/log_sink.h"
#include "tools/model_timer.h"
#include "tools/progress_display.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

struct TuneCommandOptions {
  ModelOptions model;
  DeviceOptions device;
  std::string directory;
  std::string database = "tensorsmith.db";
  int64_t trials = 0;
  double seconds = 0;
  std::string strategy = "evolutionary";
  int batch = 16;
  uint64_t seed = 0;
  bool flush_cache = false;
  bool skip_end_to_end = false;
  bool json = false;
  bool quiet = false;
};

// Set by SIGINT and SIGTERM: the search stops after the current measurement and the best so far is compiled.
std::atomic<bool> cancel_requested{false};
void request_cancel(int signal) {
  cancel_requested = true;
  std::signal(signal, SIG_DFL);  // a second one ends the program
}

// Latency of the compiled models end to end, interleaved.
struct EndToEnd {
  double untuned = 0;
  double tuned = 0;
};

Result<EndToEnd> compare_end_to_end(const LoadedModel& model, const target::Device& device,
                                    const std::string& tuned, int jobs, uint64_t seed, const Clock& clock) {
  TS_ASSIGN_OR_RETURN(const std::vector<TaskSchedule> defaults, default_schedules(model.partition, device));
  const std::string directory = tuned + ".untuned-" + std::to_string(getpid());
  CompileOptions options;
  options.directory = directory;
  options.model_name = "untuned";
  options.jobs = jobs;
  auto measure = [&]() -> Result<EndToEnd> {
    TS_RETURN_IF_ERROR(compile_model(model, device, defaults, options));
    runtime::LoadOptions load_options;
    load_options.threads = device.cores;
    TS_ASSIGN_OR_RETURN(auto before, runtime::Model::load(directory, load_options));
    TS_ASSIGN_OR_RETURN(auto after, runtime::Model::load(tuned, load_options));
    TS_ASSIGN_OR_RETURN(const auto timings,
                        time_interleaved({before.get(), after.get()}, 2.0, 5, seed, clock));
    return EndToEnd{timings[0].median(), timings[1].median()};
  };
  auto result = measure();
  std::error_code ignored;
  fs::remove_all(directory, ignored);
  return result;
}

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

void print_report(const TuneCommandOptions& options, const search::TuneReport& report,
                  const std::optional<EndToEnd>& end_to_end) {
  const search::TuneProgress& p = report.final;
  if (options.json) {
    nlohmann::json tasks = nlohmann::json::array();
    for (const auto& task : p.tasks) {
      tasks.push_back({{"name", task.name},
                       {"weight", task.weight},
                       {"trials", task.trials},
                       {"failures", task.failures},
                       {"default_seconds", number_or_null(task.default_seconds)},
                       {"best_seconds", number_or_null(task.best_seconds)}});
    }
    nlohmann::json out = {{"directory", options.directory},
                          {"database", options.database},
                          {"elapsed_seconds", p.elapsed_seconds},
                          {"trials", p.trials},
                          {"resumed", p.resumed},
                          {"model_default_seconds", number_or_null(p.model_default_seconds())},
                          {"model_best_seconds", number_or_null(p.model_best_seconds())},
                          {"tasks", tasks}};
    if (end_to_end) {
      out["end_to_end"] = {{"untuned_seconds", end_to_end->untuned},
                           {"tuned_seconds", end_to_end->tuned},
                           {"speedup", end_to_end->untuned / end_to_end->tuned}};
    }
    fmt::print("{}\n", out.dump(2));
    return;
  }
  Table table({"task", "calls", "untuned", "tuned", "speed-up", "trials", "failed"});
  for (const auto& task : p.tasks) {
    table.add({task.name, fmt::format("{:.0f}", task.weight), format_seconds(task.default_seconds),
               format_seconds(task.best_seconds),
               std::isfinite(task.default_seconds) && std::isfinite(task.best_seconds)
                   ? fmt::format("{:.2f}x", task.default_seconds / task.best_seconds)
                   : "-",
               std::to_string(task.trials), std::to_string(task.failures)});
  }
  fmt::print("{}", table.text());
  fmt::print("{} trials in {} ({} found in {})\n", p.trials, format_duration(p.elapsed_seconds), p.resumed,
             options.database);
  const MeasuredSum sum = measured_sum(p);
  if (sum.tasks > 0) {
    fmt::print("sum of {} tasks: untuned {}, tuned {} ({:.2f}x)\n",
               sum.tasks == p.tasks.size() ? "all" : fmt::format("the {} measured", sum.tasks),
               format_seconds(sum.untuned), format_seconds(sum.tuned), sum.untuned / sum.tuned);
  }
  if (sum.tasks < p.tasks.size()) {
    fmt::print("{} of {} tasks were not reached and keep their untuned schedule; run it again to go on\n",
               p.tasks.size() - sum.tasks, p.tasks.size());
  }
  if (end_to_end) {
    fmt::print("end to end:   untuned {}, tuned {} ({:.2f}x)\n", format_seconds(end_to_end->untuned),
               format_seconds(end_to_end->tuned), end_to_end->untuned / end_to_end->tuned);
  }
  fmt::print("compiled model: {}\n", options.directory);
}

Status tune(const TuneCommandOptions& options) {
  if (options.trials == 0 && options.seconds == 0) {
    return Error{ErrorCode::kInvalidArgument, "tune", "say how long to search: --seconds S or --trials N"};
  }
  TS_ASSIGN_OR_RETURN(const search::StrategyKind strategy, search::parse_strategy(options.strategy));
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  if (device.name.rfind("local", 0) != 0) {
    return Error{ErrorCode::kUnsupported, "--device " + options.device.device,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  }
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
  TS_RETURN_IF_ERROR(check_output_directory(options.directory));  // before minutes are spent
  TS_ASSIGN_OR_RETURN(const LoadedModel model, load_model(options.model));
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(options.database));

  const SystemClock clock;
  StderrLogSink log(options.quiet ? LogLevel::kError : LogLevel::kWarning);
  measure::MeasureOptions measure_options;
  measure_options.settings.threads = device.cores;
  measure_options.settings.flush_cache = options.flush_cache;
  TS_ASSIGN_OR_RETURN(auto measurer, measure::make_local_measurer(device, measure_options,
                                                                  {"/proc/self/exe", "__worker"}, log));
  learn::GbtOptions gbt = learn::GbtOptions::online();
  gbt.seed = options.seed;
  gbt.threads = machine.cores;
  const auto trainer = learn::make_gbt_trainer(gbt);

  std::vector<search::TuneTask> tasks;
  for (const auto& task : model.partition.tasks) {
    tasks.push_back({task.key, task.name, task.workload, static_cast<double>(task.calls)});
  }
  search::TuneOptions tune_options;
  tune_options.trials = options.trials;
  tune_options.seconds = options.seconds;
  tune_options.batch = options.batch;
  tune_options.strategy = strategy;
  tune_options.seed = options.seed;
  tune_options.settings = measure_options.settings;
  tune_options.threads = machine.cores;

  std::signal(SIGINT, request_cancel);
  std::signal(SIGTERM, request_cancel);
  ProgressDisplay display(stderr, clock, options.trials, options.seconds);
  const search::ProgressFn progress = [&](const search::TuneProgress& p) {
    if (!options.quiet) display.update(p);
  };
  TS_ASSIGN_OR_RETURN(const search::TuneReport report,
                      search::tune(tasks, device, tune_options, *database, *measurer, *trainer, clock, log,
                                   progress, cancel_requested));
  display.finish();
  measurer.reset();

  std::vector<TaskSchedule> schedules;
  for (size_t t = 0; t < tasks.size(); ++t) {
    schedules.push_back({report.best_traces[t], report.final.tasks[t].best_seconds});
    if (!std::isfinite(schedules.back().measured_seconds)) schedules.back().measured_seconds = 0;
  }
  CompileOptions compile_options;
  compile_options.directory = options.directory;
  compile_options.model_name = fs::path(options.model.path).filename().string();
  compile_options.tuned = true;
  compile_options.jobs = machine.cores;
  TS_RETURN_IF_ERROR(compile_model(model, device, schedules, compile_options));
  std::optional<EndToEnd> end_to_end;
  if (!options.skip_end_to_end && !cancel_requested) {
    TS_ASSIGN_OR_RETURN(
        end_to_end, compare_end_to_end(model, device, options.directory, machine.cores, options.seed, clock));
  }
  print_report(options, report, end_to_end);
  if (cancel_requested) {
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
  command->add_option("--trials", options->trials, "Measurements to make (0 = no limit)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "Time to search (0 = no limit)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--strategy", options->strategy, "evolutionary, random or annealing")
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Measurements a round")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of every random choice")->capture_default_str();
  command->add_flag("--flush-cache", options->flush_cache, "Measure with cold caches");
  command->add_flag("--skip-end-to-end", options->skip_end_to_end,
                    "Do not time the whole model, untuned against tuned, at the end");
  command->add_flag("--json", options->json, "Machine-readable report on standard output");
  command->add_flag("--quiet", options->quiet, "No progress on standard error");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return tune(*options); }); });
}

}  // namespace tensorsmith::tools
