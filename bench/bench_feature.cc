// Measures the extraction of features on one core, for random candidates of conv2d 1x64x56x56 -> 64,
// 3x3, with bias and relu, and each step between a candidate and its score. Prints the best of several
// rounds.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "feature/per_store.h"
#include "lab/kinds/draft_model.h"
#include "lab/kinds/kinds.h"
#include "learn/online/online.h"
#include "lower/lower.h"
#include "report.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"
#include "target/target.h"

using namespace tensorsmith;
using bench::report;

int main() {
  test::standard::Conv2d shape;
  shape.h = shape.w = 56;
  shape.ci = shape.co = 64;
  const ir::Workload workload = test::standard::conv2d_bias_relu(shape);
  const auto device = target::probe_local(1);
  const auto space = space::DesignSpace::build(workload, *device, {});
  if (!device.ok() || !space.ok()) return 1;
  Rng rng(1);
  constexpr size_t kCount = 500;
  std::vector<sched::Trace> traces;
  std::vector<sched::Schedule> schedules;
  while (schedules.size() < kCount) {
    auto trace = space->to_trace(space->sample(rng));
    if (!trace.ok()) continue;
    auto schedule = sched::replay(workload, *trace);
    if (!schedule.ok()) continue;
    if (!lower::lower(*schedule).ok()) continue;
    traces.push_back(std::move(*trace));
    schedules.push_back(std::move(*schedule));
  }
  size_t rows = 0;
  std::vector<feature::FeatureMatrix> matrices;
  for (const auto& schedule : schedules) matrices.push_back(*feature::extract_per_store(schedule, {}));
  for (const auto& matrix : matrices) rows += static_cast<size_t>(matrix.rows);
  std::printf("%zu candidates, %.1f rows each\n", kCount, static_cast<double>(rows) / kCount);

  report("sample, to_trace", kCount, [&] {
    for (size_t i = 0; i < kCount; ++i) rows += space->to_trace(space->sample(rng)).ok() ? 1 : 0;
  });
  report("replay", kCount, [&] {
    for (const auto& trace : traces) rows += sched::replay(workload, trace).ok() ? 1 : 0;
  });
  report("infer_bounds", kCount, [&] {
    for (const auto& schedule : schedules) rows += sched::infer_bounds(schedule).ok() ? 1 : 0;
  });
  report("features of a schedule (with bounds)", kCount, [&] {
    for (const auto& schedule : schedules) rows += feature::extract_per_store(schedule, {}).ok() ? 1 : 0;
  });
  report("lower", kCount, [&] {
    for (const auto& schedule : schedules) rows += lower::lower(schedule).ok() ? 1 : 0;
  });

  const learn::StoredWorkload stored{"", "bench", "", 0, {}};
  const auto query = [&](const feature::FeatureMatrix& rows_of) {
    return learn::ProgramQuery{&stored, nullptr, nullptr, &*device, &rows_of};
  };
  std::vector<learn::ProgramQuery> queries;
  std::vector<learn::MeasuredProgram> training;
  for (size_t i = 0; i < kCount; ++i) {
    queries.push_back(query(matrices[i]));
    training.push_back({queries.back(), lab::draft_seconds(matrices[i], *device, 1)});
  }
  const auto draft = lab::draft_kind().make_untrained({});
  report("draft score", kCount, [&] { rows += draft->predict(queries)->size(); });
  report("training, online settings, 500", kCount,
         [&] { rows += learn::make_online_xgboost()->update(training).ok() ? 1 : 0; });
  const auto online = learn::make_online_xgboost();
  if (!online->update(training).ok()) return 1;
  report("score, 40 trees of depth 6", kCount, [&] { rows += online->predict(queries)->size(); });
  const auto full = learn::make_online_xgboost(learn::GbtOptions());
  if (!full->update(training).ok()) return 1;
  report("score, 300 trees of depth 10", kCount, [&] { rows += full->predict(queries)->size(); });
  report("candidate to score", kCount, [&] {
    std::vector<feature::FeatureMatrix> made;
    for (size_t i = 0; i < kCount; ++i) {
      const auto trace = space->to_trace(space->sample(rng));
      if (!trace.ok()) continue;
      const auto schedule = sched::replay(workload, *trace);
      if (!schedule.ok()) continue;
      auto features = feature::extract_per_store(*schedule, {});
      if (features.ok()) made.push_back(std::move(*features));
    }
    std::vector<learn::ProgramQuery> batch;
    for (const auto& matrix : made) batch.push_back(query(matrix));
    rows += online->predict(batch)->size();
  });
  return rows > 0 ? 0 : 1;
}
