#include <nlohmann/json.hpp>

#include "engine/device/gpu_device.h"
#include "engine/model/load_model.h"
#include "lab/profile_programs.h"
#include "measure/profile/perf_events.h"
#include "measure/profile/time_kernel.h"
#include "record/database.h"
#include "record/ncu_csv.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/named_tasks.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct ProfileCommand {
  std::string source;  // a database or a model
  std::string database = record::kDefaultDatabase;
  std::vector<std::string> tasks;
  DeviceOptions device;
  std::string profiler = "auto";
  int64_t per_task = 0;
  bool again = false, json = false, quiet = false;
};

// Returns hardware counters if they are available; else the simulation, with a note that says why.
std::string chosen_profiler(const ProfileCommand& command) {
  if (command.profiler == "simulation") return measure::kSimulation;
  if (command.profiler == "perf") return measure::kPerfEvents;
  if (command.profiler == "timing") return measure::kTiming;
  const Status counters = measure::check_perf_events();
  if (counters.ok()) return measure::kPerfEvents;
  if (!command.quiet)
    print_notes({"programs are simulated because hardware counters are not available: " +
                 counters.error().message()});
  return measure::kSimulation;
}

// GPUs support only Nsight Compute's counters.
Result<std::string> profiler_of(const ProfileCommand& command, const target::Device& device) {
  const bool nsight = command.profiler == "ncu";
  if (device.kind() != target::DeviceKind::kGpu && !nsight) return chosen_profiler(command);
  if (device.kind() != target::DeviceKind::kGpu)
    return Error{ErrorCode::kInvalidArgument, "--profiler ncu",
                 "works only for NVIDIA GPUs; name one with --device cuda"};
  if (!nsight && command.profiler != "auto")
    return Error{ErrorCode::kInvalidArgument, "--profiler " + command.profiler,
                 "works only for CPUs; programs of a GPU are profiled with --profiler ncu (Nsight Compute)"};
  const auto place = engine::gpu_place(device);
  if (!place || !place->platform->has_nsight_compute)
    return Error{ErrorCode::kUnsupported, "device " + device.name,
                 "cannot be profiled: a program must run for that, so the GPU must be an NVIDIA GPU of this "
                 "machine (--device cuda)"};
  return std::string(record::kNcuProfiler);
}

Result<std::set<std::string>> tasks_of(const std::string& model) {
  TS_ASSIGN_OR_RETURN(const auto tasks, engine::load_tasks({{model}}));
  std::set<std::string> keys;
  for (const auto& shared : tasks) keys.insert(shared.task.key);
  return keys;
}

Status profile(const ProfileCommand& command) {
  lab::ProfileOptions options;
  const bool is_model = !record::is_database_file(command.source);
  if (is_model) {
    TS_ASSIGN_OR_RETURN(options.tasks, tasks_of(command.source));
  }
  const std::string path = is_model ? command.database : command.source;
  TS_RETURN_IF_ERROR(check_outputs({{is_model ? "--db" : "SOURCE", path, OutputKind::kDatabase}}, {}));
  if (!record::is_database_file(path))
    return Error{ErrorCode::kNotFound, path,
                 "is not a record database; name one with --db that has programs measured by `tune` or "
                 "`dataset collect`"};
  TS_ASSIGN_OR_RETURN(options.device, command.device.resolve());
  TS_ASSIGN_OR_RETURN(options.profiler, profiler_of(command, options.device));
  options.database_path = path;
  options.per_task = command.per_task;
  options.again = command.again;
  TS_ASSIGN_OR_RETURN(auto database, record::Database::open(path));
  if (!command.tasks.empty()) {
    TS_ASSIGN_OR_RETURN(const auto recorded, database->tasks());
    TS_ASSIGN_OR_RETURN(options.tasks, named_tasks(recorded, command.tasks));
  }
  const SystemClock clock;
  double last = clock.monotonic_seconds();
  constexpr double kEverySeconds = 10;
  const auto progress = [&](const lab::ProfileReport& report, int64_t programs) {
    if (command.quiet || clock.monotonic_seconds() - last < kEverySeconds) return;
    last = clock.monotonic_seconds();
    print_error("{} of {} programs profiled\n", report.profiled + report.known + report.failed, programs);
  };
  TS_ASSIGN_OR_RETURN(const auto report,
                      lab::profile_programs(*database, options, clock, progress, catch_interrupts()));
  for (const std::string& problem : report.problems) warn(problem);
  if (command.json) {
    print_json(nlohmann::json{{"profiler", options.profiler},
                              {"profiled", report.profiled},
                              {"known", report.known},
                              {"failed", report.failed},
                              {"seconds", report.seconds}});
  } else {
    print_out("{} programs profiled ({}) in {}; {} had a profile already, {} failed\n", report.profiled,
              options.profiler, format_duration(report.seconds), report.known, report.failed);
  }
  if (report.profiled + report.known == 0)
    return Error{ErrorCode::kNotFound, path,
                 "has no successful record of this device that can be profiled; give --device and --threads "
                 "the values that the records were measured with"};
  return {};
}

}  // namespace

void add_profile_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ProfileCommand>();
  CLI::App* command = app.add_subcommand("profile",
                                         "Count the instructions and cache misses of measured programs, and "
                                         "store the counters with their records");
  command->add_option(
      "source", o->source,
      "Record database, or a model (NAME.onnx, zoo:NAME) to profile only the programs of its tasks in --db");
  command->add_option("--db", o->database, "Record database, if SOURCE is a model")
      ->capture_default_str()
      ->configurable();
  command
      ->add_option(
          "--task", o->tasks,
          "Profile only tasks whose name begins with this text, or the task with this key (repeatable)")
      ->allow_extra_args(false);
  o->device.add_to(*command);
  command
      ->add_option(
          "--profiler", o->profiler,
          "Source of the counters: perf (hardware counters of the CPU), simulation (a model of the CPU's "
          "caches), ncu (counters of a GPU, by NVIDIA Nsight Compute) or auto (the first of these that "
          "works). timing counts nothing and measures the times again; with --again the smallest time is "
          "kept")
      ->check(CLI::IsMember({"auto", "perf", "simulation", "ncu", "timing"}))
      ->capture_default_str();
  add_whole(*command, "--per-task", o->per_task, 0, kMaxCount,
            "Profile only this many of the fastest programs of each task (0 = all)");
  command->add_flag("--again", o->again, "Also profile programs that have a profile already");
  command->add_flag("--json", o->json, "Print the result as JSON on standard output");
  command->add_flag("--quiet", o->quiet, "Show no progress and no notes on standard error");
  command->require_subcommand(0, 1);
  add_profile_import_command(*command, exit_code);
  add_profile_transfer_command(*command, exit_code);
  command->callback([o, command, &exit_code] {
    if (!command->get_subcommands().empty()) return;
    if (o->source.empty()) throw CLI::RequiredError("source");
    exit_code = run_command([&] { return profile(*o); });
  });
}

}  // namespace tensorsmith::tools
