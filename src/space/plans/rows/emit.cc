#include <algorithm>

#include "space/plan_steps.h"
#include "space/plans/rows/rows_plan.h"

namespace tensorsmith::space {

void RowsPlan::emit(TraceMaker& maker, Decisions d) const {
  const auto tail = category(d, tail_slot_) == 1 ? sched::TailPolicy::kPeel : sched::TailPolicy::kPredicate;
  for (const auto& member : members_)
    if (member.inline_slot != kNone && category(d, member.inline_slot) == 1)
      maker.compute_inline(member.stage);
  StageId self_stage = output_;
  if (self_) self_stage = maker.cache_write(output_, ir::MemoryScope::kLocal);

  // The root stage.
  const auto loops = maker.axis_loops(output_);
  std::vector<LoopId> outer, columns;
  LoopId vector_loop;
  for (const AxisId a : rows_) {
    if (contiguous_row_ && a == rows_.back()) {
      const int64_t width = row_width(d);
      if (width < info_.extent(a)) {
        const auto made = maker.split(output_, loops[a], {width}, tail);
        outer.push_back(made[0]);
        vector_loop = made[1];
      } else {
        vector_loop = loops[a];
      }
    } else {
      outer.push_back(loops[a]);
    }
  }
  for (const AxisId a : columns_) {
    if (a == info_.contiguous_axis) {
      vector_loop = loops[a];
      if (info_.extent(a) > lanes_) {
        const auto made = maker.split(output_, loops[a], {lanes_}, tail);
        columns.push_back(made[0]);
        vector_loop = made[1];
      }
    } else {
      columns.push_back(loops[a]);
    }
  }
  std::vector<LoopId> order = outer;
  append_others(maker, output_, {&outer, &columns}, vector_loop, order);
  order.insert(order.end(), columns.begin(), columns.end());
  if (vector_loop.valid()) order.push_back(vector_loop);
  maker.reorder(output_, order);
  if (vector_loop.valid()) maker.annotate(output_, vector_loop, sched::Annotation::kVectorize);
  LoopId attach = outer.empty() ? LoopId() : outer.back();
  if (const size_t count = std::min(parallel(d), outer.size()); count > 0) {
    const LoopId loop = parallelize(maker, output_, outer, count);
    if (count == outer.size()) attach = loop;
  }
  // Consumers before producers, so that each stage's region is known when it is attached.
  for (const auto& member : members_) {
    if (member.inline_slot != kNone && category(d, member.inline_slot) == 1) continue;
    const StageId stage = self_ && member.stage == output_ ? self_stage : member.stage;
    if (context_.stage(member.stage).reduction) {
      emit_reduction(maker, d, member, stage, attach, tail);
    } else {
      emit_member(maker, d, member, stage, tail);
      if (attach.valid()) maker.compute_at(stage, output_, attach);
    }
  }
}

void RowsPlan::emit_member(TraceMaker& maker, Decisions d, const Member& member, StageId stage,
                           sched::TailPolicy tail) const {
  const auto& info = context_.stage(member.stage);
  const auto loops = maker.axis_loops(stage);
  AxisId vector_axis = info.contiguous_axis;
  int64_t extent = vector_axis.valid() ? info.extent(vector_axis) : 1;
  for (const AxisId a : member.to_output.ids()) {
    if (!member.to_output[a].valid()) continue;
    const bool row = std::find(rows_.begin(), rows_.end(), member.to_output[a]) != rows_.end();
    if (!row) continue;
    if (contiguous_row_ && member.to_output[a] == rows_.back()) {
      vector_axis = a;
      extent = row_width(d);
    } else if (vector_axis == a) {
      vector_axis = {};  // one point per row
    }
  }
  if (!vector_axis.valid()) return;
  std::vector<LoopId> order;
  const LoopId own = loops[vector_axis];
  LoopId vector_loop = own;
  std::vector<LoopId> inner{own};
  if (extent > 4 * lanes_) {
    inner = maker.split(stage, own, {lanes_}, tail);
    vector_loop = inner.back();
  }
  for (LoopId loop : loops)
    if (loop != own) order.push_back(loop);
  order.insert(order.end(), inner.begin(), inner.end());
  maker.reorder(stage, order);
  if (extent > 1) maker.annotate(stage, vector_loop, sched::Annotation::kVectorize);
}

void RowsPlan::emit_reduction(TraceMaker& maker, Decisions d, const Member& member, StageId stage,
                              LoopId attach, sched::TailPolicy tail) const {
  const size_t choice = member.factor_slot == kNone ? 0 : category(d, member.factor_slot);
  if (choice == 0) {
    emit_member(maker, d, member, stage, tail);
    if (attach.valid()) maker.compute_at(stage, output_, attach);
    return;
  }
  const auto& info = context_.stage(member.stage);
  const int64_t factor = factor_of(member, choice);
  LoopId lane_loop = maker.axis_loops(stage)[member.factor_axis];
  if (factor < info.extent(member.factor_axis)) lane_loop = maker.split(stage, lane_loop, {factor}, tail)[1];
  const size_t spatial = info.num_spatial;
  const StageId partial = maker.rfactor(stage, lane_loop, spatial);
  // The partial results: lanes innermost.
  const auto loops = maker.leaves(partial);
  LoopId vector_loop = loops[spatial];
  std::vector<LoopId> order = loops;
  std::erase(order, vector_loop);
  if (factor > lanes_ && factor % lanes_ == 0) {
    const auto made = maker.split(partial, vector_loop, {lanes_}, tail);
    order.push_back(made[0]);
    vector_loop = made[1];
    maker.annotate(partial, made[0], sched::Annotation::kUnroll);
  }
  order.push_back(vector_loop);
  maker.reorder(partial, order);
  maker.annotate(partial, vector_loop, sched::Annotation::kVectorize);
  std::vector<StageId> partials{partial};
  combine_lanes(maker, stage, factor, lanes_, partials);
  if (!attach.valid()) return;
  maker.compute_at(stage, output_, attach);
  for (size_t p = partials.size(); p-- > 0;) maker.compute_at(partials[p], output_, attach);
}

}  // namespace tensorsmith::space
