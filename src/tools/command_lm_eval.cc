// `lm eval`: compares the best of n schedules written by a language model with a long search and
// with other ways to propose n schedules.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/tune/tune_sources.h"
#include "lab/compare_searches.h"
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
using lab::SearchMethod;

// Index of the method that all others are compared with.
constexpr size_t kReference = 0;

struct LmEvalCommand : SearchedTasks {
  LmEvalCommand() : SearchedTasks{.heaviest = 2} {}
  std::vector<std::string> language_models;
  std::string cost_model, reference_model = "xgboost";
  std::vector<int64_t> counts = {1, 4, 10, 32, 64};
  int64_t reference_trials = 1000;
  int seeds = 3;
  bool no_baselines = false;
  bool quiet = false, json = false;
};

std::string method_name(const SearchMethod& method) {
  std::string name = method.strategy;
  if (!method.language_model.empty()) name += " " + method.language_model;
  if (method.model != "none") name += ", " + method.model;
  if (method.seeded && !method.language_model.empty()) name += ", with similar tasks in the prompt";
  return name;
}

// Returns the methods: first the reference; then each language model alone, with a cost model's
// ranking, and with similar tasks; then the other proposing methods.
lab::CompareOptions options_of(const LmEvalCommand& command) {
  lab::CompareOptions options;
  options.seeds = command.seeds;
  options.again = command.counts;
  options.trials =
      1 + *std::max_element(command.counts.begin(), command.counts.end());  // plus the untuned program
  options.methods.push_back({.strategy = std::string(search::kDefaultStrategy.name),
                             .model = command.reference_model,
                             .trials = command.reference_trials});
  const bool ranked = !command.cost_model.empty(), known = !command.from.empty();
  for (const std::string& file : command.language_models) {
    const std::string lm(lab::kWrittenProposals);
    options.methods.push_back({.strategy = lm, .model = "none", .language_model = file});
    if (ranked)
      options.methods.push_back({.strategy = lm, .model = command.cost_model, .language_model = file});
    if (ranked && known)
      options.methods.push_back(
          {.strategy = lm, .model = command.cost_model, .seeded = true, .language_model = file});
  }
  if (command.no_baselines) return options;
  options.methods.push_back({.strategy = std::string(lab::kEstimateProposals), .model = "none"});
  if (ranked)
    options.methods.push_back(
        {.strategy = std::string(lab::kCostModelProposals), .model = command.cost_model});
  if (known)
    options.methods.push_back(
        {.strategy = std::string(search::kTransferStrategy.name), .model = "none", .seeded = true});
  return options;
}

struct EvalResult {
  std::vector<lab::SearchRun> runs;
  engine::DecodingReport decoding;
};

// Returns the seconds until the reference was as fast as the best of a method's first n programs,
// over the seconds of the method, including writing: the geometric mean over tasks and seeds. Uses
// the first measurements of both.
double times_less(const std::vector<lab::SearchRun>& runs, size_t method, int64_t n) {
  double sum = 0, count = 0;
  for (const auto& run : runs) {
    if (run.method != method || run.best.empty()) continue;
    const auto end = static_cast<size_t>(std::min<int64_t>(n + 1, std::ssize(run.best))) - 1;
    for (const auto& other : runs) {
      if (other.method != kReference || other.task != run.task || other.seed != run.seed) continue;
      const auto at = std::find_if(other.best.begin(), other.best.end(),
                                   [&](double seconds) { return seconds <= run.best[end]; });
      // If the reference never was as fast, its whole time is a lower bound.
      const double spent = at == other.best.end() ? other.spent.back() : other.spent[at - other.best.begin()];
      sum += std::log(spent / run.spent[end]);
      count += 1;
    }
  }
  return count > 0 ? std::exp(sum / count) : 0;
}

OrderedJson to_json(const EvalResult& result, const lab::CompareOptions& options) {
  OrderedJson methods = OrderedJson::array();
  for (size_t m = 0; m < options.methods.size(); ++m) {
    const SearchMethod& method = options.methods[m];
    OrderedJson entry = {{"method", method.strategy},
                         {"lm", method.language_model},
                         {"cost_model", method.model},
                         {"sees_similar", method.seeded},
                         {"best_of", OrderedJson::array()}};
    for (const int64_t n : options.again) {
      if (m == kReference) break;
      const auto alone = lab::again_score(result.runs, m, n, false, kReference);
      const auto with = lab::again_score(result.runs, m, n, true, kReference);
      entry["best_of"].push_back({{"n", n},
                                  {"tasks", alone.tasks},
                                  {"mean", alone.mean},
                                  {"deviation", alone.deviation},
                                  {"median", alone.median},
                                  {"worst", alone.worst},
                                  {"mean_with_untuned", with.mean},
                                  {"worst_with_untuned", with.worst},
                                  {"times_less_time", times_less(result.runs, m, n)}});
    }
    OrderedJson& runs = entry["runs"] = OrderedJson::array();
    for (const auto& run : result.runs) {
      if (run.method != m) continue;
      OrderedJson again = OrderedJson::object();
      for (const auto& winner : run.winners)
        if (winner.again > 0) again[std::to_string(winner.number)] = winner.again;
      runs.push_back({{"task", run.task},
                      {"name", run.name},
                      {"seed", run.seed},
                      {"again", again},
                      {"seconds", run.spent.empty() ? 0 : run.spent.back()}});
    }
    methods.push_back(std::move(entry));
  }
  const auto& d = result.decoding;
  return {{"methods", methods},
          {"written", {{"answers", d.answers}, {"dead_ends", d.dead_ends}, {"too_long", d.too_long}}}};
}

