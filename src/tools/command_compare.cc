#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/clock.h"
#include "base/processors.h"
#include "engine/device/usable_threads.h"
#include "engine/predict/model_data.h"
#include "engine/tune/tune_sources.h"
#include "lab/compare_searches.h"
#include "lab/kinds/kinds.h"
#include "lab/strategies/strategies.h"
#include "learn/dataset/split.h"
#include "learn/latency/queries.h"
#include "learn/search_model.h"
#include "record/jsonl.h"
#include "tools/commands.h"
#include "tools/console.h"
#include "tools/curve_plot.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/numbers.h"
#include "tools/options.h"
#include "tools/output_files.h"
#include "tools/report.h"
#include "tools/run_log.h"
#include "tools/whole_networks.h"

namespace tensorsmith::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Parts of the trials after which results are printed.
const std::vector<double> kParts = {0.125, 0.25, 0.5, 1};

struct CompareCommand : SearchedTasks {
  CompareCommand() : SearchedTasks{.heaviest = 3} {}
  std::vector<std::string> strategies, models, store_devices;
  std::string store, split, part = "test", plot, time_plot;
  lab::CompareOptions options;
  lab::SimulationOptions simulation;
  std::vector<std::string> language_models;
  WholeNetworks whole;
  bool quiet = false, json = false, force = false;
};

std::string name_of(const lab::SearchMethod& method) {
  return method.strategy + (method.language_model.empty() ? "" : " " + method.language_model) +
         (method.model == "none" ? "" : ", " + method.model) + (method.seeded ? ", warm" : "");
}

// Returns the files of the language models that the strategy is compared with; an empty name stands for
// the search without one. A strategy that cannot do without gets the shipped model if --lm is not given.
Result<std::vector<std::string>> writers_of(const CompareCommand& command, const search::StrategyKind& kind) {
  std::vector<std::string> writers;
  if (!kind.needs_writer) writers.emplace_back();
  if (!kind.asks_writer) return writers;
  const std::string place = "--strategy " + std::string(kind.name);
  if (kind.needs_writer && !command.store.empty())
    return Error{ErrorCode::kInvalidArgument, place,
                 "measures schedules that a language model writes, which are not among recorded programs; "
                 "leave out --store"};
  std::vector<std::string> given = command.language_models;
  if (kind.needs_writer && given.empty()) given.emplace_back("shipped");
  for (const std::string& model : given) {
    TS_ASSIGN_OR_RETURN(std::string file, engine::language_model_for(kind, model));
    if (!file.empty()) writers.push_back(std::move(file));
  }
  if (writers.empty())
    return Error{ErrorCode::kInvalidArgument, place,
                 "measures schedules that a language model writes; name the model's file with --lm"};
  return writers;
}

// Adds a strategy with every cost model, or once if it uses none; if it can use a language model,
// with each one and without.
Status add_methods(const CompareCommand& command, const search::StrategyKind& kind,
                   const std::vector<std::string>& models, std::vector<lab::SearchMethod>& methods) {
  const std::string strategy(kind.name);
  if (kind.only_seeds) {
    if (command.from.empty())
      return Error{ErrorCode::kInvalidArgument, "--strategy " + strategy,
                   "measures only schedules that were fast on other tasks or devices; name their databases "
                   "with --from"};
    methods.push_back({strategy, "none", true});
    return {};
  }
  TS_ASSIGN_OR_RETURN(const auto writers, writers_of(command, kind));
  const std::vector<std::string> none = {"none"};
  for (const std::string& writer : writers)
    for (const std::string& model : kind.uses_scores ? models : none)
      methods.push_back({strategy, model, false, writer});
  return {};
}

