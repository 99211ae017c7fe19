#include "tools/whole_networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/processors.h"
#include "engine/device/usable_threads.h"
#include "engine/tune/tune_sources.h"
#include "lab/compare_networks.h"
#include "measure/measurer.h"
#include "record/jsonl.h"
#include "tools/bar_plot.h"
#include "tools/console.h"
#include "tools/curve_plot.h"
#include "tools/interrupt.h"
#include "tools/log_sink.h"
#include "tools/network_folder.h"
#include "tools/numbers.h"
#include "tools/report.h"

namespace tensorsmith::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Runs = std::vector<lab::NetworkRun>;

// Returns the mean over the seeds of a value; NaN: there is no run.
template <typename Value>
double mean_over_seeds(const Runs& runs, const std::string& network, const std::string& method,
                       const Value& value) {
  double sum = 0, count = 0;
  for (const lab::NetworkRun& run : runs) {
    if (run.network != network || run.method != method) continue;
    sum += value(run);
    count += 1;
  }
  return sum / count;
}

// Returns the seconds after which the search matched a method, as the mean over the seeds; +inf: it did not
// match it with one of them; NaN: there is no such search.
double seconds_to_match(const Runs& runs, const std::string& network, const std::string& method) {
  return mean_over_seeds(runs, network, "search-match", [&](const lab::NetworkRun& run) {
    const auto at = run.matched.find(method);
    return at == run.matched.end() ? INFINITY : at->second;
  });
}

bool is_matched_kind(const lab::NetworkMethod& method) {
  return method.kind == lab::NetworkMethodKind::kTransfer || method.kind == lab::NetworkMethodKind::kWritten;
}

// Returns the names of the networks with at least one run, in order.
std::vector<std::string> networks_of(const Runs& runs) {
  std::vector<std::string> networks;
  for (const lab::NetworkRun& run : runs)
    if (networks.empty() || networks.back() != run.network) networks.push_back(run.network);
  return networks;
}

OrderedJson score_json(const lab::NetworkScore& score) {
  if (score.mean == 0) return nullptr;
  return {{"mean", score.mean}, {"low", score.low}, {"high", score.high}};
}

OrderedJson whole_json(const Runs& runs, const std::vector<lab::NetworkMethod>& methods,
                       const target::Device& device, const OrderedJson& settings) {
  const auto seconds_json = [](double seconds) {
    return std::isfinite(seconds) ? OrderedJson(seconds) : OrderedJson();
  };
  OrderedJson networks = OrderedJson::array();
  for (const std::string& network : networks_of(runs)) {
    OrderedJson list = OrderedJson::array();
    for (const lab::NetworkMethod& method : methods) {
      const auto score = lab::network_score(runs, network, method.name);
      if (score.mean == 0) continue;
      OrderedJson entry = {
          {"method", method.name},
          {"title", method.title},
          {"speedup", score_json(score)},
          {"over_random", score_json(lab::network_score(runs, network, method.name, "random"))},
          {"seconds", seconds_json(mean_over_seeds(runs, network, method.name,
                                                   [](const auto& run) { return run.seconds; }))}};
      if (is_matched_kind(method))
        entry["seconds_to_match"] = seconds_json(seconds_to_match(runs, network, method.name));
      entry["runs"] = OrderedJson::array();
      for (const lab::NetworkRun& run : runs)
        if (run.network == network && run.method == method.name) entry["runs"].push_back(to_json(run));
      list.push_back(std::move(entry));
    }
    networks.push_back({{"network", network}, {"methods", std::move(list)}});
  }
  return {{"device", device.name}, {"settings", settings}, {"networks", std::move(networks)}};
}

