#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/processors.h"
#include "base/scratch_directory.h"
#include "engine/device/gpu_device.h"
#include "engine/model/compile_model.h"
#include "engine/model/model_timer.h"
#include "engine/tune/schedules.h"
#include "record/jsonl.h"
#include "tools/chrome_trace.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;

struct BenchOptions {
  ModelOptions model;  // path: compiled directory or ONNX file
  DeviceOptions device;
  engine::ScheduleOptions schedules;
  DatabaseOption database;
  bool untuned = false;
  double seconds = 3;
  int runs = 10;
  uint64_t seed = 0;
  int64_t max_turns = runtime::LoadOptions().max_turns;
  bool profile = false;
  std::string trace;
  bool json = false, force = false;
  std::vector<const CLI::Option*> for_compiling;
  const CLI::Option* device_option = nullptr;
};

// The model that is timed.
struct Subject {
  std::unique_ptr<runtime::Model> model;
  bool tuned = false;
};

const char* schedules_of(const Subject& subject) { return subject.tuned ? "tuned" : "untuned"; }

// Runs a model loaded for profiling and prints the time of each kernel.
Status print_profile(runtime::Model& model, uint64_t seed, bool json) {
  engine::ModelBuffers buffers(model, seed);
  const std::vector<const void*> inputs = buffers.inputs();
  const std::vector<void*> outputs = buffers.outputs();
  constexpr int kRuns = 7;
  for (int run = 0; run < kRuns + 1; ++run) {
    if (run == 1) model.reset_profile();  // the first run is a warm-up
    TS_RETURN_IF_ERROR(model.run(inputs, outputs));
  }
  const std::vector<runtime::CallTime> times = model.profile();
  struct Row {
    int64_t calls = 0;
    double seconds = 0, alone = 0, flops = 0;
  };
  std::map<std::string, Row> rows;
  double total = 0, alone = 0;
  for (size_t c = 0; c < times.size(); ++c) {
    Row& row = rows[model.description().calls[c].task];
    const int64_t turns = times[c].runs / kRuns;  // of the loop that the call is in
    row.calls += turns;
    row.seconds += turns * times[c].min_seconds;
    row.alone += turns * times[c].min_seconds_alone;
    row.flops += turns * model.description().calls[c].flops;
    total += turns * times[c].min_seconds;
    alone += turns * times[c].min_seconds_alone;
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& [name, row] : sorted) {
      list.push_back({{"task", name},
                      {"calls", row.calls},
                      {"seconds", row.seconds},
                      {"seconds_alone", row.alone},
                      {"flops", row.flops}});
    }
    print_json(list, 2);
    return {};
  }
  Table table({"task", "calls", "time", "alone", "share", "speed"});
  for (const auto& [name, row] : sorted) {
    table.add({name, std::to_string(row.calls), format_seconds(row.seconds), format_seconds(row.alone),
               fmt::format("{:.1f} %", 100 * row.seconds / total),
               // A branch that no run takes has no time.
               row.seconds > 0 ? fmt::format("{:.1f} GFLOP/s", row.flops / row.seconds / 1e9) : "-"});
  }
  print_lines(table.text());
  print_out(
      "sum of all tasks in a run: {}; sum of the tasks measured alone, repeatedly, with their data in the "
      "caches: {}\n",
      format_seconds(total), format_seconds(alone));
  return {};
}

// Rejects compile options for a compiled model, where they would have no effect.
Status check_compiled_options(const BenchOptions& options) {
  for (const CLI::Option* option : options.for_compiling) {
    if (option->count() == 0) continue;
    // A GPU of this machine also selects where a compiled model runs.
    if (option->get_name() == "--device") {
      TS_ASSIGN_OR_RETURN(const auto place, engine::parse_gpu_place(options.device.device));
      if (place) continue;
    }
    const bool flag = option->get_expected_max() == 0;
    const std::string given = option->get_name() + (flag ? "" : " " + option->results().front());
    return Error{ErrorCode::kInvalidArgument, given,
                 "is an option for compiling, but " + options.model.path +
                     " is compiled already; use the option with the ONNX model: tensorsmith bench MODEL " +
                     given};
  }
  return {};
}

Status write_trace(runtime::Model& model, const BenchOptions& options) {
  TS_ASSIGN_OR_RETURN(const std::string text, chrome_trace(model, options.runs, options.seed));
  TS_ASSIGN_OR_RETURN(const auto file, record::AtomicFileWriter::open(options.trace));
  TS_RETURN_IF_ERROR(file->write(text));
  TS_RETURN_IF_ERROR(file->commit());
  print_error("{}: {} runs; open it in chrome://tracing or ui.perfetto.dev\n", options.trace, options.runs);
  return {};
}

