#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "learn/cost_model.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "search/tuner.h"
#include "tools/commands.h"
#include "tools/compile_model.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/measured_device.h"
#include "tools/model_trials.h"
#include "tools/numbers.h"
#include "tools/output_files.h"
#include "tools/progress_display.h"
#include "tools/report.h"
#include "tools/starter.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

struct TuneCommandOptions {
  ModelOptions model;
  DeviceOptions device;
  ScheduleOptions schedules;
  std::string directory;
  std::string database = "tensorsmith.db";
  int64_t trials = 0;
  double seconds = 0;
  std::string strategy = "evolutionary";
  int batch = 16;
  uint64_t seed = 0;
  bool flush_cache = false;
  bool skip_end_to_end = false;
  std::string starter;
  bool json = false;
  bool quiet = false;
};

// What the whole model says about the schedules: latencies end to end, and each task's time in its place.
struct InModel {
  double untuned = 0;
  double tuned = 0;
  std::vector<double> task_untuned, task_tuned;  // by task, all calls of one run
};

// How the time after the search is spent.
constexpr size_t kMaxVariants = 4;
constexpr int64_t kMaxVariantBytes = int64_t{3} << 29;  // weights of all variants together
constexpr double kTrialTimeShare = 0.06;                // of the whole run; once for each of two comparisons
constexpr double kMinTrialSeconds = 0.5, kMaxTrialSeconds = 4;
// Tuned kernels can take longer to compile than the untuned ones.
constexpr double kSlowerBuild = 1.5;

// Records of fast programs that are shipped, and how many of them each task begins with.
constexpr const char* kStarterFile = "starter.jsonl.zst";
constexpr size_t kStarters = 3;

size_t variants_that_fit(const ModelTrials& trials) {
  const int64_t each = std::max<int64_t>(trials.weights_bytes(), 1);
  return std::clamp<size_t>(static_cast<size_t>(kMaxVariantBytes / each), 2, kMaxVariants);
}

double trial_seconds(const TuneCommandOptions& options) {
  if (options.seconds == 0) return kMaxTrialSeconds / 2;
  return std::clamp(kTrialTimeShare * options.seconds, kMinTrialSeconds, kMaxTrialSeconds);
}

// The k-th fastest schedule of each task as it was measured alone; of a task that has fewer, the fastest.
std::vector<TaskSchedule> ranked_schedules(const search::TuneReport& report, size_t rank) {
  std::vector<TaskSchedule> schedules;
  for (size_t t = 0; t < report.best_traces.size(); ++t) {
    const auto& fastest = report.fastest[t];
    if (fastest.empty()) {
      schedules.push_back({report.best_traces[t], 0});
    } else if (rank == 0 || rank >= fastest.size()) {
      const double seconds = report.final.tasks[t].best_seconds;
      schedules.push_back({report.best_traces[t], std::isfinite(seconds) ? seconds : 0});
    } else {
      schedules.push_back({fastest[rank].trace, fastest[rank].seconds});
    }
  }
  return schedules;
}

// trials holds the untuned model. Adds the searched schedules, lets the model choose, writes the result to
// options.directory, and compares it with the untuned model end to end: what is not faster is not kept.
Result<InModel> compile_fastest(const TuneCommandOptions& options, const LoadedModel& model,
                                const target::Device& device, const search::TuneReport& report,
                                size_t variants, ModelTrials& trials, CompileOptions compile_options) {
  for (size_t rank = 0; rank + 1 < variants; ++rank)
    TS_RETURN_IF_ERROR(trials.add(ranked_schedules(report, rank)));
  TS_RETURN_IF_ERROR(trials.time(trial_seconds(options)));
  const std::vector<TaskSchedule> chosen = trials.fastest_by_task();
  const std::vector<TaskSchedule> untuned = trials.first_schedules();
  trials.keep_first();

  compile_options.cache = &trials.cache();
  TS_RETURN_IF_ERROR(compile_model(model, device, chosen, compile_options));
  TS_RETURN_IF_ERROR(trials.add_compiled(options.directory, chosen));
  TS_RETURN_IF_ERROR(trials.time(trial_seconds(options)));
  InModel result{trials.model_seconds(0), trials.model_seconds(1), {}, {}};
  const bool keep = result.tuned <= result.untuned;
  for (size_t t = 0; t < chosen.size(); ++t) {
    result.task_untuned.push_back(trials.task_seconds(0, t));
    result.task_tuned.push_back(trials.task_seconds(keep ? 1 : 0, t));
  }
  if (!keep) {
    TS_RETURN_IF_ERROR(compile_model(model, device, untuned, compile_options));
    result.tuned = result.untuned;
  }
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

nlohmann::json json_report(const TuneCommandOptions& options, const search::TuneProgress& p,
                           const std::optional<InModel>& in_model) {
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
                  const std::optional<InModel>& in_model, double elapsed) {
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
  if (sum.tasks < p.tasks.size()) {
    print_out("{} of {} tasks keep their untuned schedule: they take too little time, or were not reached\n",
              p.tasks.size() - sum.tasks, p.tasks.size());
  }
  if (in_model) {
    print_out("end to end:   untuned {}, tuned {} ({})\n", format_seconds(in_model->untuned),
              format_seconds(in_model->tuned), speedup(in_model->untuned, in_model->tuned));
  }
  print_out("compiled model: {}\n", options.directory);
}

// A name beside the directory's, which may end in a slash.
std::string beside(std::string directory, const std::string& ending) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory + ending;
}

