// Measures trials per second: random candidates of a convolution are built, run in the worker and compared.
//
//   bench_measure [CANDIDATES=64] [THREADS=1] [HW=56] [CHANNELS=64] [PER_CALL=16] [SEED=1]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/statistics.h"
#include "measure/local_measurer.h"
#include "measure/timing.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace {

using namespace tensorsmith;  // NOLINT(google-build-using-namespace)

class StderrSink final : public LogSink {
 public:
  void log(LogLevel, std::string_view message) override {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
  }
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int run(int argc, char** argv) {
  const auto argument = [&](int i, int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const auto count = static_cast<size_t>(argument(1, 64));
  const int threads = static_cast<int>(argument(2, 1));
  const int64_t hw = argument(3, 56), channels = argument(4, 64);
  const auto per_call = static_cast<size_t>(argument(5, 16));
  Rng rng(static_cast<uint64_t>(argument(6, 1)));
  StderrSink log;
  const auto device = target::probe_local(threads);
  if (!device.ok()) return 1;
  const auto workload = test::standard::conv2d({.h = hw, .w = hw, .ci = channels, .co = channels});
  measure::MeasureOptions options;
  auto measurer = measure::make_local_measurer(*device, options, measure::this_program_as_worker(), log);
  if (!measurer.ok()) {
    std::fprintf(stderr, "%s\n", measurer.error().message().c_str());
    return 1;
  }
  auto space = space::DesignSpace::build(workload, *device, {});
  if (!space.ok()) {
    std::fprintf(stderr, "%s\n", space.error().message().c_str());
    return 1;
  }
  std::vector<measure::MeasureRequest> candidates;
  for (size_t tries = 0; candidates.size() < count && tries < 20 * count; ++tries) {
    const auto candidate = tries == 0 ? space->default_candidate() : space->sample(rng);
    if (!space->check(candidate).ok()) continue;
    auto trace = space->to_trace(candidate);
    if (trace.ok()) candidates.push_back({*trace, {}});
  }
  const auto preparing = std::chrono::steady_clock::now();
  auto first = (*measurer)->measure(workload, std::span(candidates).first(1), 0, nullptr);
  if (!first.ok()) {
    std::fprintf(stderr, "%s\n", first.error().message().c_str());
    return 1;
  }
  std::printf("first trial with inputs and expected outputs: %.2f s; default %.0f us\n",
              seconds_since(preparing), 1e6 * first->front().best_estimate());

  std::map<std::string, int> outcomes;
  std::vector<double> builds, runs;
  double best = first->front().best_estimate(), in_kernel = 0;
  int stopped = 0;
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < candidates.size(); i += per_call) {
    const auto part = std::span(candidates).subspan(i, std::min(per_call, candidates.size() - i));
    auto results = (*measurer)->measure(workload, part, best, nullptr);
    if (!results.ok()) {
      std::fprintf(stderr, "%s\n", results.error().message().c_str());
      return 1;
    }
    for (size_t c = 0; c < part.size(); ++c) {
      const auto& r = (*results)[c];
      ++outcomes[std::string(record::to_string(r.outcome))];
      if (!r.ok()) {
        std::printf("%s: %s\n%s\n", std::string(record::to_string(r.outcome)).c_str(), r.reason.c_str(),
                    sched::print(part[c].trace).c_str());
      }
      builds.push_back(r.build_seconds);
      if (!r.ok()) continue;
      runs.push_back(r.measure_seconds);
      best = std::min(best, r.best_estimate());
      stopped += r.stopped_early;
      for (const double s : r.seconds) in_kernel += s * r.runs_per_repeat;
    }
  }
  const double total = seconds_since(start);
  std::printf("%.1f trials/s (%zu in %.2f s), %d threads\n", static_cast<double>(candidates.size()) / total,
              candidates.size(), total, threads);
  for (const auto& [outcome, n] : outcomes) std::printf("  %-16s %d\n", outcome.c_str(), n);
  std::printf("median build %.1f ms, median time in worker %.1f ms, timed kernel runs %.0f %% of the time\n",
              1e3 * median(builds), 1e3 * median(runs), 100 * in_kernel / total);
  std::printf("stopped early %d, best %.0f us (%.1f GFLOP/s)\n", stopped, 1e6 * best,
              1e-9 * ir::flop_count(workload) / best);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (tensorsmith::measure::is_worker(argc, argv)) return tensorsmith::measure::worker_main(argc, argv);
  return run(argc, argv);
}