Status bench(const BenchOptions& options) {
  const SystemClock clock;
  if (!options.trace.empty()) {
    TS_RETURN_IF_ERROR(check_outputs({{"--trace", options.trace, OutputKind::kTrace}},
                                     {{"MODEL", options.model.path}, {"--db", options.database.path}},
                                     options.force));
  }
  Subject subject;
  // Directory for compiling an ONNX model, for this call only.
  std::optional<ScratchDirectory> scratch;
  std::error_code ignored;
  const bool compiled = fs::is_directory(options.model.path, ignored);
  DeviceOptions place = options.device;
  if (compiled) {
    TS_RETURN_IF_ERROR(check_compiled_options(options));
    // The device of a configuration file is one to compile for, not to run on.
    if (options.device_option->count() == 0) place.device = DeviceOptions().device;
  }
  TS_ASSIGN_OR_RETURN(const target::Device device, place.resolve());
  runtime::LoadOptions load_options;
  load_options.threads = device.compute_units();
  load_options.max_turns = options.max_turns;
  load_options.profile = options.profile || !options.trace.empty();
  load_options.repeats_alone = options.profile ? 3 : 0;
  load_options.gpu = engine::gpu_place(device);
  if (compiled) {
    TS_ASSIGN_OR_RETURN(subject.model, runtime::Model::load(options.model.path, load_options));
    subject.tuned = subject.model->description().threads > 0;
  } else {
    TS_ASSIGN_OR_RETURN(ScratchDirectory made, ScratchDirectory::create("tensorsmith-bench"));
    scratch.emplace(std::move(made));
    TS_ASSIGN_OR_RETURN(const engine::LoadedModel loaded, options.model.load(&device));
    StderrLogSink log(LogLevel::kWarning);
    engine::CompileOptions compile_options;
    compile_options.directory = scratch->file("model");
    compile_options.model_name = fs::path(options.model.path).filename().string();
    compile_options.log = &log;
    // Otherwise the threads are a GPU's multiprocessors.
    const bool here = device.kind() == target::DeviceKind::kCpu;
    compile_options.jobs = std::max(1, here ? device.compute_units() : processors().usable);
    const bool records = !options.untuned && options.database.is_there();
    TS_ASSIGN_OR_RETURN(const size_t found,
                        engine::compile_recorded(loaded, device, records ? options.database.path : "",
                                                 options.schedules, compile_options));
    subject.tuned = found > 0;
    TS_ASSIGN_OR_RETURN(subject.model, runtime::Model::load(compile_options.directory, load_options));
  }
  print_notes(place.notes(device));
  if (!options.trace.empty()) return write_trace(*subject.model, options);
  if (options.profile) {
    if (!options.json)
      print_out("{}, {}, {} {}\n", options.model.path, schedules_of(subject), device.compute_units(),
                device.compute_units() == 1 ? "thread" : "threads");
    return print_profile(*subject.model, options.seed, options.json);
  }
  const std::vector<runtime::Model*> models = {subject.model.get()};
  TS_ASSIGN_OR_RETURN(const auto timings,
                      engine::time_interleaved(models, {options.seconds, options.runs}, options.seed, clock));
  const auto& timing = timings.front();
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    list.push_back({{"name", options.model.path},
                    {"schedules", schedules_of(subject)},
                    {"threads", device.compute_units()},
                    {"runs", timing.seconds.size()},
                    {"median_seconds", timing.median()},
                    {"p10_seconds", timing.quantile(0.1)},
                    {"p90_seconds", timing.quantile(0.9)}});
    print_json(list, 2);
    return {};
  }
  Table table({"model", "schedules", "threads", "runs", "median", "10 %", "90 %"});
  table.add({options.model.path, schedules_of(subject), std::to_string(device.compute_units()),
             std::to_string(timing.seconds.size()), format_seconds(timing.median()),
             format_seconds(timing.quantile(0.1)), format_seconds(timing.quantile(0.9))});
  print_lines(table.text());
  return {};
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "Measure how fast a model runs: a compiled one, or an ONNX model, which is compiled first");
  options->model.add_to(*command);
  command->get_option("model")->description(
      "Folder of a compiled model, ONNX model file, or a network of the zoo (zoo:NAME[:batch=B][:size=S])");
  options->device.add_to(*command);
  options->device_option = command->get_option("--device");
  options->database.add_to(*command, "Record database to take schedules from");
  command->add_flag("--untuned", options->untuned, "Use the default schedules and no database");
  add_tune_option(*command, "winograd", &options->schedules.winograd);
  for (const char* name : {"--shape", "--dim", "--absent", "--set", "--bounded", "--tf32", "--device", "--db",
                           "--untuned", "--no-winograd"})
    options->for_compiling.push_back(command->get_option(name));
  add_seconds(*command, "--seconds", options->seconds, 0, kMaxSeconds, "How long to measure: 3, 3s, 1m");
  add_whole(*command, "--runs", options->runs, 1, 1'000'000, "Number of runs to measure at least");
  add_max_turns(*command, options->max_turns);
  add_seed(*command, options->seed, "Seed of the random inputs")->group(kAdvancedGroup);
  auto* profile = command->add_flag("--profile", options->profile, "Show the time of each task");
  command
      ->add_option(
          "--trace", options->trace,
          "Instead of measuring, write a timeline of the kernels of --runs runs, as JSON for Perfetto and "
          "chrome://tracing")
      ->type_name("FILE")
      ->excludes(profile);
  add_force(*command, options->force);
  command->add_flag("--json", options->json, "Print the result as JSON on standard output");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return bench(*options); }); });
}

}  // namespace tensorsmith::tools