// Returns a method for every strategy. If sources are given, each method is added a second time,
// seeded from them.
Result<std::vector<lab::SearchMethod>> methods_of(const CompareCommand& command) {
  std::vector<lab::SearchMethod> methods;
  const auto strategies = command.strategies.empty()
                              ? std::vector<std::string>{std::string(search::kDefaultStrategy.name)}
                              : command.strategies;
  // The shipped model knows programs by their decisions, which stores of other compilers lack.
  const std::string by_default = command.store.empty() ? learn::kShippedModel : "xgboost";
  const auto models = command.models.empty() ? std::vector<std::string>{by_default} : command.models;
  // A strategy without a language model may stand beside one that uses the named models, not alone.
  const search::StrategyKind* asks = nullptr;
  for (const std::string& strategy : strategies) {
    TS_ASSIGN_OR_RETURN(const auto* kind, lab::find_strategy(strategy));
    if (asks == nullptr || kind->asks_writer) asks = kind;
    TS_RETURN_IF_ERROR(add_methods(command, *kind, models, methods));
  }
  for (const std::string& model : command.language_models) {
    const auto file = engine::language_model_for(*asks, model);
    if (!file.ok()) return file.error();
  }
  const size_t cold = command.from.empty() ? 0 : methods.size();
  for (size_t m = 0; m < cold; ++m) {
    if (methods[m].seeded) continue;
    methods.push_back(methods[m]);
    methods.back().seeded = true;
  }
  return methods;
}

// Returns the number of trials after which a curve first reaches `share`; 0: never.
size_t trials_to(const std::vector<double>& curve, double share) {
  for (size_t n = 0; n < curve.size(); ++n)
    if (curve[n] >= share) return n + 1;
  return 0;
}

OrderedJson to_json(const std::vector<lab::SearchRun>& runs, const lab::CompareOptions& options) {
  OrderedJson out = OrderedJson::array();
  for (size_t m = 0; m < options.methods.size(); ++m) {
    const lab::MethodScore score = lab::score_of(runs, m, kParts);
    OrderedJson entry = {{"strategy", options.methods[m].strategy},
                         {"model", options.methods[m].model},
                         {"lm", options.methods[m].language_model},
                         {"warm", options.methods[m].seeded},
                         {"tasks", score.tasks},
                         {"seen_tasks", score.seen},
                         {"parts", kParts},
                         {"mean", score.mean},
                         {"deviation", score.deviation},
                         {"worst", score.worst},
                         {"gain_over_untuned", lab::gain_over_untuned(runs, m)},
                         {"curve", lab::mean_curve(runs, m)},
                         {"seconds", lab::mean_seconds(runs, m)},
                         {"runs", OrderedJson::array()}};
    for (const int64_t n : options.again) {
      const auto score_again = lab::again_score(runs, m, n, true, 0);
      entry["again"].push_back({{"trials", n},
                                {"mean", score_again.mean},
                                {"deviation", score_again.deviation},
                                {"median", score_again.median},
                                {"worst", score_again.worst}});
    }
    for (const auto& run : runs) {
      if (run.method != m) continue;
      entry["runs"].push_back(
          {{"device", run.device},
           {"task", run.task},
           {"name", run.name},
           {"seed", run.seed},
           {"fastest", run.fastest},
           {"trials", run.best.size()},
           {"untuned", numbers_to_json({run.untuned}).front()},
           {"best", run.best.empty() ? OrderedJson() : numbers_to_json({run.best.back()}).front()}});
    }
    out.push_back(std::move(entry));
  }
  return out;
}

void print_people(const std::vector<lab::SearchRun>& runs, const CompareCommand& command) {
  const lab::CompareOptions& options = command.options;
  std::vector<std::string> header = {"strategy, cost model", "tasks"};
  for (const double part : kParts)
    header.push_back(command.simulation.share > 0
                         ? fmt::format("{:.3g} %", 100 * part * command.simulation.share)
                         : fmt::format("{} trials", std::ceil(part * options.trials)));
  header.insert(header.end(), {"worst task", "speed-up over untuned", "trials to match", "seconds"});
  Table table(header);
  const auto first = lab::mean_curve(runs, 0);
  for (size_t m = 0; m < options.methods.size(); ++m) {
    const lab::MethodScore score = lab::score_of(runs, m, kParts);
    std::vector<std::string> row = {name_of(options.methods[m]), std::to_string(score.tasks)};
    for (size_t p = 0; p < kParts.size(); ++p)
      row.push_back(fmt::format("{:.1f} +- {:.1f} %", 100 * score.mean[p], 100 * score.deviation[p]));
    row.push_back(fmt::format("{:.1f} %", 100 * score.worst));
    row.push_back(fmt::format("{:.3f}", lab::gain_over_untuned(runs, m)));
    const size_t n = first.empty() ? 0 : trials_to(lab::mean_curve(runs, m), first.back());
    row.push_back(n > 0 ? std::to_string(n) : "-");
    const auto seconds = lab::mean_seconds(runs, m);
    row.push_back(seconds.empty() ? "-" : fmt::format("{:.1f}", seconds.back()));
    table.add(std::move(row));
    if (score.seen > 0)
      warn(fmt::format("the cost model {2} was trained on {0} of these {1} tasks", score.seen, score.tasks,
                       options.methods[m].model));
  }
  print_lines(table.text());
  print_out(
      "Each row is a method. The percentages are the speed of the best program that it found after so many "
      "trials, relative to\nthe fastest program {}: geometric mean over the tasks, then mean and standard "
      "deviation over {} seeds.\nworst task: the lowest final percentage of a task. trials to match: trials "
      "that the method needs to reach the final\npercentage of the first row. seconds: duration of the "
      "search of a task.\n",
      command.store.empty() ? "that any search found" : "in the store", options.seeds);
}