void print_networks(const Runs& runs, const std::vector<lab::NetworkMethod>& methods,
                    const WholeNetworks& options) {
  Table table({"network", "method", "source", "over untuned", "spread", "over random", "seconds", "trials",
               "search matches after"});
  for (const std::string& network : networks_of(runs)) {
    for (const lab::NetworkMethod& method : methods) {
      const auto score = lab::network_score(runs, network, method.name);
      if (score.mean == 0) continue;
      const auto first = std::find_if(runs.begin(), runs.end(), [&](const lab::NetworkRun& run) {
        return run.network == network && run.method == method.name;
      });
      const auto mean = [&](const auto& value) { return mean_over_seeds(runs, network, method.name, value); };
      const double matched = is_matched_kind(method) ? seconds_to_match(runs, network, method.name) : NAN;
      const auto over_random = lab::network_score(runs, network, method.name, "random");
      table.add({network, method.title, first->source.empty() ? "-" : first->source,
                 engine::ratio_text(score.mean),
                 fmt::format("{:.1f} %", 100 * mean([](const auto& run) { return run.whole.spread; })),
                 over_random.mean > 0 ? engine::ratio_text(over_random.mean) : "-",
                 fmt::format("{:.1f}", mean([](const auto& run) { return run.seconds; })),
                 fmt::format("{:.0f}", mean([](const auto& run) { return static_cast<double>(run.trials); })),
                 std::isnan(matched)      ? "-"
                 : std::isfinite(matched) ? fmt::format("{:.1f} s", matched)
                                          : "not within " + format_duration(options.limit)});
    }
  }
  print_lines(table.text());
  print_out(
      "over untuned: speed-up of the whole network over the untuned one; the two ran in turn and computed "
      "the same outputs\n(geometric mean over {} seeds). spread: the quartiles of the runs differ by this "
      "share. over random: speed-up over the\nfastest of {} random schedules of each task. seconds: time for "
      "proposing and measuring. search matches after: time after\nwhich the kernels of a search, each "
      "measured alone, are as fast as those of the method.\n",
      options.seeds, options.programs);
}

