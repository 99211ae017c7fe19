// Compares cost models as guides of a search: the trials and seconds that each model needs to come near
// the best latency found with any of them. Each run's results are appended to a file when the run ends.
// Runs that the file already has are skipped, so that a stopped benchmark can be continued.
//
//   bench_search_models OUTPUT.jsonl SECONDS SEEDS MODELS NETWORK...
//
// MODELS is a comma-separated list of values of the option --cost-model of `tensorsmith tune`. The suffix
// "+frozen" marks a model that does not learn during the run. For each network and seed the models take
// turns, so that a change of the machine's speed affects all of them. Each run starts from nothing: no
// records and no starters. scripts/search_model_table makes a table of the results.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/model/load_model.h"
#include "engine/tune/prepare_tasks.h"
#include "learn/search_model.h"
#include "measure/measurer.h"
#include "search/tuner.h"
#include "stderr_sink.h"

namespace tensorsmith {
namespace {

struct Run {
  std::string network, model;
  uint64_t seed = 0;
  auto operator<=>(const Run&) const = default;
};

std::set<Run> done_runs(const std::string& path) {
  std::set<Run> done;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) done.insert({json.at("network"), json.at("model"), json.at("seed")});
  }
  return done;
}

learn::SearchModelOptions model_options(const std::string& text, uint64_t seed) {
  constexpr std::string_view kFrozen = "+frozen";
  learn::SearchModelOptions options{.model = text, .seed = seed, .threads = 1};
  if (text.ends_with(kFrozen)) {
    options.model.resize(text.size() - kFrozen.size());
    options.frozen = true;
  }
  return options;
}

Result<nlohmann::json> tune(const Run& run, const std::vector<search::TuneTask>& tasks,
                            const target::Device& device, double seconds) {
  const SystemClock clock;
  bench::StderrSink log;
  measure::MeasureOptions measuring;
  TS_ASSIGN_OR_RETURN(const auto measurer, measure::make_local_measurer(
                                               device, measuring, measure::this_program_as_worker(), log));
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(":memory:"));
  TS_ASSIGN_OR_RETURN(const auto model, learn::make_search_model(model_options(run.model, run.seed), device));
  search::TuneOptions options;
  options.seconds = seconds;
  options.seed = run.seed;
  options.confirm = false;
  auto history = nlohmann::json::array();
  double best = INFINITY;
  const auto progress = [&](const search::TuneProgress& p) {
    if (p.model_best_seconds() >= best) return;
    best = p.model_best_seconds();
    history.push_back({p.trials, p.elapsed_seconds, best});
  };
  const std::atomic<bool> cancel{false};
  TS_ASSIGN_OR_RETURN(const auto report,
                      search::tune(tasks, device, options,
                                   {*database, *measurer, model.get(), clock, log, cancel, progress}));
  return nlohmann::json{{"network", run.network},
                        {"model", run.model},
                        {"seed", run.seed},
                        {"trials", report.final.trials},
                        {"elapsed_seconds", report.final.elapsed_seconds},
                        {"untuned_seconds", report.final.model_default_seconds()},
                        {"history", history}};  // trials, seconds of tuning, latency summed over calls
}

Status run_all(const std::string& output, double seconds, uint64_t seeds,
               const std::vector<std::string>& models, const std::vector<std::string>& networks) {
  const std::set<Run> done = done_runs(output);
  TS_ASSIGN_OR_RETURN(const target::Device device, target::find_device("local:threads=1"));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const std::string& network : networks) {
      TS_ASSIGN_OR_RETURN(const auto loaded, engine::load_model({network}));
      std::vector<search::TuneTask> tasks;
      TS_ASSIGN_OR_RETURN(engine::PreparedTasks prepared, engine::prepare_tasks(loaded.partition, device));
      for (size_t t = 0; t < prepared.size(); ++t)
        tasks.push_back({std::move(prepared[t]), static_cast<double>(loaded.partition.tasks[t].calls)});
      for (const std::string& model : models) {
        const Run run{network, model, seed};
        if (done.count(run) > 0) continue;
        TS_ASSIGN_OR_RETURN(const auto result, tune(run, tasks, device, seconds));
        std::ofstream(output, std::ios::app) << result.dump() << "\n";
        std::printf("%s, %s, seed %llu: %d trials, %.3g s\n", network.c_str(), model.c_str(),
                    static_cast<unsigned long long>(seed), result["trials"].get<int>(),
                    result["history"].empty() ? NAN : result["history"].back()[2].get<double>());
        std::fflush(stdout);
      }
    }
  }
  return {};
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  if (measure::is_worker(argc, argv)) return measure::worker_main(argc, argv);
  if (argc < 6) {
    std::fprintf(stderr, "usage: bench_search_models OUTPUT.jsonl SECONDS SEEDS MODEL,MODEL... NETWORK...\n");
    return 2;
  }
  std::vector<std::string> models;
  std::stringstream list(argv[4]);
  for (std::string model; std::getline(list, model, ',');) models.push_back(model);
  const Status status = run_all(argv[1], std::atof(argv[2]), std::strtoull(argv[3], nullptr, 10), models,
                                {argv + 5, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().message().c_str());
  return 1;
}