void print_people(const EvalResult& result, const lab::CompareOptions& options) {
  const auto untuned = lab::again_score(result.runs, kReference, -1, true, kReference);
  print_out(
      "{} tasks. The numbers are the speed of the best of n schedules relative to the result of {} after {} "
      "trials;\nboth were timed again, alternating. Geometric mean over the tasks, then mean and standard "
      "deviation over {} seeds\n(median, worst task).\n\"time saved\" is the search's time to an equal "
      "program divided by the method's time for the largest n.\n",
      untuned.tasks, method_name(options.methods[kReference]), options.methods[kReference].trials,
      options.seeds);
  std::vector<std::string> header = {"method"};
  for (const int64_t n : options.again) header.push_back(fmt::format("n = {}", n));
  header.emplace_back("time saved");
  Table table(header);
  for (size_t m = 1; m < options.methods.size(); ++m) {
    std::vector<std::string> row = {method_name(options.methods[m])};
    for (const int64_t n : options.again) {
      const auto score = lab::again_score(result.runs, m, n, false, kReference);
      row.push_back(fmt::format("{:.3f} +- {:.3f} ({:.2f}, {:.2f})", score.mean, score.deviation,
                                score.median, score.worst));
    }
    row.push_back(fmt::format("{:.1f}", times_less(result.runs, m, options.again.back())));
    table.add(std::move(row));
  }
  std::vector<std::string> row = {"the untuned schedule"};
  row.push_back(fmt::format("{:.3f} +- {:.3f} ({:.2f}, {:.2f})", untuned.mean, untuned.deviation,
                            untuned.median, untuned.worst));
  row.resize(header.size());
  table.add(std::move(row));
  print_lines(table.text());
  const auto& d = result.decoding;
  if (d.answers > 0)
    print_out(
        "{} answers generated, all legal; {} more stopped because no legal token was left, {} were too "
        "long\n",
        d.answers, d.dead_ends, d.too_long);
}

Status eval(LmEvalCommand& command) {
  std::vector<InputPath> inputs = {{"--log", command.log}, {"--cost-model", command.cost_model}};
  for (std::string& model : command.language_models) {
    TS_ASSIGN_OR_RETURN(model, engine::language_model_file(model));
    inputs.push_back({"--lm", model});
  }
  for (const auto& path : command.from) inputs.push_back({"--from", path});
  TS_RETURN_IF_ERROR(check_outputs({}, inputs, false));
  std::sort(command.counts.begin(), command.counts.end());
  const lab::CompareOptions options = options_of(command);
  const SystemClock clock;
  const double start = clock.monotonic_seconds();
  double shown = start;
  StderrLogSink log(LogLevel::kWarning);
  const lab::CompareProgressFn progress = [&](const lab::CompareProgress& p) {
    const double now = clock.monotonic_seconds();
    if (command.quiet || (now - shown < 5 && p.done < p.all)) return;
    shown = now;
    print_error("{} of {} runs in {}\n", p.done, p.all, format_duration(now - start));
  };
  EvalResult result;
  TS_ASSIGN_OR_RETURN(result.runs, measure_searches(command, options, true, &result.decoding, log, progress));
  if (result.runs.empty())
    return Error{ErrorCode::kCancelled, "", "interrupted before anything was measured"};
  if (catch_interrupts()) warn("interrupted: the table shows the runs that were finished");
  if (command.json)
    print_json(to_json(result, options));
  else
    print_people(result, options);
  return {};
}

}  // namespace

void add_language_eval(CLI::App& lm, int& exit_code) {
  auto o = std::make_shared<LmEvalCommand>();
  CLI::App* sub = lm.add_subcommand("eval",
                                    "Compare the best of n schedules that language models write with the "
                                    "result of a long search, by measuring");
  sub->add_option(
         "MODELS", o->networks,
         "ONNX models or networks of the zoo (zoo:NAME) that the language models were not trained on")
      ->required();
  sub->add_option("--lm", o->language_models,
                  "File of a language model, or shipped for the one that comes with Tensorsmith (repeatable)")
      ->allow_extra_args(false);
  sub->add_option("--cost-model", o->cost_model,
                  "File of a cost model. It ranks the written schedules, and is compared with them: another "
                  "method is the best of 100,000 random schedules by its predictions");
  sub->add_option("--from", o->from,
                  "Database of fast programs of other tasks (repeatable). The language models get them as "
                  "examples, and the method transfer measures them")
      ->allow_extra_args(false);
  add_whole_list(*sub, "--counts", o->counts, 1, 100'000,
                 "Values of n: numbers of schedules written for each task");
  add_whole(*sub, "--reference-trials", o->reference_trials, 1, 100'000,
            "Number of measurements of the search for each task");
  sub->add_option("--reference-model", o->reference_model, "Cost model of the search")->capture_default_str();
  add_whole(*sub, "--seeds", o->seeds, 1, 1000, "Number of runs of each method, each with another seed");
  add_whole(*sub, "--heaviest", o->heaviest, 0, 1'000'000,
            "Use only this many tasks of each model, those with the longest estimated time (0 = all)");
  sub->add_flag("--no-baselines", o->no_baselines,
                "Run only the language models and the search, without the other methods");
  o->device.add_to(*sub);
  sub->add_option("--log", o->log, "File that keeps the finished runs; the same command continues from it");
  sub->add_flag("--quiet", o->quiet, "Show no progress");
  sub->add_flag("--json", o->json, "Print the result as JSON on standard output");
  sub->callback([o, &exit_code] { exit_code = run_command([&] { return eval(*o); }); });
}

}  // namespace tensorsmith::tools