// Prints the winners timed again, relative to the fastest of the first method.
void print_again(const std::vector<lab::SearchRun>& runs, const lab::CompareOptions& options) {
  std::vector<std::string> header = {"strategy, cost model"};
  for (const int64_t n : options.again) header.push_back(fmt::format("{} trials", n));
  Table table(header);
  for (size_t m = 0; m < options.methods.size(); ++m) {
    std::vector<std::string> row = {name_of(options.methods[m])};
    for (const int64_t n : options.again) {
      const auto score = lab::again_score(runs, m, n, true, 0);
      row.push_back(fmt::format("{:.1f} +- {:.1f} % ({:.1f})", 100 * score.mean, 100 * score.deviation,
                                100 * score.worst));
    }
    table.add(std::move(row));
  }
  print_lines(table.text());
  print_out(
      "For each method, the best program after so many trials was timed again in new processes, alternating "
      "with those of the\nother methods. The percentages are its speed relative to the best program of the "
      "first row's whole search: mean and\nstandard deviation over {} seeds (worst task).\n",
      options.seeds);
}

// Plots the curves against trials or against the seconds that the trials took.
Status draw(const std::string& path, const CompareCommand& command, const std::vector<lab::SearchRun>& runs,
            bool against_seconds) {
  if (path.empty()) return {};
  std::vector<Curve> curves;
  for (size_t m = 0; m < command.options.methods.size(); ++m) {
    Curve& curve = curves.emplace_back();
    curve.name = name_of(command.options.methods[m]);
    curve.y = lab::mean_curve(runs, m);
    curve.low = curve.high = curve.y;
    for (int seed = 0; seed < command.options.seeds; ++seed) {
      const auto one = lab::mean_curve(runs, m, static_cast<uint64_t>(seed));
      for (size_t n = 0; n < std::min(one.size(), curve.y.size()); ++n) {
        curve.low[n] = std::min(curve.low[n], one[n]);
        curve.high[n] = std::max(curve.high[n], one[n]);
      }
    }
    if (against_seconds) {
      curve.x = lab::mean_seconds(runs, m);
      for (double& x : curve.x) x = std::max(x, 1e-3);
    } else {
      for (size_t n = 0; n < curve.y.size(); ++n) curve.x.push_back(n + 1);
    }
  }
  TS_ASSIGN_OR_RETURN(const auto picture, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(picture->write(curve_plot(
      curves,
      {command.store.empty() ? "Searches measured on this machine" : "Searches on recorded programs",
       against_seconds ? "search time in seconds" : "trials",
       command.store.empty() ? "speed of the best program / speed of the fastest found by any search"
                             : "speed of the best program / speed of the fastest in the store"},
      "compare")));
  return picture->commit();
}

Status check_places(const CompareCommand& command) {
  std::vector<OutputPath> outputs;
  if (!command.plot.empty()) outputs.push_back({"--plot", command.plot, OutputKind::kPlot});
  if (!command.time_plot.empty()) outputs.push_back({"--time-plot", command.time_plot, OutputKind::kPlot});
  std::vector<InputPath> inputs = {
      {"--store", command.store}, {"--split", command.split}, {"--log", command.log}};
  for (const std::string& model : command.models) inputs.push_back({"--cost-model", model});
  for (const std::string& model : command.language_models) inputs.push_back({"--lm", model});
  for (const std::string& source : command.from) inputs.push_back({"--from", source});
  for (const std::string& network : command.networks) inputs.push_back({"MODELS", network});
  return check_outputs(outputs, inputs, command.force);
}

Result<std::vector<lab::SearchRun>> simulate(CompareCommand& command, LogSink& log,
                                             const lab::CompareProgressFn& progress) {
  TS_ASSIGN_OR_RETURN(const engine::ModelData data, engine::ModelData::open(command.store));
  std::vector<int64_t> records(data.store().size());
  std::iota(records.begin(), records.end(), int64_t{0});
  if (!command.split.empty()) {
    TS_ASSIGN_OR_RETURN(const learn::Split split, data.load_split(command.split));
    TS_ASSIGN_OR_RETURN(const learn::Part part, engine::parse_part(command.part));
    records = split.records_of(part);
  }
  if (!command.store_devices.empty()) {
    TS_ASSIGN_OR_RETURN(const auto names, data.store_names(command.store_devices));
    records = learn::records_of_devices(data.store(), records, names);
  }
  command.simulation.threads = engine::usable_threads(processors().usable, log);
  return lab::simulate_searches(data.store(), data.devices(), records, command.options, command.simulation,
                                log, progress, catch_interrupts());
}

Status compare_whole(CompareCommand& command) {
  WholeNetworks& whole = command.whole;
  whole.networks = command.networks;
  whole.from = command.from;
  whole.cost_models = command.models;
  whole.language_models = command.language_models;
  whole.device = command.device;
  whole.seeds = command.options.seeds;
  whole.batch = command.options.batch;
  whole.quiet = command.quiet;
  whole.json = command.json;
  return compare_whole_networks(whole);
}

Status compare(CompareCommand& command) {
  TS_RETURN_IF_ERROR(check_places(command));
  TS_ASSIGN_OR_RETURN(command.options.methods, methods_of(command));
  for (const int64_t n : command.options.again)
    if (n > command.options.trials)
      return Error{
          ErrorCode::kInvalidArgument, "--again",
          fmt::format("{} is more than the number of trials, {} (--trials)", n, command.options.trials)};
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  double shown = start;
  StderrLogSink log(LogLevel::kWarning);
  const lab::CompareProgressFn progress = [&](const lab::CompareProgress& p) {
    const double now = clock.monotonic_seconds();
    if (command.quiet || (now - shown < 5 && p.done < p.all)) return;
    shown = now;
    const double left = (now - start) / static_cast<double>(p.done) * static_cast<double>(p.all - p.done);
    print_error("{} of {} searches in {}, {} left\n", p.done, p.all, format_duration(now - start),
                format_duration(left));
  };
  TS_ASSIGN_OR_RETURN(const auto runs, command.store.empty() ? measure_searches(command, command.options,
                                                                                false, nullptr, log, progress)
                                                             : simulate(command, log, progress));
  if (runs.empty()) return Error{ErrorCode::kCancelled, "", "interrupted before any search was done"};
  if (catch_interrupts()) warn("interrupted: the table shows the searches that were finished");
  TS_RETURN_IF_ERROR(draw(command.plot, command, runs, false));
  TS_RETURN_IF_ERROR(draw(command.time_plot, command, runs, true));
  if (command.json) {
    print_json(OrderedJson{{"methods", to_json(runs, command.options)}});
  } else {
    print_people(runs, command);
    if (!command.options.again.empty()) print_again(runs, command.options);
  }
  return {};
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<CompareCommand>();
  CLI::App* sub = app.add_subcommand("compare",
                                     "Compare search strategies and cost models, by measuring on this "
                                     "machine or by replaying recorded programs");
  auto* networks = sub->add_option(
      "MODELS", o->networks, "ONNX models or networks of the zoo (zoo:NAME); the searches tune their tasks");
  auto* store = sub->add_option(
      "--store", o->store,
      "Replay the searches on a store of measured programs (see `tensorsmith dataset`) instead of measuring");
  auto* split =
      sub->add_option("--split", o->split, "Use only one part of this split of the store (see --part)")
          ->needs(store);
  sub->add_option("--part", o->part, "Part of the split to use: train, validation, test or unused")
      ->capture_default_str()
      ->needs(split);
  sub->add_option("--devices", o->store_devices,
                  "Use only the store's records of these devices (comma-separated)")
      ->delimiter(',')
      ->needs(store);
  sub->add_option("--strategy", o->strategies,
                  "Strategies to compare (repeatable): " + lab::strategy_names() +
                      " (default: " + std::string(search::kDefaultStrategy.name) + ")")
      ->allow_extra_args(false);
  sub->add_option("--cost-model", o->models,
                  "Cost models to compare (repeatable): a file that `train` wrote, command:PROGRAM, or " +
                      learn::search_models_without_file(lab::cost_model_kinds()) +
                      " (default: shipped; with --store: xgboost)")
      ->allow_extra_args(false);
  sub->add_option("--lm", o->language_models,
                  "Language model that writes schedules (repeatable): a file, or shipped for the one that "
                  "comes with Tensorsmith. The strategy evolutionary is run without and with each of them, "
                  "the strategy lm with each of them (default: shipped). With --whole, its schedules are "
                  "compared, too")
      ->allow_extra_args(false)
      ->excludes(store);
  auto* from = sub->add_option("--from", o->from,
                               "Run each method a second time, beginning with the fast programs of this "
                               "database or export (repeatable). With --whole: database, export, or model "
                               "(NAME.onnx, zoo:NAME) to transfer schedules of")
                   ->allow_extra_args(false);
  sub->add_flag("--frozen", o->options.frozen,
                "Do not train the cost models on the measurements of the searches");
  add_whole(*sub, "--trials", o->options.trials, 1, 100'000, "Number of measurements for each task");
  add_whole(*sub, "--seeds", o->options.seeds, 1, 1000,
            "Number of searches of each task with each method, each with another seed");
  add_whole(*sub, "--batch", o->options.batch, 1, 10'000,
            "Number of programs that are measured in one round of a search");
  add_real(*sub, "--epsilon", o->options.epsilon, 0, 1, "Share of random candidates in each round");
  add_whole(*sub, "--heaviest", o->heaviest, 0, 1'000'000,
            "Search only this many tasks of each model, those with the longest estimated time (0 = all)");
  add_share(*sub, "--share", o->simulation.share,
            "With --store: measure this share of each task's programs, such as 10%, instead of --trials")
      ->needs(store);
  add_whole(*sub, "--least-programs", o->simulation.least_programs, 0, kMaxCount,
            "With --store: leave out tasks with fewer successful programs than this (0 = three times the "
            "number of trials)")
      ->needs(store);
  add_whole_list(*sub, "--again", o->options.again, 1, 100'000,
                 "At the end, time the best program after each of these numbers of trials (such as 16,64) "
                 "again, alternating between the methods. This corrects a bias: a search keeps the smallest "
                 "of many noisy times, which is too small")
      ->excludes(store);
  o->device.add_to(*sub);
  auto* log = sub->add_option("--log", o->log,
                              "File that keeps the finished searches; the same command continues from it");
  sub->add_option("--plot", o->plot,
                  "Write a plot of the speed reached against the number of trials to this SVG file");
  sub->add_option("--time-plot", o->time_plot,
                  "Write a plot of the speed reached against the search time to this SVG file");
  add_force(*sub, o->force);
  add_whole_network_options(*sub, o->whole);
  sub->add_flag("--quiet", o->quiet, "Show no progress");
  sub->add_flag("--json", o->json, "Print the result as one JSON object, on the last line");
  store->excludes(networks)->excludes(from)->excludes(log);
  sub->callback([o, networks, store, &exit_code] {
    if (networks->count() == 0 && store->count() == 0) throw CLI::RequiredError("MODELS or --store");
    exit_code = run_command([&] { return o->whole.folder.empty() ? compare(*o) : compare_whole(*o); });
  });
}

}  // namespace tensorsmith::tools
