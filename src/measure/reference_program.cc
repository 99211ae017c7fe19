#include "measure/reference_program.h"

#include <numeric>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::measure {
namespace {

// Adds the loops of one operation of the reference program: outer rows | reduce | some rows,
// unrolled | lanes. The unrolled rows give independent sums; otherwise each addition would wait for
// the one before.
void add_reference_loops(const ir::Operation& op, int stage, sched::Trace& trace) {
  constexpr int64_t kMostLanes = 16, kLeastLanes = 4, kRows = 4;
  const int spatial = op.spatial.size(), reduce = op.reduce.size();
  int64_t lanes = kMostLanes;
  while (lanes > op.spatial.back().extent) lanes /= 2;
  const bool vectorized = lanes >= kLeastLanes;
  int rows = -1;  // the axis that is split for the unrolled rows
  for (int a = spatial - 2; a >= 0 && rows < 0 && reduce > 0; --a)
    if (op.spatial[a].extent >= kRows) rows = a;

  int loops = spatial;
  const auto split = [&](int axis, int64_t length) {
    sched::Split step;
    step.stage = stage;
    step.iterator = axis;
    step.lengths = {length};
    trace.steps.emplace_back(step);
    ++loops;
  };
  if (vectorized) split(spatial - 1, lanes);
  if (rows >= 0) split(rows, kRows);
  const int inner_rows = rows >= 0 ? rows + 1 : -1, lane = vectorized ? loops - 1 : -1;
  std::vector<int> order;
  for (int loop = 0; loop < loops + reduce; ++loop)
    if (loop != inner_rows && loop != lane) order.push_back(loop);
  int innermost = loops + reduce - 1;
  if (rows >= 0) order.push_back(inner_rows);
  if (vectorized) order.push_back(lane);
  if (reduce > 0 && (rows >= 0 || vectorized)) trace.steps.emplace_back(sched::Reorder{stage, order});
  if (vectorized)
    trace.steps.emplace_back(sched::Annotate{stage, innermost--, sched::Annotation::kVectorize});
  if (rows >= 0) trace.steps.emplace_back(sched::Annotate{stage, innermost, sched::Annotation::kUnroll});
  if (loops > 1) trace.steps.emplace_back(sched::Annotate{stage, 0, sched::Annotation::kParallel});
}

}  // namespace

sched::Trace reference_trace(const ir::Workload& workload) {
  sched::Trace trace;
  int stage = -1;
  for (const auto& op : workload.operations) {
    ++stage;
    if (!op->is_placeholder() && !op->spatial.empty()) add_reference_loops(*op, stage, trace);
  }
  return trace;
}

sched::Trace gpu_reference_trace(const ir::Workload& workload) {
  constexpr int64_t kThreads = 128;
  sched::Trace trace;
  int stage = -1;
  for (const auto& op : workload.operations) {
    ++stage;
    if (op->is_placeholder() || op->spatial.empty()) continue;
    std::vector<int> axes(op->spatial.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (axes.size() > 1) trace.steps.emplace_back(sched::Fuse{stage, axes});
    sched::Split split;
    split.stage = stage;
    split.lengths = {kThreads};
    split.tail = sched::TailPolicy::kPredicate;
    trace.steps.emplace_back(split);
    trace.steps.emplace_back(sched::Annotate{stage, 0, sched::Annotation::kBlockX});
    trace.steps.emplace_back(sched::Annotate{stage, 1, sched::Annotation::kThreadX});
  }
  return trace;
}

}  // namespace tensorsmith::measure
