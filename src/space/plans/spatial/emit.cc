#include <algorithm>

#include "space/plan_steps.h"
#include "space/plans/spatial/spatial_plan.h"

namespace tensorsmith::space {

void SpatialPlan::emit(TraceMaker& maker, Decisions d) const {
  const auto tail = category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
  const auto loops = maker.axis_loops(output_);
  if (is_flat(d)) {
    const std::vector<LoopId> all(loops.begin(), loops.end());
    const LoopId fused = maker.fuse(output_, all);
    // The loops over chunks, over the vectors of a chunk, and over one vector.
    const auto made = maker.split(output_, fused, {flat_chunk(d), flat_length(d)}, tail);
    if (parallel(d) > 0) maker.annotate(output_, made[0], sched::Annotation::kParallel);
    maker.annotate(output_, made[2], sched::Annotation::kVectorize);
    return;
  }
  std::vector<LoopId> outer, inner, reduce;
  LoopId vector_loop;
  for (const AxisId a : live_) {
    if (a == vector_axis_) continue;
    const int64_t t = tile_slots_[a] == kNone ? 1 : lengths(d, tile_slots_[a])[0];
    if (t == 1) {
      outer.push_back(loops[a]);
    } else if (t == info_.extent(a)) {
      inner.push_back(loops[a]);
    } else {
      const auto made = maker.split(output_, loops[a], {t}, tail);
      outer.push_back(made[0]);
      inner.push_back(made[1]);
    }
  }
  if (vector_axis_.valid()) {
    const int64_t v = vector_length(d), u = unrolled(d), e = info_.extent(vector_axis_);
    const LoopId loop = loops[vector_axis_];
    std::vector<LoopId> made{loop};
    if (v * u >= e) {
      if (v < e) made = maker.split(output_, loop, {v}, tail);
    } else {
      made = maker.split(output_, loop, u > 1 ? std::vector<int64_t>{u, v} : std::vector<int64_t>{v}, tail);
      outer.push_back(made[0]);
      made.erase(made.begin());
    }
    vector_loop = made.back();
    if (made.size() > 1) inner.push_back(made[0]);
  }
  for (const AxisId a : info_.reduce_axes()) reduce.push_back(loops[a]);
  std::vector<LoopId> order = outer;
  append_others(maker, output_, {&outer, &inner, &reduce}, vector_loop, order);
  order.insert(order.end(), reduce.begin(), reduce.end());
  order.insert(order.end(), inner.begin(), inner.end());
  if (vector_loop.valid()) order.push_back(vector_loop);
  maker.reorder(output_, order);
  if (vector_loop.valid() && vector_length(d) > 1)
    maker.annotate(output_, vector_loop, sched::Annotation::kVectorize);
  parallelize(maker, output_, outer, std::min(parallel(d), outer.size()));
}

}  // namespace tensorsmith::space
