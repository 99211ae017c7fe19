#include "space/plan_steps.h"

#include <algorithm>

namespace tensorsmith::space {

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

int64_t vector_lanes(int64_t length, int64_t lanes) {
  // Long vectors of bytes and halves are processed element by element unless their length is a
  // power of two.
  constexpr int64_t kAnyLength = 16, kWorthwhile = 8;
  const int64_t divisor = largest_divisor(length, lanes), power = std::min(length & -length, lanes);
  return divisor > kAnyLength && power >= kWorthwhile ? power : divisor;
}

void combine_lanes(TraceMaker& maker, StageId stage, int64_t lanes, int64_t vector,
                   std::vector<StageId>& partials) {
  const size_t spatial = maker.num_spatial(stage);
  while (lanes > 2 && lanes % 2 == 0) {
    const int64_t half = lanes > vector && lanes % vector == 0 ? vector : lanes / 2;
    const auto halves =
        maker.split(stage, maker.leaves(stage)[spatial], {half}, sched::TailPolicy::kPredicate);
    const StageId made = maker.rfactor(stage, halves[1], spatial);
    const auto loops = maker.leaves(made);  // spatial, lanes, the parts to be added
    const auto rows = std::span(loops).first(spatial);
    std::vector<LoopId> order(rows.begin(), rows.end());
    order.push_back(loops[spatial + 1]);
    order.push_back(loops[spatial]);
    maker.reorder(made, order);
    maker.annotate(made, loops[spatial + 1], sched::Annotation::kUnroll);
    maker.annotate(made, loops[spatial], sched::Annotation::kVectorize);
    partials.push_back(made);
    lanes = half;
  }
}

sched::LayoutDim layout_dim(AxisId dimension, int64_t divisor, int64_t extent) {
  return {static_cast<int>(dimension.place()), divisor, extent};
}

LoopId parallelize(TraceMaker& maker, StageId stage, const std::vector<LoopId>& outer, size_t count) {
  if (count == 0) return {};
  const LoopId fused = maker.fuse(stage, std::span(outer).first(count));
  maker.annotate(stage, fused, sched::Annotation::kParallel);
  return fused;
}

void append_others(TraceMaker& maker, StageId stage, std::initializer_list<const std::vector<LoopId>*> placed,
                   LoopId vector_loop, std::vector<LoopId>& order) {
  for (const LoopId loop : maker.leaves(stage)) {
    const bool is_placed = std::any_of(placed.begin(), placed.end(), [&](const std::vector<LoopId>* loops) {
      return std::find(loops->begin(), loops->end(), loop) != loops->end();
    });
    if (!is_placed && loop != vector_loop) order.push_back(loop);
  }
}

void emit_copy_stage(TraceMaker& maker, StageId stage, const IdVector<AxisId, int64_t>& extents,
                     AxisId contiguous_axis, int64_t lanes, bool parallel, sched::TailPolicy tail) {
  if (!contiguous_axis.valid()) return;
  const auto loops = maker.axis_loops(stage);
  const AxisId c = contiguous_axis;
  std::vector<LoopId> rows, ones, vectors{loops[c]};
  for (const AxisId a : loops.ids())
    if (a != c) (extents[a] > 1 ? rows : ones).push_back(loops[a]);
  if (extents[c] > lanes) vectors = maker.split(stage, loops[c], {lanes}, tail);
  std::vector<LoopId> order = rows;
  order.insert(order.end(), ones.begin(), ones.end());
  order.insert(order.end(), vectors.begin(), vectors.end());
  maker.reorder(stage, order);
  if (extents[c] > 1) maker.annotate(stage, vectors.back(), sched::Annotation::kVectorize);
  if (!parallel) return;
  if (rows.empty() && vectors.size() > 1) rows.push_back(vectors.front());
  // Loops of extent 1 are between the rows and the vectors, so only rows are fused.
  parallelize(maker, stage, rows, std::min<size_t>(rows.size(), 3));
}

}  // namespace tensorsmith::space
