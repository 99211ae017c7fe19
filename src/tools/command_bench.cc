#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/processors.h"
#include "base/scratch_directory.h"
#include "engine/compile_model.h"
#include "engine/gpu_device.h"
#include "engine/model_timer.h"
#include "engine/schedules.h"
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
  bool profile = false;
  std::string trace;
  bool json = false, force = false;
  std::vector<const CLI::Option*> for_compiling;
};

struct Contender {
  std::string name;
  std::unique_ptr<runtime::Model> model;
};

// Runs a model loaded with profiling and shows where the time goes.
Status print_profile(runtime::Model& model, uint64_t seed, bool json) {
  engine::ModelBuffers buffers(model, seed);
  const std::vector<const void*> inputs = buffers.inputs();
  const std::vector<void*> outputs = buffers.outputs();
  constexpr int kRuns = 7;
  for (int run = 0; run < kRuns + 1; ++run) {
    if (run == 1) model.reset_profile();  // the first run warms up
    TS_RETURN_IF_ERROR(model.run(inputs, outputs));
  }
  const std::vector<runtime::CallTime> times = model.profile();
  struct Row {
    int calls = 0;
    double seconds = 0, alone = 0, flops = 0;
  };
  std::map<std::string, Row> rows;
  double total = 0, alone = 0;
  for (size_t c = 0; c < times.size(); ++c) {
    Row& row = rows[model.description().calls[c].task];
    ++row.calls;
    row.seconds += times[c].min_seconds;
    row.alone += times[c].min_seconds_alone;
    row.flops += model.description().calls[c].flops;
    total += times[c].min_seconds;
    alone += times[c].min_seconds_alone;
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
               fmt::format("{:.1f} GFLOP/s", row.flops / row.seconds / 1e9)});
  }
  print_lines(table.text());
  print_out("all tasks {}; alone, each repeated with its data in the caches, {}\n", format_seconds(total),
            format_seconds(alone));
  return {};
}

// What a compiled model is was decided when it was compiled; an option that says otherwise would be ignored.
Status check_compiled_options(const BenchOptions& options) {
  for (const CLI::Option* option : options.for_compiling) {
    if (option->count() == 0) continue;
    // A GPU of this machine says where a compiled model runs.
    if (option->get_name() == "--device") {
      TS_ASSIGN_OR_RETURN(const auto place, engine::parse_gpu_place(options.device.device));
      if (place) continue;
    }
    const bool flag = option->get_expected_max() == 0;
    const std::string given = option->get_name() + (flag ? "" : " " + option->results().front());
    return Error{
        ErrorCode::kInvalidArgument, given,
        "says how to compile, and " + options.model.path +
            " is compiled already; compile the ONNX model with it, or time that: tensorsmith bench MODEL " +
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
  std::vector<Contender> contenders;
  // Of compiled models that are made for this call only.
  std::optional<ScratchDirectory> scratch;
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  runtime::LoadOptions load_options;
  load_options.threads = device.cores;
  load_options.profile = options.profile || !options.trace.empty();
  load_options.repeats_alone = options.profile ? 3 : 0;
  load_options.gpu = engine::gpu_place(device);
  std::error_code ignored;
  if (fs::is_directory(options.model.path, ignored)) {
    TS_RETURN_IF_ERROR(check_compiled_options(options));
    TS_ASSIGN_OR_RETURN(auto model, runtime::Model::load(options.model.path, load_options));
    contenders.push_back({options.model.path, std::move(model)});
  } else {
    TS_ASSIGN_OR_RETURN(ScratchDirectory made, ScratchDirectory::create("tensorsmith-bench"));
    scratch.emplace(std::move(made));
    TS_ASSIGN_OR_RETURN(const engine::LoadedModel loaded, options.model.load(&device));
    TS_ASSIGN_OR_RETURN(std::vector<engine::TaskSchedule> schedules,
                        engine::default_schedules(loaded.partition, device, options.schedules));
    auto add = [&](const std::string& name) -> Status {
      engine::CompileOptions compile_options;
      compile_options.directory = scratch->file(name);
      compile_options.model_name = name;
      const bool here = device.kind == target::DeviceKind::kCpu;  // else these are a GPU's multiprocessors
      compile_options.jobs = std::max(1, here ? device.cores : processors().usable);
      TS_RETURN_IF_ERROR(engine::compile_model(loaded, device, schedules, compile_options));
      TS_ASSIGN_OR_RETURN(auto model, runtime::Model::load(compile_options.directory, load_options));
      contenders.push_back({name, std::move(model)});
      return {};
    };
    const bool has_database = options.database.is_there();
    if (options.untuned || !has_database) TS_RETURN_IF_ERROR(add("untuned"));
    if (!options.untuned && has_database) {
      StderrLogSink log(LogLevel::kWarning);
      TS_ASSIGN_OR_RETURN(const size_t found,
                          engine::apply_best_records(loaded.partition, device, options.database.path,
                                                     options.schedules, schedules, log));
      TS_RETURN_IF_ERROR(add(found > 0 ? "tuned" : "untuned"));
    }
  }
  print_notes(options.device.notes(device));
  std::vector<runtime::Model*> models;
  for (const auto& contender : contenders) models.push_back(contender.model.get());
  if (!options.trace.empty()) return write_trace(*models.front(), options);
  if (options.profile) return print_profile(*models.front(), options.seed, options.json);
  TS_ASSIGN_OR_RETURN(const auto timings,
                      engine::time_interleaved(models, {options.seconds, options.runs}, options.seed, clock));
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (size_t i = 0; i < timings.size(); ++i) {
      list.push_back({{"name", contenders[i].name},
                      {"threads", device.cores},
                      {"runs", timings[i].seconds.size()},
                      {"median_seconds", timings[i].median()},
                      {"p10_seconds", timings[i].quantile(0.1)},
                      {"p90_seconds", timings[i].quantile(0.9)}});
    }
    print_json(list, 2);
    return {};
  }
  Table table({"model", "threads", "runs", "median", "10 %", "90 %"});
  for (size_t i = 0; i < timings.size(); ++i) {
    table.add({contenders[i].name, std::to_string(device.cores), std::to_string(timings[i].seconds.size()),
               format_seconds(timings[i].median()), format_seconds(timings[i].quantile(0.1)),
               format_seconds(timings[i].quantile(0.9))});
  }
  print_lines(table.text());
  return {};
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "Time a compiled model, or compile an ONNX model and time that");
  options->model.add_to(*command);
  options->device.add_to(*command);
  options->database.add_to(*command, "Record database to take schedules from");
  command->add_flag("--untuned", options->untuned, "Use the untuned default schedules");
  add_schedule_options(*command, options->schedules);
  for (const char* name :
       {"--shape", "--absent", "--bounded", "--tf32", "--device", "--db", "--untuned", "--no-winograd"})
    options->for_compiling.push_back(command->get_option(name));
  add_real(*command, "--seconds", options->seconds, 0, kMaxSeconds, "How long to measure");
  add_whole(*command, "--runs", options->runs, 1, 1'000'000, "Measured runs at least");
  add_seed(*command, options->seed, "Seed of the random inputs");
  auto* profile = command->add_flag("--profile", options->profile, "Show the time of each task");
  command
      ->add_option(
          "--trace", options->trace,
          "Write the kernels of --runs runs as a timeline instead: JSON for chrome://tracing, Perfetto")
      ->excludes(profile);
  add_force(*command, options->force);
  command->add_flag("--json", options->json, "Machine-readable output");
  command->callback([options, &exit_code] { exit_code = run_command([&] { return bench(*options); }); });
}

}  // namespace tensorsmith::tools
