// `worker`: measures on this machine the jobs that `tune --fleet` and others post in a record
// database.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/device/measured_device.h"
#include "engine/fleet/fleet_worker.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "record/fleet.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"

namespace tensorsmith::tools {
namespace {

struct WorkerCommand {
  std::string database;
  DeviceOptions device;
  engine::WorkerOptions worker;
  bool json = false, quiet = false;
};

Status work(const WorkerCommand& command) {
  TS_RETURN_IF_ERROR(check_outputs({{"--db", command.database, OutputKind::kDatabase}}, {}));
  TS_ASSIGN_OR_RETURN(const target::Device device, command.device.resolve());
  if (!engine::is_measurable(device))
    return Error{ErrorCode::kUnsupported, "--device " + command.device.device,
                 "a worker can only measure on the machine where it runs; use local, a variant of it "
                 "(local:isa=avx2), or a GPU of this machine"};
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(command.database));
  const SystemClock clock;
  StderrLogSink log(command.quiet ? LogLevel::kError : LogLevel::kWarning);
  const std::atomic<bool>& cancel = catch_interrupts();
  engine::WorkerOptions options = command.worker;
  options.host = engine::host_name();
  options.threads = device.compute_units();
  const auto worker = measure::this_program_as_worker();
  TS_ASSIGN_OR_RETURN(const engine::WorkerTools tools,
                      engine::make_worker_tools(device, worker, clock, log, cancel));
  if (!command.quiet) {
    print_notes(command.device.notes(device));
    print_error("waiting for programs to measure from {}; this is {} ({} threads, device {})\n",
                record::shown_database(command.database), options.host, options.threads, device.key());
  }
  TS_ASSIGN_OR_RETURN(const engine::WorkerReport report,
                      engine::run_worker(
                          device, options, tools, *database,
                          [&] { return record::Fleet::open(command.database); }, clock, log, cancel));
  if (command.json) {
    print_json(nlohmann::json{
        {"measured", report.measured}, {"late", report.late}, {"interrupted", report.interrupted}});
  } else {
    print_out(
        "{} programs measured{}\n", report.measured,
        report.late > 0 ? fmt::format("; {} results came too late and were not used", report.late) : "");
  }
  return {};
}

}  // namespace

void add_worker_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<WorkerCommand>();
  CLI::App* command = app.add_subcommand("worker",
                                         "Measure programs on this machine for commands with --fleet, which "
                                         "send them through a record database");
  command
      ->add_option(
          "--db", o->database,
          "Record database of the fleet: postgresql://USER@HOST/NAME, or an SQLite file of this machine")
      ->required();
  o->device.add_to(*command);
  add_seconds(*command, "--lease", o->worker.lease_seconds, 1, 3600,
              "If this worker does not respond for this time, its unfinished programs are given to "
              "other workers");
  add_seconds(*command, "--idle", o->worker.idle_seconds, 0, kMaxSeconds,
              "End after this time without a program to measure (0 = never)");
  command->add_flag("--release", o->worker.release,
                    "End the quarantine of this device: after a failed check a device is not used until its "
                    "owner has repaired it");
  command->add_flag("--json", o->json, "Print the result as JSON on standard output");
  command->add_flag("--quiet", o->quiet, "Show only errors on standard error");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return work(*o); }); });
}

}  // namespace tensorsmith::tools
