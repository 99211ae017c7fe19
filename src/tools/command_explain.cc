#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/explain.h"
#include "measure/profile/simulate.h"
#include "record/jsonl.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/explain_plot.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/profiled_data.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

struct ExplainCommand {
  std::string database, task, plot;
  std::string profiler = measure::kSimulation;
  bool json = false, force = false;
};

nlohmann::json to_json(const lab::Explanation& e) {
  nlohmann::json out = {{"task", e.task},
                        {"programs", e.programs},
                        {"best_seconds", e.best_seconds},
                        {"typical_seconds", e.typical_seconds},
                        {"limit", e.best[e.limit].part},
                        {"clock_ghz", e.clock_ghz},
                        {"sentences", e.sentences}};
  for (size_t d = 0; d < e.best.size(); ++d)
    out["demands"].push_back({{"part", e.best[d].part},
                              {"best_seconds", e.best[d].seconds},
                              {"best_busy", e.best[d].busy_share(e.best_seconds)},
                              {"typical_seconds", e.typical[d].seconds},
                              {"typical_busy", e.typical[d].busy_share(e.typical_seconds)}});
  const double best_rest = lab::unexplained_seconds(e.best, e.best_seconds),
               typical_rest = lab::unexplained_seconds(e.typical, e.typical_seconds);
  out["unexplained"] = {{"best_seconds", best_rest},
                        {"best_share", best_rest / e.best_seconds},
                        {"typical_seconds", typical_rest},
                        {"typical_share", typical_rest / e.typical_seconds}};
  for (const auto& c : e.counters)
    out["counters"].push_back(
        {{"name", c.name}, {"importance", c.importance}, {"best", c.best}, {"typical", c.typical}});
  for (const auto& b : e.buffers)
    out["buffers"].push_back(
        {{"name", b.buffer}, {"bytes", b.bytes}, {"l1_misses", b.l1_misses}, {"l2_misses", b.l2_misses}});
  return out;
}

void print_explanation(const lab::Explanation& e) {
  print_out("{}: {} profiled programs, fastest {}, typical {}\n", e.task, e.programs,
            format_seconds(e.best_seconds), format_seconds(e.typical_seconds));
  for (const std::string& sentence : e.sentences) print_out("{}\n", sentence);
  print_out(
      "\nbusy times at {:.2f} GHz, the lowest clock at which the multiply-adds of all programs are "
      "possible. The parts work at the\nsame time: the busiest one and the unexplained time make up 100 %.\n",
      e.clock_ghz);
  Table demands({"part of the core", "fastest", "% of its time", "typical", "% of its time"});
  for (size_t d = 0; d < e.best.size(); ++d)
    demands.add({e.best[d].part, format_seconds(e.best[d].seconds),
                 fmt::format("{:.0f}", 100 * e.best[d].busy_share(e.best_seconds)),
                 format_seconds(e.typical[d].seconds),
                 fmt::format("{:.0f}", 100 * e.typical[d].busy_share(e.typical_seconds))});
  const double best_rest = lab::unexplained_seconds(e.best, e.best_seconds),
               typical_rest = lab::unexplained_seconds(e.typical, e.typical_seconds);
  // The percentage is what the rounded one of the busiest part leaves of 100.
  const auto percent = [](double rest, double seconds) {
    return std::to_string(100 - std::lround(100 - 100 * rest / seconds));
  };
  demands.add({"unexplained", format_seconds(best_rest), percent(best_rest, e.best_seconds),
               format_seconds(typical_rest), percent(typical_rest, e.typical_seconds)});
  print_lines(demands.text());
  Table counters({"counter", "importance", "fastest", "typical"});
  for (const auto& c : e.counters)
    counters.add({c.name, fmt::format("{:.2f}", c.importance), fmt::format("{:.4g}", c.best),
                  fmt::format("{:.4g}", c.typical)});
  print_lines("\n" + counters.text());
  Table buffers({"buffer", "moved", "L1 misses", "L2 misses"});
  for (const auto& b : e.buffers)
    buffers.add({b.buffer, format_bytes(b.bytes), fmt::format("{:.0f}", b.l1_misses),
                 fmt::format("{:.0f}", b.l2_misses)});
  print_lines("\n" + buffers.text());
}

Status explain(const ExplainCommand& command) {
  if (!command.plot.empty())
    TS_RETURN_IF_ERROR(check_outputs({{"--plot", command.plot, OutputKind::kPlot}},
                                     {{"DATABASE", command.database}}, command.force));
  TS_ASSIGN_OR_RETURN(const learn::ProfiledPrograms data,
                      read_profiles({command.database}, command.profiler, {}));
  TS_ASSIGN_OR_RETURN(const lab::Explanation e, lab::explain(data, command.task));
  if (!command.plot.empty()) {
    TS_ASSIGN_OR_RETURN(auto file, record::AtomicFileWriter::open(command.plot));
    TS_RETURN_IF_ERROR(file->write(explain_plot(e)));
    TS_RETURN_IF_ERROR(file->commit());
  }
  if (command.json) {
    print_json(to_json(e));
  } else {
    print_explanation(e);
  }
  return {};
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ExplainCommand>();
  CLI::App* command = app.add_subcommand(
      "explain", "Explain with profiles why a task's fastest program is fast and what limits its speed");
  command->add_option("database", o->database, "Record database with profiled programs")->required();
  command->add_option("--task", o->task, "Task to explain: its key, or the beginning of its name")
      ->required();
  command
      ->add_option("--profiler", o->profiler, "Profiler whose counters are used (see `tensorsmith profile`)")
      ->capture_default_str();
  command->add_option("--plot", o->plot, "Also write the explanation as a plot to this SVG file");
  add_force(*command, o->force);
  command->add_flag("--json", o->json, "Print the result as JSON on standard output");
  command->callback([o, &exit_code] { exit_code = run_command([&] { return explain(*o); }); });
}

}  // namespace tensorsmith::tools
