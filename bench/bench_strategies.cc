// Strategies against each other with real measurements: how many trials and seconds each takes to come within
// 5 % of the best program that any of them found.
//
//   bench_strategies [SECONDS=8] [SEEDS=3] [THREADS=1] [STRATEGY...]
//
// Each task is tuned from nothing by each strategy with each seed, the strategies in turn, so that a change
// of the machine's speed touches all of them. What a run found is timed again at the end, all winners of a
// task in turn: a lucky measurement does not win. Reported are the geometric mean of these times relative to
// the fastest one, and the medians of trials and seconds over tasks and seeds; a run that never came within 5
// % counts with all that it had.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/statistics.h"
#include "learn/online/online.h"
#include "measure/measurer.h"
#include "measure/timing.h"
#include "search/tuner.h"
#include "stderr_sink.h"
#include "support/standard_workloads.h"

namespace {

using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
namespace standard = test::standard;

struct Improvement {
  int64_t trials = 0;
  double elapsed = 0, seconds = 0;
};

struct Run {
  size_t strategy = 0;
  std::vector<Improvement> history;
  sched::Trace best;
  int64_t trials = 0;
  double elapsed = 0;
  double again = std::numeric_limits<double>::infinity();  // the best program, timed at the end
};

struct Bench {
  double seconds = 8;
  int seeds = 3;
  int threads = 1;
  std::vector<std::string> strategies;
  bench::StderrSink log;
  SystemClock clock;
  target::Device device;

  Result<std::unique_ptr<measure::Measurer>> measurer(double hopeless_factor) {
    measure::MeasureOptions options;
    options.settings.threads = threads;
    options.hopeless_factor = hopeless_factor;
    return measure::make_local_measurer(device, options, measure::this_program_as_worker(), log);
  }

  Result<Run> tune(const search::TuneTask& task, size_t strategy, uint64_t seed) {
    TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(":memory:"));
    TS_ASSIGN_OR_RETURN(const auto local, measurer(measure::MeasureOptions().hopeless_factor));
    search::TuneOptions options;
    options.seconds = seconds;
    options.seed = seed;
    options.confirm = false;
    options.settings.threads = threads;
    options.threads = threads;
    options.strategy = strategies[strategy];
    learn::GbtOptions gbt = learn::GbtOptions::online();
    gbt.seed = seed;
    const auto model = learn::make_online_xgboost(gbt);
    Run run;
    run.strategy = strategy;
    const std::atomic<bool> cancel{false};
    const search::ProgressFn progress = [&](const search::TuneProgress& p) {
      const double best = p.model_best_seconds();
      if (run.history.empty() || best < run.history.back().seconds)
        run.history.push_back({p.trials, p.elapsed_seconds, best});
    };
    TS_ASSIGN_OR_RETURN(const auto report,
                        search::tune({task}, device, options,
                                     {*database, *local, model.get(), clock, log, cancel, progress}));
    run.best = report.best_traces.front();
    run.trials = report.final.trials;
    run.elapsed = report.final.elapsed_seconds;
    return run;
  }

  // Times the winners in turn; the median of the rounds counts.
  Status time_again(const search::TuneTask& task, std::vector<Run>& runs) {
    TS_ASSIGN_OR_RETURN(const auto local, measurer(0));
    std::vector<measure::Candidate> candidates;
    constexpr size_t kRounds = 5;
    for (size_t round = 0; round < kRounds; ++round)
      for (const Run& run : runs) candidates.push_back({run.best, {}});
    TS_ASSIGN_OR_RETURN(const auto results, local->measure(task.workload, candidates, 0, nullptr));
    for (size_t r = 0; r < runs.size(); ++r) {
      std::vector<double> times;
      for (size_t round = 0; round < kRounds; ++round)
        times.push_back(results[round * runs.size() + r].best_estimate());
      runs[r].again = median(times);
    }
    return {};
  }

