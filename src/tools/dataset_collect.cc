// `dataset collect`: measures programs of many networks on variants of this machine, as training data.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph/zoo/zoo.h"
#include "learn/cost_model.h"
#include "learn/dataset/import.h"
#include "measure/measurer.h"
#include "search/tuner.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/measured_device.h"
#include "tools/model_pipeline.h"
#include "tools/numbers.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct CollectCommand {
  std::vector<std::string> networks;
  std::vector<std::string> devices;
  std::string database, store;
  int64_t records = 0;
  double seconds = 0;
  int64_t per_task = 48;
  int batch = 24;
  double slowest_ms = 50;
  uint64_t seed = 0;
  bool json = false, quiet = false, force = false;
};

// "zoo" is every network of it; a name without '/' and '.' is one of the zoo.
std::vector<ModelOptions> models_of(const std::vector<std::string>& networks) {
  std::vector<ModelOptions> models;
  const auto add = [&](std::string path) { models.emplace_back().path = std::move(path); };
  for (const std::string& network : networks) {
    if (network == "zoo") {
      for (const auto& entry : graph::zoo::entries()) add("zoo:" + std::string(entry.name));
    } else if (network.starts_with("zoo:") || network.find_first_of("/.") != std::string::npos) {
      add(network);
    } else {
      add("zoo:" + network);
    }
  }
  return models;
}

// Short timings: a model learns more from ten programs timed within some percent than from one timed exactly.
measure::MeasureOptions measure_options(const target::Device& device) {
  measure::MeasureOptions options;
  options.settings.threads = device.cores;
  options.min_repeats = 3;
  options.max_repeats = 5;
  options.min_repeat_s = 0.0005;
  options.target_spread = 0.05;
  return options;
}

// What was collected, over all devices.
struct Totals {
  int64_t trials = 0, resumed = 0;
  double start = 0;
};

class Progress {
 public:
  Progress(const Clock& clock, bool quiet) : clock_(clock), quiet_(quiet), terminal_(isatty(2) == 1) {}
  ~Progress() {
    if (terminal_ && drawn_) write_error("\n");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const std::string& device, const Totals& before, const search::TuneProgress& p) {
    const double now = clock_.monotonic_seconds();
    if (quiet_ || now - last_ < (terminal_ ? 0.2 : 10.0)) return;
    last_ = now;
    drawn_ = true;
    int64_t failed = 0, touched = 0;
    for (const auto& task : p.tasks) {
      failed += task.failures;
      touched += task.trials > 0 ? 1 : 0;
    }
    const int64_t trials = before.trials + p.trials;
    const double elapsed = now - before.start;
    write_error(terminal_ ? "\r\033[K" : "");
    print_error("{}: {} of {} tasks, {} failed; {} records in {}, {:.1f} a second{}", device, touched,
                p.tasks.size(), failed, trials, format_duration(elapsed),
                static_cast<double>(trials) / std::max(elapsed, 1e-3), terminal_ ? "" : "\n");
  }

 private:
  const Clock& clock_;
  bool quiet_, terminal_, drawn_ = false;
  double last_ = -1e9;
};