Status write_text(const std::string& path, const std::string& text) {
  TS_ASSIGN_OR_RETURN(const auto file, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(file->write(text));
  return file->commit();
}

// Returns the speed-up of the kernels that a run had found after so many seconds; NaN: none yet.
double kernel_speedup_at(const lab::NetworkRun& run, double seconds) {
  const auto after = std::upper_bound(run.curve.begin(), run.curve.end(), seconds,
                                      [](double at, const auto& point) { return at < point.first; });
  return after == run.curve.begin() ? NAN : run.untuned_kernel_seconds / std::prev(after)->second;
}

// Returns the geometric mean of the seeds' speed-ups over time, with a band from the least to the largest. It
// begins when all of them have one, and goes on until the last run ends.
Curve mean_over_time(const std::string& name, const std::vector<const lab::NetworkRun*>& seeds) {
  std::set<double> times;
  for (const lab::NetworkRun* run : seeds) {
    for (const auto& [seconds, kernels] : run->curve) times.insert(seconds);
    times.insert(run->seconds);
  }
  Curve curve;
  curve.name = name;
  for (const double seconds : times) {
    double logs = 0, low = INFINITY, high = 0;
    for (const lab::NetworkRun* run : seeds) {
      const double speedup = kernel_speedup_at(*run, seconds);
      logs += std::log(speedup);
      low = std::min(low, speedup);
      high = std::max(high, speedup);
    }
    if (!std::isfinite(logs)) continue;
    curve.x.push_back(std::max(seconds, 1e-3));
    curve.y.push_back(std::exp(logs / static_cast<double>(seeds.size())));
    curve.low.push_back(low);
    curve.high.push_back(high);
  }
  return curve;
}

Status draw_networks(const Runs& runs, const std::vector<lab::NetworkMethod>& methods,
                     const NetworkFolder& folder) {
  BarAxes axes{"Speed-up of whole networks", "speed-up over untuned", {}};
  for (const lab::NetworkMethod& method : methods) axes.names.push_back(method.title);
  std::vector<BarGroup> groups;
  for (const std::string& network : networks_of(runs)) {
    BarGroup& group = groups.emplace_back();
    group.name = network;
    for (const lab::NetworkMethod& method : methods) {
      const auto score = lab::network_score(runs, network, method.name);
      group.bars.push_back({score.mean, score.low, score.high});
    }
    std::vector<Curve> curves;
    for (const lab::NetworkMethod& method : methods) {
      std::vector<const lab::NetworkRun*> seeds;
      for (const lab::NetworkRun& run : runs)
        if (run.network == network && run.method == method.name && !run.curve.empty()) seeds.push_back(&run);
      if (!seeds.empty()) curves.push_back(mean_over_time(method.title, seeds));
    }
    TS_RETURN_IF_ERROR(write_text(folder.curves_file(network),
                                  curve_plot(curves,
                                             {network, "seconds of proposing and measuring",
                                              "speed-up of the kernels over untuned, measured alone"},
                                             "compare")));
  }
  return write_text(folder.file("speedups.svg"), bar_plot(groups, axes, "compare"));
}

// Returns the single entry of a repeatable option, or `otherwise`.
Result<std::string> single(const std::vector<std::string>& entries, const char* option,
                           const std::string& otherwise) {
  if (entries.size() > 1)
    return Error{ErrorCode::kInvalidArgument, option, "can be given only once with --whole"};
  return entries.empty() ? otherwise : entries.front();
}

// Adds the networks to the comparison. If there are no source models, the networks are sources of each other.
Status add_networks(const std::vector<std::string>& networks, const engine::WarmStart& known,
                    std::vector<engine::SourceModel>& sources, lab::NetworkComparison& comparison) {
  const bool each_other = sources.empty();
  for (const std::string& network : networks) {
    const bool again = std::any_of(comparison.networks.begin(), comparison.networks.end(),
                                   [&](const engine::ModelSource& other) { return other.path == network; });
    if (again) return Error{ErrorCode::kInvalidArgument, network, "is named twice"};
    comparison.networks.push_back({.path = network});
    TS_ASSIGN_OR_RETURN(engine::SourceModel loaded, engine::load_source_model(network));
    if (each_other) sources.push_back(std::move(loaded));
  }
  for (const std::string& network : networks) {
    bool has_source = false, has_records = false;
    for (const engine::SourceModel& source : sources) {
      if (source.name == network) continue;
      has_source = true;
      has_records = has_records || std::any_of(source.tasks.begin(), source.tasks.end(),
                                               [&](const auto& key) { return known.programs_of(key) > 0; });
    }
    if (!has_source)
      return Error{ErrorCode::kInvalidArgument, network,
                   "has no source models; name other networks, or models with --from"};
    if (!has_records)
      return Error{ErrorCode::kInvalidArgument, network,
                   "has source models without records; name a database that has their records with --from"};
  }
  return {};
}

}  // namespace