Status tune(const TuneCommandOptions& options) {
  if (options.trials == 0 && options.seconds == 0) {
    return Error{ErrorCode::kInvalidArgument, "tune", "say how long to search: --seconds S or --trials N"};
  }
  TS_ASSIGN_OR_RETURN(const search::StrategyKind strategy, search::parse_strategy(options.strategy));
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  if (!is_local(device)) {
    return Error{ErrorCode::kUnsupported, "--device " + options.device.device,
                 "tuning measures on this machine; use local or a variant of it (local:isa=avx2)"};
  }
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
  TS_RETURN_IF_ERROR(check_outputs({{"-o", options.directory, OutputKind::kModelDirectory},
                                    {"--db", options.database, OutputKind::kDatabase}},
                                   {{"MODEL", options.model.path},
                                    {"--starter", options.starter == "none" ? "" : options.starter},
                                    {"--device", device_file(options.device.device)}}));
  TS_ASSIGN_OR_RETURN(const LoadedModel model, load_model(options.model));
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(options.database));
  TS_RETURN_IF_ERROR(register_device(device, *database));

  // The untuned model is there before the search: its own times say which tasks matter, and how long the
  // compilations after the search will take.
  ModelTrials trials(model, device, beside(options.directory, ".trial-" + std::to_string(getpid())),
                     machine.cores, options.seed, clock);
  size_t variants = 0;
  double search_seconds = options.seconds;
  if (!options.skip_end_to_end) {
    TS_ASSIGN_OR_RETURN(std::vector<TaskSchedule> defaults,
                        default_schedules(model.partition, device, options.schedules));
    const double before = clock.monotonic_seconds();
    TS_RETURN_IF_ERROR(trials.add(std::move(defaults)));
    const double build_seconds = clock.monotonic_seconds() - before;
    TS_RETURN_IF_ERROR(trials.time(0));
    variants = variants_that_fit(trials);
    if (options.seconds > 0) {
      const double elapsed = clock.monotonic_seconds() - start;
      const auto left_for_search = [&] {
        return options.seconds - elapsed - 2 * trial_seconds(options) -
               kSlowerBuild * build_seconds * static_cast<double>(variants);
      };
      while (variants > 2 && left_for_search() < 0.7 * options.seconds) --variants;
      search_seconds = std::max(left_for_search(), 0.3 * options.seconds);
    }
  }

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

  Starter starter;
  if (options.starter != "none") {
    const std::string file = options.starter.empty() ? shipped_file(kStarterFile) : options.starter;
    if (!file.empty()) {
      TS_ASSIGN_OR_RETURN(starter, Starter::load(file));
    }
  }
  std::vector<search::TuneTask> tasks;
  for (size_t t = 0; t < model.partition.tasks.size(); ++t) {
    const auto& task = model.partition.tasks[t];
    const double seconds = trials.size() > 0 ? trials.task_seconds(0, t) / task.calls : 0;
    tasks.push_back({task.key, task.name, task.workload, static_cast<double>(task.calls), seconds,
                     starter.of(task.key, device, kStarters)});
  }
  search::TuneOptions tune_options;
  tune_options.trials = options.trials;
  tune_options.seconds = search_seconds;
  tune_options.confirm = options.skip_end_to_end;  // else the model itself decides
  tune_options.batch = options.batch;
  tune_options.strategy = strategy;
  tune_options.seed = options.seed;
  tune_options.settings = measure_options.settings;
  tune_options.winograd = options.schedules.winograd;
  tune_options.threads = machine.cores;

  // The search stops after the current measurement and the best so far is compiled.
  const std::atomic<bool>& cancel_requested = catch_interrupts();
  ProgressDisplay display(clock, options.trials, options.seconds);
  const search::ProgressFn progress = [&](const search::TuneProgress& p) {
    if (!options.quiet) display.update(p);
  };
  TS_ASSIGN_OR_RETURN(const search::TuneReport report,
                      search::tune(tasks, device, tune_options, *database, *measurer, *trainer, clock, log,
                                   progress, cancel_requested));
  display.finish();
  measurer.reset();

  CompileOptions compile_options;
  compile_options.directory = options.directory;
  compile_options.model_name = fs::path(options.model.path).filename().string();
  compile_options.tuned = true;
  compile_options.jobs = machine.cores;
  std::optional<InModel> in_model;
  if (options.skip_end_to_end || cancel_requested) {
    TS_RETURN_IF_ERROR(compile_model(model, device, ranked_schedules(report, 0), compile_options));
  } else {
    TS_ASSIGN_OR_RETURN(in_model,
                        compile_fastest(options, model, device, report, variants, trials, compile_options));
  }
  print_report(options, report, in_model, clock.monotonic_seconds() - start);
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
  add_whole(*command, "--trials", options->trials, 0, kMaxCount, "Measurements to make (0 = no limit)");
  add_real(*command, "--seconds", options->seconds, 0, kMaxSeconds,
           "Time for everything until the model is written (0 = no limit)");
  options->schedules.add_to(*command);
  command->add_option("--starter", options->starter,
                      "Records of fast programs to begin with (an export of `db export --fastest`); none to "
                      "begin from nothing, default: those shipped with the program");
  command->add_option("--strategy", options->strategy, "evolutionary, random or annealing")
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