Result<std::vector<target::Device>> resolve_devices(const std::vector<std::string>& specs) {
  std::vector<target::Device> devices;
  for (const std::string& spec : specs) {
    TS_ASSIGN_OR_RETURN(target::Device device, target::find_device(spec));
    if (!is_local(device)) {
      return Error{ErrorCode::kUnsupported, "--device " + spec,
                   "collecting measures on this machine; use local or a variant of it (local:isa=avx2)"};
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::vector<search::TuneTask>> extract_tasks(const std::vector<std::string>& networks) {
  TS_ASSIGN_OR_RETURN(auto shared, load_tasks(models_of(networks)));
  std::vector<search::TuneTask> tasks;
  for (auto& [task, calls] : shared) tasks.push_back({task.key, task.name, std::move(task.workload), 1, 0});
  return tasks;
}

Status collect(const CollectCommand& command) {
  std::vector<OutputPath> outputs = {{"-o", command.database, OutputKind::kDatabase}};
  const OutputPath store{"--store", command.store, OutputKind::kStore};
  if (!command.store.empty()) outputs.push_back(store);
  std::vector<InputPath> inputs;
  for (const ModelOptions& model : models_of(command.networks)) inputs.push_back({"--networks", model.path});
  for (const std::string& device : command.devices) inputs.push_back({"--device", device_file(device)});
  TS_RETURN_IF_ERROR(check_outputs(outputs, inputs, command.force));
  TS_ASSIGN_OR_RETURN(const auto devices, resolve_devices(command.devices));
  TS_ASSIGN_OR_RETURN(const auto tasks, extract_tasks(command.networks));
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(command.database));
  for (const auto& device : devices) TS_RETURN_IF_ERROR(register_device(device, *database));
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());

  const SystemClock clock;
  Totals totals;
  totals.start = clock.monotonic_seconds();
  StderrLogSink log(command.quiet ? LogLevel::kError : LogLevel::kWarning);
  const std::atomic<bool>& cancel = catch_interrupts();
  learn::GbtOptions gbt = learn::GbtOptions::online();
  gbt.seed = command.seed;
  gbt.threads = machine.cores;

  // Devices take turns too: each gets a batch of every task before the first gets its second. What earlier
  // turns measured is in the database.
  const auto finished = [&] {
    return cancel || (command.records > 0 && totals.trials >= command.records) ||
           (command.seconds > 0 && clock.monotonic_seconds() - totals.start >= command.seconds);
  };
  {
    Progress progress(clock, command.quiet);
    for (int64_t wanted = command.batch; !finished(); wanted += command.batch) {
      const int64_t per_task = std::min(wanted, command.per_task);
      for (size_t d = 0; d < devices.size() && !finished(); ++d) {
        const measure::MeasureOptions measuring = measure_options(devices[d]);
        TS_ASSIGN_OR_RETURN(auto measurer, measure::make_local_measurer(devices[d], measuring,
                                                                        {"/proc/self/exe", "__worker"}, log));
        const auto trainer = learn::make_gbt_trainer(gbt);
        search::TuneOptions options;
        options.survey = search::Survey{per_task, 1e-3 * command.slowest_ms};
        if (command.records > 0) options.trials = command.records - totals.trials;
        if (command.seconds > 0) options.seconds = totals.start + command.seconds - clock.monotonic_seconds();
        options.batch = command.batch;
        options.strategy = search::StrategyKind::kMixed;
        options.seed = command.seed;
        options.settings = measuring.settings;
        options.threads = machine.cores;
        const auto show = [&](const search::TuneProgress& p) {
          progress.update(command.devices[d], totals, p);
        };
        TS_ASSIGN_OR_RETURN(const search::TuneReport report,
                            search::tune(tasks, devices[d], options, *database, *measurer, *trainer, clock,
                                         log, show, cancel));
        totals.trials += report.final.trials;
        if (wanted == command.batch) totals.resumed += report.final.resumed;
      }
      if (per_task == command.per_task) break;
    }
  }
  const double elapsed = clock.monotonic_seconds() - totals.start;
  TS_ASSIGN_OR_RETURN(const int64_t count, database->record_count());
  if (command.json) {
    print_json(nlohmann::json{{"tasks", tasks.size()},
                              {"measured", totals.trials},
                              {"resumed", totals.resumed},
                              {"database_records", count},
                              {"seconds", elapsed}});
  } else {
    print_out("{} programs of {} tasks measured in {}, {:.1f} a second; {} holds {} records\n", totals.trials,
              tasks.size(), format_duration(elapsed),
              static_cast<double>(totals.trials) / std::max(elapsed, 1e-3), command.database, count);
  }
  if (!command.store.empty()) {
    learn::ImportOptions options;
    options.threads = machine.cores;
    options.allow_empty = [&] { return check_not_emptied(store, command.force); };
    TS_ASSIGN_OR_RETURN(const auto report,
                        learn::import_databases({command.database}, command.store, options));
    for (const auto& p : report.problems) warn(p.place + ": " + p.reason);
    if (!command.json) print_out("{} records written to {}\n", report.records, command.store);
  }
  if (cancel) return Error{ErrorCode::kCancelled, "dataset collect", "interrupted; run it again to go on"};
  return {};
}

}  // namespace

void add_dataset_collect_command(CLI::App& dataset, int& exit_code) {
  auto o = std::make_shared<CollectCommand>();
  CLI::App* command = dataset.add_subcommand(
      "collect", "Measure programs of networks on variants of this machine, as training data");
  command
      ->add_option("--networks", o->networks,
                   "Networks of the zoo (resnet50, zoo:bert_base:batch=4; zoo = all of them) and ONNX files")
      ->required();
  command
      ->add_option("--device", o->devices,
                   "local[:isa=avx2|sse4.2][:threads=N], each a device of its own; may be given again")
      ->default_val(std::vector<std::string>{"local"});
  command
      ->add_option("-o,--output", o->database,
                   "Record database; what it holds is not measured again, so a killed run goes on")
      ->required();
  command->add_option("--store", o->store, "Also make a store of the whole database at the end");
  add_force(*command, o->force);
  add_whole(*command, "--records", o->records, 0, kMaxCount,
            "Measurements in all (0 = as many as --per-task says)");
  add_real(*command, "--seconds", o->seconds, 0, kMaxSeconds, "Time for measuring (0 = no limit)");
  add_whole(*command, "--per-task", o->per_task, 1, kMaxCount, "Programs of each task and device");
  add_whole(*command, "--batch", o->batch, 1, 1024, "Programs of a task in one turn");
  add_real(*command, "--slowest", o->slowest_ms, 1e-6, 1e3 * kMaxSeconds,
           "Milliseconds; tasks whose untuned schedule takes longer get no further measurements");
  add_seed(*command, o->seed, "Seed of every random choice");
  command->add_flag("--json", o->json, "Machine-readable report on standard output");
  command->add_flag("--quiet", o->quiet, "No progress on standard error");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return collect(*o); }); });
}

}  // namespace tensorsmith::tools