Status compare_whole_networks(const WholeNetworks& options) {
  lab::NetworkComparison comparison;
  TS_ASSIGN_OR_RETURN(comparison.cost_model,
                      single(options.cost_models, "--cost-model", learn::kShippedModel));
  TS_ASSIGN_OR_RETURN(const std::string language_model, single(options.language_models, "--lm", "none"));
  if (language_model != "none") {
    TS_ASSIGN_OR_RETURN(comparison.language_model, engine::language_model_file(language_model));
  }
  TS_ASSIGN_OR_RETURN(const target::Device device, options.device.resolve());
  TS_ASSIGN_OR_RETURN(engine::TuneSources sources,
                      engine::read_tune_sources(options.from, /*warm_start=*/false));
  if (sources.files.empty())
    return Error{ErrorCode::kInvalidArgument, "--whole",
                 "needs records to transfer; name their database or export with --from"};
  engine::WarmStart known;
  for (const std::string& file : sources.files) TS_RETURN_IF_ERROR(known.add_file(file));
  TS_RETURN_IF_ERROR(add_networks(options.networks, known, sources.models, comparison));
  std::vector<std::string> source_names;
  for (const engine::SourceModel& source : sources.models) source_names.push_back(source.name);
  const OrderedJson settings = {{"device", device.key()},          {"from", sources.files},
                                {"sources", source_names},         {"cost_model", comparison.cost_model},
                                {"lm", comparison.language_model}, {"programs", options.programs},
                                {"batch", options.batch},          {"limit", options.limit}};
  TS_RETURN_IF_ERROR(lab::check_network_comparison(device, comparison));
  TS_ASSIGN_OR_RETURN(const NetworkFolder folder, NetworkFolder::open(options.folder, settings));
  const SystemClock clock;
  StderrLogSink log(options.quiet ? LogLevel::kError : LogLevel::kWarning);
  comparison.sources = sources.models;
  comparison.known = &known;
  comparison.methods = lab::network_methods(!comparison.language_model.empty());
  comparison.seeds = options.seeds;
  comparison.programs = static_cast<size_t>(options.programs);
  comparison.batch = options.batch;
  comparison.limit = options.limit;
  comparison.worker = measure::this_program_as_worker();
  comparison.threads = engine::usable_threads(processors().usable, log);
  comparison.find = [&](lab::NetworkRun& run) { return folder.find(run); };
  comparison.keep = [&](const lab::NetworkRun& run, record::Database& measured) {
    return folder.keep(run, measured);
  };
  if (!options.quiet)
    comparison.progress = [](const lab::NetworkRun& run, size_t done, size_t all) {
      print_error("{} of {}: {}, {}, seed {}: {} over untuned, {} measured in {}\n", done, all, run.network,
                  run.method, run.seed, engine::ratio_text(run.whole.ratio()), run.trials,
                  format_duration(run.seconds));
    };
  TS_ASSIGN_OR_RETURN(const auto runs,
                      lab::compare_networks(device, comparison, clock, log, catch_interrupts()));
  if (runs.empty()) return Error{ErrorCode::kCancelled, "", "interrupted before any part was done"};
  const OrderedJson result = whole_json(runs, comparison.methods, device, settings);
  TS_RETURN_IF_ERROR(write_text(folder.file("networks.json"), json_text(result) + "\n"));
  TS_RETURN_IF_ERROR(draw_networks(runs, comparison.methods, folder));
  if (options.json) {
    print_json(result);
  } else {
    print_networks(runs, comparison.methods, options);
    print_out("data and plots are in {}\n", options.folder);
  }
  if (runs.size() < comparison.networks.size() * comparison.methods.size() * options.seeds)
    return Error{
        ErrorCode::kCancelled, "compare",
        "interrupted; the results are of the parts that were finished. Run the same command again to "
        "continue"};
  return {};
}

void add_whole_network_options(CLI::App& compare, WholeNetworks& options) {
  CLI::Option* whole = compare.add_option(
      "--whole", options.folder,
      "Compare whole networks instead of tasks: schedules transferred from the models of --from (from the "
      "other networks, if it names none), searches of the same duration, and a search until it matches. This "
      "folder gets data, plots and records; the same command continues an interrupted comparison");
  add_whole(compare, "--programs", options.programs, 1, 1000,
            "With --whole: number of schedules to measure for each task, at most: transferred, random, or "
            "written by a language model")
      ->needs(whole);
  add_seconds(compare, "--limit", options.limit, 0.1, kMaxSeconds,
              "With --whole: longest time of the search that tries to match: 90, 90s, 10m, 1h")
      ->needs(whole);
  for (const char* option : {"--store", "--strategy", "--frozen", "--trials", "--epsilon", "--heaviest",
                             "--again", "--log", "--plot", "--time-plot", "--force"})
    whole->excludes(compare.get_option(option));
  whole->needs(compare.get_option("--from"));
}

}  // namespace tensorsmith::tools