  Status run() {
    struct Sum {
      double logs = 0, worst = 0;
      std::vector<double> trials, elapsed, rate;
    };
    std::vector<Sum> sums(strategies.size());
    const std::vector<std::pair<std::string, ir::Workload>> cases = {
        {"conv2d 1x64x56x56 -> 64, 3x3", standard::conv2d_bias_relu({.h = 56, .w = 56, .ci = 64, .co = 64})},
        {"conv2d 1x128x28x28 -> 32, 1x1",
         standard::conv2d_bias_relu({.h = 28, .w = 28, .ci = 128, .co = 32, .kh = 1, .kw = 1, .pad = 0})},
        {"depthwise 1x96x28x28, 3x3", standard::depthwise_conv2d({.h = 28, .w = 28, .ci = 96})},
        {"matmul 512x512x512", standard::matmul(512, 512, 512)},
        {"conv2d 1x3x112x112 -> 32, 3x3/2",
         standard::conv2d_bias_relu({.h = 112, .w = 112, .ci = 3, .co = 32, .stride = 2})},
    };
    for (const auto& [name, workload] : cases) {
      const search::TuneTask task{name, name, workload};
      std::vector<Run> runs;
      for (int seed = 1; seed <= seeds; ++seed) {
        for (size_t s = 0; s < strategies.size(); ++s) {
          TS_ASSIGN_OR_RETURN(Run run, tune(task, s, static_cast<uint64_t>(seed)));
          runs.push_back(std::move(run));
        }
      }
      TS_RETURN_IF_ERROR(time_again(task, runs));
      double best = std::numeric_limits<double>::infinity(), found = best;
      for (const Run& run : runs) {
        best = std::min(best, run.again);
        found = std::min(found, run.history.back().seconds);
      }
      std::printf("%s: best %.1f us\n", name.c_str(), 1e6 * best);
      for (const Run& run : runs) {
        Sum& sum = sums[run.strategy];
        Improvement reached{run.trials, run.elapsed, 0};
        for (const Improvement& improvement : run.history) {
          if (improvement.seconds > 1.05 * found) continue;
          reached = improvement;
          break;
        }
        sum.logs += std::log(run.again / best);
        sum.worst = std::max(sum.worst, run.again / best);
        sum.trials.push_back(static_cast<double>(reached.trials));
        sum.elapsed.push_back(reached.elapsed);
        sum.rate.push_back(static_cast<double>(run.trials) / run.elapsed);
        std::printf("  %-14s %7.1f us (%.3f), within 5 %% after %4.0f trials, %5.2f s; %.0f trials in all\n",
                    strategies[run.strategy].c_str(), 1e6 * run.again, run.again / best, sum.trials.back(),
                    sum.elapsed.back(), static_cast<double>(run.trials));
      }
      std::fflush(stdout);
    }
    std::printf("\n%-14s %10s %8s %18s %20s %10s\n", "strategy", "to best", "worst", "trials to 5 %",
                "seconds to 5 %", "trials/s");
    for (size_t s = 0; s < strategies.size(); ++s) {
      const Sum& sum = sums[s];
      std::printf("%-14s %10.3f %8.3f %18.0f %20.2f %10.1f\n", strategies[s].c_str(),
                  std::exp(sum.logs / static_cast<double>(sum.trials.size())), sum.worst, median(sum.trials),
                  median(sum.elapsed), median(sum.rate));
    }
    return {};
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (measure::is_worker(argc, argv)) return measure::worker_main(argc, argv);
  Bench bench;
  if (argc > 1) bench.seconds = std::atof(argv[1]);
  if (argc > 2) bench.seeds = std::atoi(argv[2]);
  if (argc > 3) bench.threads = std::atoi(argv[3]);
  for (int i = 4; i < argc; ++i) bench.strategies.emplace_back(argv[i]);
  if (bench.strategies.empty()) bench.strategies = {"evolutionary", "annealing", "random"};
  if (!(bench.seconds > 0) || bench.seeds < 1 || bench.threads < 1) {
    std::fprintf(stderr, "usage: bench_strategies [SECONDS] [SEEDS] [THREADS] [STRATEGY...]\n");
    return 2;
  }
  auto device = target::probe_local(bench.threads);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.error().message().c_str());
    return 1;
  }
  bench.device = std::move(*device);
  if (auto status = bench.run(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.error().message().c_str());
    return 1;
  }
  return 0;
}
