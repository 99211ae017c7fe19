#include <algorithm>

#include "space/plan_steps.h"
#include "space/plans/window/window_plan.h"

namespace tensorsmith::space {

void WindowPlan::emit(TraceMaker& maker, Decisions d) const {
  const auto tail = tail_of(d);
  for (size_t p = 0; p < pads_.size(); ++p)
    if (location(d, p) == PadLocation::kInline) maker.compute_inline(pads_[p]);
  const StageId anchor = anchor_ == output_ ? maker.cache_write(output_, ir::MemoryScope::kLocal) : anchor_;

  const auto loops = maker.axis_loops(output_);
  std::vector<LoopId> outer, rows, strips;
  LoopId vector_loop = kNoLoop;
  for (const AxisId a : live_) {
    const LoopId loop = loops[output_axis_[a]];
    const int64_t e = extent(a);
    if (a != vector_axis_) {
      const int64_t t = tile(d, a);
      if (t == 1) {
        outer.push_back(loop);
      } else if (t == e) {
        rows.push_back(loop);
      } else {
        const auto made = maker.split(output_, loop, {t}, tail);
        outer.push_back(made[0]);
        rows.push_back(made[1]);
      }
      continue;
    }
    const int64_t v = width(d), n = strip(d);
    std::vector<LoopId> made{loop};
    if (n * v < e) {
      made = maker.split(output_, loop, n > 1 ? std::vector<int64_t>{n, v} : std::vector<int64_t>{v}, tail);
      outer.push_back(made.front());
      made.erase(made.begin());
    } else if (v < e) {
      made = maker.split(output_, loop, {v}, tail);
    }
    vector_loop = made.back();
    if (made.size() > 1) strips.push_back(made.front());
  }
  std::vector<LoopId> order = outer;
  append_others(maker, output_, {&outer, &rows, &strips}, vector_loop, order);
  std::vector<LoopId> inner = strips;
  inner.insert(inner.end(), rows.begin(), rows.end());
  LoopId attach = !inner.empty() ? inner.back() : !order.empty() ? order.back() : kNoLoop;
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(vector_loop);
  maker.reorder(output_, order);
  for (LoopId loop : inner) maker.annotate(output_, loop, sched::Annotation::kUnroll);
  if (width(d) > 1) maker.annotate(output_, vector_loop, sched::Annotation::kVectorize);
  LoopId outer_last = outer.empty() ? kNoLoop : outer.back();
  if (const size_t count = std::min(parallel(d), outer.size()); count > 0) {
    const LoopId loop = parallelize(maker, output_, outer, count);
    if (count == outer.size()) {
      if (attach == outer_last) attach = loop;
      outer_last = loop;
    }
  }

  // One vector of the reduction: window outside, lanes inside.
  const auto own = maker.axis_loops(anchor);
  order.clear();
  for (const AxisId a : own.ids())
    if (a != vector_axis_) order.push_back(own[a]);
  order.push_back(own[vector_axis_]);
  maker.reorder(anchor, order);
  for (const AxisId a : info_.reduce_axes())
    if (extent(a) > 1) maker.annotate(anchor, own[a], sched::Annotation::kUnroll);
  if (width(d) > 1) maker.annotate(anchor, own[vector_axis_], sched::Annotation::kVectorize);
  if (attach != kNoLoop) maker.compute_at(anchor, output_, attach);
  emit_pads(maker, d, outer_last);
}

void WindowPlan::emit_pads(TraceMaker& maker, Decisions d, LoopId outer_last) const {
  for (size_t p = 0; p < pads_.size(); ++p) {
    if (location(d, p) == PadLocation::kInline) continue;
    const auto& pad = context_.stage(pads_[p]);
    const bool root = location(d, p) == PadLocation::kRoot || outer_last == kNoLoop;
    IdVector<AxisId, int64_t> extents = pad.extents;
    if (!root)
      for (const auto& read : reads_) {
        if (read.producer != pads_[p]) continue;
        const auto touched = footprint(read, tile_ranges(d));
        for (const AxisId x : extents.ids())
          extents[x] = std::min(extents[x], static_cast<int64_t>(touched[x]));
      }
    emit_copy_stage(maker, pads_[p], extents, pad.contiguous_axis, context_.machine.lanes(pad.element_bytes),
                    root && context_.threads() > 1, tail_of(d));
    if (!root) maker.compute_at(pads_[p], output_, outer_last);
  }
}

}  // namespace tensorsmith::space
