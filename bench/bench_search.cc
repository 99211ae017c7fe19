// Measures the speed of the search itself: candidates sampled, featurized and scored per second and
// core, and the time of each step. As in the search, features are extracted directly from
// the schedule.
//
//   bench_search [CANDIDATES [MODEL]]
//
// The workload is a convolution 1x64x56x56 -> 64, 3x3 with padding, bias and relu. Times are processor
// time of the thread, so that other load on the machine does not count. The cost model is trained on the
// candidates' own draft estimates; its trees are as deep as those of a real model.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "ir/text.h"
#include "learn/latency/kinds.h"
#include "learn/online/online.h"
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

// Times a trained model in place of the online one: the extraction of its inputs and its predictions.
int time_model(const std::string& path, const space::DesignSpace& space, const target::Device& device,
               const std::vector<space::Candidate>& candidates) {
  const auto model = learn::product_kinds().load(path);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    return 1;
  }
  const auto task = std::make_shared<const search::QueriedTask>("", "bench", space.workload(),
                                                                ir::flop_count(space.workload()), device);
  search::CandidateFeatures extractor(space, task, (*model)->inputs());
  constexpr size_t kTogether = 16;
  double inputs = 0, prediction = 0;
  size_t done = 0;
  for (size_t begin = 0; begin < candidates.size(); begin += kTogether) {
    std::vector<std::shared_ptr<const search::ProgramInputs>> kept;
    std::vector<learn::ProgramQuery> queries;
    double before = cpu_seconds();
    for (size_t i = begin; i < std::min(begin + kTogether, candidates.size()); ++i) {
      auto made = extractor.of(candidates[i]);
      if (!made.ok()) continue;
      kept.push_back(std::move(*made));
      queries.push_back(kept.back()->query(*task));
    }
    inputs += cpu_seconds() - before;
    before = cpu_seconds();
    if (!(*model)->predict(queries).ok()) return 1;
    prediction += cpu_seconds() - before;
    done += queries.size();
  }
  std::printf("%s: inputs %.1f us, prediction %.1f us a candidate\n", path.c_str(),
              1e6 * inputs / static_cast<double>(done), 1e6 * prediction / static_cast<double>(done));
  return 0;
}

int run(size_t count, const char* model_path) {
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
  const auto space = space::DesignSpace::build(workload, *device, {});
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

  const auto task = std::make_shared<const search::QueriedTask>("", "bench", workload, 0, *device);
  search::CandidateFeatures extractor(*space, task, {.rows = true});

  // The model has the size of one in a running search: it is trained on 400 programs.
  Rng rng(1);
  std::vector<std::shared_ptr<const search::ProgramInputs>> kept;
  std::vector<learn::MeasuredProgram> training;
  while (training.size() < 400) {
    const auto c = space->sample(rng);
    auto made = extractor.of(c);
    if (!made.ok()) continue;
    kept.push_back(*made);
    training.push_back({kept.back()->query(*task), space->estimate(c)});
  }
  const auto model = learn::make_online_xgboost();
  start = cpu_seconds();
  if (const Status updated = model->update(training); !updated.ok()) {
    std::fprintf(stderr, "%s\n", updated.error().message().c_str());
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
  std::vector<learn::ProgramQuery> queries;
  for (const auto& f : features) queries.push_back({&task->stored, nullptr, nullptr, &*device, &f});
  timed(4, [&] {
    const auto scores = model->predict(queries);
    if (!scores.ok() || scores->size() != queries.size()) std::abort();
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
  return model_path == nullptr ? 0 : time_model(model_path, *space, *device, candidates);
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 2000;
  if (count < 1) {
    std::fprintf(stderr, "usage: bench_search [CANDIDATES [MODEL]]\n");
    return 2;
  }
  return tensorsmith::run(static_cast<size_t>(count), argc > 2 ? argv[2] : nullptr);
}
