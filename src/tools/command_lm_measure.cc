// `lm measure`: measures the schedules that `lm generate` saved.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/processors.h"
#include "engine/device/usable_threads.h"
#include "engine/report/speedup.h"
#include "engine/tune/tune_options.h"
#include "lab/written_programs.h"
#include "measure/measurer.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/language_commands.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"
#include "tools/run_log.h"

namespace tensorsmith::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct MeasureCommand {
  std::string programs;
  DeviceOptions device;
  lab::WrittenMeasuring measuring;
  bool quiet = false, json = false;
};

void print_measured(const MeasureCommand& command, const lab::WrittenMeasurements& measured, double seconds) {
  const auto number = [](double value) { return numbers_to_json({value}).front(); };
  if (command.json) {
    OrderedJson tasks = OrderedJson::array();
    for (const lab::MeasuredTask& task : measured.tasks)
      tasks.push_back({{"task", task.name},
                       {"key", task.key},
                       {"programs", task.programs},
                       {"left_out", task.left_out},
                       {"failed", task.failed},
                       {"untuned_seconds", number(task.untuned_seconds)},
                       {"best_seconds", number(task.best_seconds)}});
    print_json(OrderedJson{{"database", command.measuring.where.database},
                           {"trials", measured.trials},
                           {"seconds", seconds},
                           {"tasks", tasks}});
    return;
  }
  Table table({"task", "programs", "failed", "untuned", "fastest", "speed-up"});
  int64_t left_out = 0;
  for (const lab::MeasuredTask& task : measured.tasks) {
    left_out += task.left_out;
    const bool ran = std::isfinite(task.untuned_seconds) && std::isfinite(task.best_seconds);
    table.add({task.name, std::to_string(task.programs), std::to_string(task.failed),
               ran ? format_seconds(task.untuned_seconds) : "-",
               ran ? format_seconds(task.best_seconds) : "-",
               ran ? engine::ratio_text(task.untuned_seconds / task.best_seconds) : "-"});
  }
  print_lines(table.text());
  print_out("{} schedules measured in {}; the records are in {}\n", measured.trials, format_duration(seconds),
            command.measuring.where.database);
  if (left_out > 0)
    warn(fmt::format("{} schedules are left out because they are not in the design spaces for this device",
                     left_out));
}

Status measure_file(MeasureCommand& command) {
  TS_RETURN_IF_ERROR(check_outputs({{"--db", command.measuring.where.database, OutputKind::kDatabase}},
                                   {{"FILE", command.programs}}));
  TS_ASSIGN_OR_RETURN(const lab::WrittenPrograms written, lab::read_written(command.programs));
  TS_ASSIGN_OR_RETURN(const target::Device device, command.device.resolve());
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  double shown = start;
  StderrLogSink log(command.quiet ? LogLevel::kError : LogLevel::kWarning);
  command.measuring.threads = engine::usable_threads(processors().usable, log);
  command.measuring.where.worker = measure::this_program_as_worker();
  const auto progress = [&](const search::TuneProgress& p) {
    const double now = clock.monotonic_seconds();
    if (command.quiet || now - shown < 5) return;
    shown = now;
    print_error("{} schedules measured in {}\n", p.trials, format_duration(now - start));
  };
  TS_ASSIGN_OR_RETURN(const auto measured, lab::measure_written(written, device, command.measuring, clock,
                                                                log, progress, catch_interrupts()));
  print_measured(command, measured, clock.monotonic_seconds() - start);
  return {};
}

}  // namespace

void add_language_measure(CLI::App& lm, int& exit_code) {
  auto o = std::make_shared<MeasureCommand>();
  CLI::App* sub = lm.add_subcommand("measure", "Measure the schedules of a file that `lm generate` wrote");
  sub->add_option("file", o->programs, "File of schedules, from `lm generate -o`")->required();
  sub->add_option("--db", o->measuring.where.database,
                  "Record database for the measurements; schedules that it has are not measured again")
      ->required();
  add_whole(*sub, "--count", o->measuring.count, 0, kMaxCount,
            "Measure only this many schedules of each task, the most likely ones (0 = all)");
  o->device.add_to(*sub);
  sub->add_flag("--fleet", o->measuring.where.fleet, engine::tune_option("fleet").help);
  sub->add_flag("--quiet", o->quiet, "Show no progress");
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, &exit_code] { exit_code = run_command([&] { return measure_file(*o); }); });
}

}  // namespace tensorsmith::tools
