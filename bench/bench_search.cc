// Speed of the search itself: how many candidates a second and core are sampled, turned into features
// and scored, and where the time goes. As in the search, features come straight from the schedule.
//
//   bench_search [CANDIDATES]
//
// The workload is a convolution 1x64x56x56 -> 64, 3x3 with padding, bias and relu. Times are of the thread's
// processor time, so that other load on the machine does not count. The cost model is trained on the
// candidates' own draft estimates: its trees are as deep as real ones.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "learn/cost_model.h"
#include "sched/trace_traits.h"
#include "search/pipeline.h"
#include "search/strategy.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"
#include "target/target.h"

namespace tensorsmith {
namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Stage {
  const char* name;
  double seconds = 0;
};

int run(size_t count) {
  test::standard::Conv2d shape;
  shape.ci = shape.co = 64;
  shape.h = shape.w = 56;
  const auto workload = test::standard::conv2d_bias_relu(shape);
  const auto device = target::probe_local();
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.error().message().c_str());
    return 1;
  }
  double start = cpu_seconds();
  const auto space = space::DesignSpace::build(workload, *device, {device->cores});
  if (!space.ok()) {
    std::fprintf(stderr, "%s\n", space.error().message().c_str());
    return 1;
  }
  std::printf("design space built in %.2f ms\n", 1e3 * (cpu_seconds() - start));
  const auto options = search::feature_options(*device);

  Stage stages[] = {{"sample"}, {"draft estimate"}, {"schedule"}, {"features"}, {"score"}};
  const auto timed = [&](size_t stage, auto&& body) {
    const double before = cpu_seconds();
    body();
    stages[stage].seconds += cpu_seconds() - before;
  };

  search::CandidateFeatures extractor(*space, options);

  // A model like those of a running search: 400 measured programs.
  Rng rng(1);
  std::vector<std::shared_ptr<const feature::FeatureMatrix>> kept;
  std::vector<learn::TrainingProgram> training;
  while (training.size() < 400) {
    const auto c = space->sample(rng);
    auto made = extractor.of(c);
    if (!made.ok()) continue;
    kept.push_back(*made);
    training.push_back({kept.back().get(), 0, space->estimate(c)});
  }
  auto trainer = learn::make_gbt_trainer(learn::GbtOptions::online());
  start = cpu_seconds();
  auto model = trainer->train(training);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    return 1;
  }
  std::printf("cost model trained on %zu programs in %.2f ms\n", training.size(),
              1e3 * (cpu_seconds() - start));

  std::vector<space::Candidate> candidates(count);
  timed(0, [&] {
    for (auto& c : candidates) c = space->sample(rng);
  });
  timed(1, [&] {
    double sum = 0;
    for (const auto& c : candidates) sum += space->estimate(c);
    if (sum < 0) std::abort();
  });
  std::vector<feature::FeatureMatrix> features;
  size_t refused = 0;
  sched::Schedule schedule;
  feature::ScheduleFeatures per_store(options);
  for (const auto& c : candidates) {
    bool legal = false;
    timed(2, [&] { legal = space->to_schedule(c, schedule).ok(); });
    std::optional<feature::FeatureMatrix> matrix;
    timed(3, [&] {
      if (!legal) return;
      auto made = per_store.per_store(schedule);
      if (made.ok()) matrix = std::move(*made);
    });
    if (!matrix) {
      ++refused;
      continue;
    }
    features.push_back(std::move(*matrix));
  }
  std::vector<learn::Sample> samples;
  for (const auto& f : features) samples.push_back({&f});
  timed(4, [&] {
    const auto scores = (*model)->predict(samples);
    if (scores.size() != samples.size()) std::abort();
  });
  size_t winograd = 0;
  for (const auto& c : candidates) winograd += sched::uses_winograd(*space->to_trace(c)) ? 1 : 0;
  double total = 0;
  for (const auto& stage : stages) total += stage.seconds;
  std::printf("%zu candidates, %zu of them with Winograd's filtering, %zu refused\n", count, winograd,
              refused);
  for (const auto& stage : stages)
    std::printf("  %-15s %8.2f us  %5.1f %%\n", stage.name, 1e6 * stage.seconds / static_cast<double>(count),
                100 * stage.seconds / total);
  std::printf("candidates per second and core (sample + draft + features + score): %.0f\n",
              static_cast<double>(count) / total);
  std::printf("candidates per second and core (sample + draft only):               %.0f\n",
              static_cast<double>(count) / (stages[0].seconds + stages[1].seconds));
  return 0;
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 2000;
  if (count < 1) {
    std::fprintf(stderr, "usage: bench_search [CANDIDATES]\n");
    return 2;
  }
  return tensorsmith::run(static_cast<size_t>(count));
}
