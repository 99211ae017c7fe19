// `dataset collect`: measures programs of many networks on variants of this machine, as training data.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/device/gpu_device.h"
#include "engine/device/measured_device.h"
#include "engine/device/usable_threads.h"
#include "lab/collect.h"
#include "lab/kinds/kinds.h"
#include "learn/dataset/import.h"
#include "measure/measurer.h"
#include "search/tuner.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/import_summary.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct CollectCommand {
  std::vector<std::string> networks;
  std::vector<std::string> devices, tasks;
  std::string store;
  double slowest_ms = 50;
  lab::CollectOptions collect;
  bool json = false, quiet = false, force = false;
};

class Progress final : public lab::CollectEvents {
 public:
  Progress(const Clock& clock, const std::vector<std::string>& devices, bool quiet)
      : clock_(clock), devices_(devices), quiet_(quiet), terminal_(isatty(2) == 1) {}
  ~Progress() override {
    if (terminal_ && drawn_) write_error("\n");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void progress(size_t device, const lab::CollectReport& before, const search::TuneProgress& p) override {
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
    const double elapsed = before.elapsed_seconds + p.elapsed_seconds;
    write_error(terminal_ ? "\r\033[K" : "");
    print_error("{}: {} of {} tasks, {} failed; {} records in {}, {:.1f} per second", devices_[device],
                touched, p.tasks.size(), failed, trials, format_duration(elapsed),
                trials / std::max(elapsed, 1e-3));
    if (!terminal_) write_error("\n");
  }

 private:
  const Clock& clock_;
  const std::vector<std::string>& devices_;
  bool quiet_, terminal_, drawn_ = false;
  double last_ = -1e9;
};

Result<std::vector<target::Device>> resolve_devices(const std::vector<std::string>& specs) {
  std::vector<target::Device> devices;
  for (const std::string& spec : specs) {
    TS_ASSIGN_OR_RETURN(target::Device device, engine::find_device(spec));
    if (!engine::is_measurable(device)) {
      return Error{ErrorCode::kUnsupported, "--device " + spec,
                   "collecting measures on this machine; use local or a variant of it (local:isa=avx2)"};
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

// kNotFound for a key that is not a task's.
Status keep_named(const std::vector<std::string>& keys, std::vector<engine::SharedTask>& tasks) {
  for (const std::string& key : keys) {
    if (std::none_of(tasks.begin(), tasks.end(), [&](const auto& shared) { return shared.task.key == key; }))
      return Error{ErrorCode::kNotFound, "--task " + key,
                   "is not a task of the networks (see `tensorsmith tasks MODEL --json`)"};
  }
  std::erase_if(tasks, [&](const auto& shared) {
    return std::find(keys.begin(), keys.end(), shared.task.key) == keys.end();
  });
  return {};
}

Status collect(const CollectCommand& command) {
  std::vector<OutputPath> outputs = {{"-o", command.collect.where.database, OutputKind::kDatabase}};
  const OutputPath store{"--store", command.store, OutputKind::kStore};
  if (!command.store.empty()) outputs.push_back(store);
  std::vector<InputPath> inputs = {{"--cost-model", command.collect.cost_model.model}};
  for (const ModelOptions& model : models_of_networks(command.networks))
    inputs.push_back({"--networks", model.path});
  for (const std::string& device : command.devices) inputs.push_back({"--device", device_file(device)});
  TS_RETURN_IF_ERROR(check_outputs(outputs, inputs, command.force));
  lab::CollectOptions options = command.collect;
  const std::string& database_path = options.where.database;
  TS_ASSIGN_OR_RETURN(options.devices, resolve_devices(command.devices));
  std::vector<engine::ModelSource> networks;
  for (const ModelOptions& model : models_of_networks(command.networks)) {
    TS_ASSIGN_OR_RETURN(networks.emplace_back(), model.source());
  }
  TS_ASSIGN_OR_RETURN(auto tasks, engine::load_tasks(networks));
  if (!command.tasks.empty()) TS_RETURN_IF_ERROR(keep_named(command.tasks, tasks));
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(database_path));
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
  const SystemClock clock;
  StderrLogSink log(command.quiet ? LogLevel::kError : LogLevel::kWarning);
  const std::atomic<bool>& cancel = catch_interrupts();
  options.slowest_seconds = 1e-3 * command.slowest_ms;
  options.threads = engine::usable_threads(machine.cpu().cores, log);
  options.where.worker = measure::this_program_as_worker();
  lab::CollectReport totals;
  {
    Progress progress(clock, command.devices, command.quiet);
    TS_ASSIGN_OR_RETURN(totals, lab::collect(tasks, options, *database, clock, log, progress, cancel));
  }
  TS_ASSIGN_OR_RETURN(const int64_t count, database->record_count());
  if (!command.json)
    print_out("{} programs of {} tasks measured in {}, {:.1f} per second; {} now contains {} records\n",
              totals.trials, tasks.size(), format_duration(totals.elapsed_seconds),
              static_cast<double>(totals.trials) / std::max(totals.elapsed_seconds, 1e-3),
              record::shown_database(database_path), count);
  nlohmann::json stored;
  if (!command.store.empty()) {
    learn::ImportOptions import;
    import.threads = options.threads;
    import.allow_empty = [&] { return check_not_emptied(store, command.force); };
    TS_ASSIGN_OR_RETURN(const auto report, learn::import_databases({database_path}, command.store, import));
    for (const auto& p : report.problems) warn(p.place + ": " + p.reason);
    stored = import_json(report);
    const std::string left_out = left_out_text(report);
    if (!command.json)
      print_out("{} of these records written to {}{}{}\n", report.records, command.store,
                left_out.empty() ? "" : "; ", left_out);
  }
  if (command.json)
    print_json(nlohmann::json{{"tasks", tasks.size()},
                              {"measured", totals.trials},
                              {"resumed", totals.resumed},
                              {"database_records", count},
                              {"stored", stored},
                              {"seconds", totals.elapsed_seconds}});
  if (totals.interrupted)
    return Error{ErrorCode::kCancelled, "dataset collect",
                 "interrupted; run the same command again to continue"};
  return {};
}

}  // namespace

void add_dataset_collect_command(CLI::App& dataset, int& exit_code) {
  auto o = std::make_shared<CollectCommand>();
  CLI::App* command = dataset.add_subcommand(
      "collect", "Measure programs of networks on this machine, as training data for cost models");
  command
      ->add_option("--networks", o->networks,
                   "Networks of the zoo (resnet50, zoo:bert_base:batch=4; zoo = all of them) and ONNX files; "
                   "their tasks are measured")
      ->required();
  command->add_option(
      "--task", o->tasks,
      "Measure only this task of the networks, given by its key (repeatable; see `dataset next`)");
  command
      ->add_option("--device", o->devices,
                   "Variant of this machine to measure on: local[:isa=avx2|sse4.2][:threads=N] (repeatable); "
                   "each variant is a device of its own")
      ->default_val(std::vector<std::string>{"local"});
  command
      ->add_option("-o,--output", o->collect.where.database,
                   "Record database for the measurements; an interrupted run continues from it")
      ->required();
  command->add_option("--store", o->store, "Also write the whole database to this store at the end");
  add_force(*command, o->force);
  add_whole(*command, "--records", o->collect.records, 0, kMaxCount,
            "Total number of measurements (0 = no limit besides --per-task)");
  add_seconds(*command, "--seconds", o->collect.seconds, 0, kMaxSeconds,
              "Time limit for measuring (0 = no limit)");
  add_whole(*command, "--per-task", o->collect.per_task, 1, kMaxCount,
            "Number of programs to measure for each task and device");
  add_whole(*command, "--batch", o->collect.batch, 1, 1024,
            "Number of programs of a task to measure before the next task");
  add_real(*command, "--slowest", o->slowest_ms, 1e-6, 1e3 * kMaxSeconds,
           "Limit in milliseconds: if a task's untuned schedule takes longer, no further programs of it are "
           "measured");
  o->collect.cost_model.kinds = &lab::cost_model_kinds();
  add_tune_option(*command, "cost_model", &o->collect.cost_model.model);
  add_tune_option(*command, "frozen", &o->collect.cost_model.frozen);
  add_seed(*command, o->collect.seed, "Seed of every random choice");
  command->add_flag("--fleet", o->collect.where.fleet, engine::tune_option("fleet").help);
  command->add_flag("--json", o->json, "Print the result as JSON on standard output");
  command->add_flag("--quiet", o->quiet, "Show no progress on standard error");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return collect(*o); }); });
}

}  // namespace tensorsmith::tools
