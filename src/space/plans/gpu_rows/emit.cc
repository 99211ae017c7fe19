// Steps of row-wise reductions on a GPU.
#include <algorithm>

#include "space/gpu_steps.h"
#include "space/plans/gpu_rows/gpu_rows_plan.h"

namespace tensorsmith::space {

sched::Annotation GpuRowsPlan::row_threads() const {
  return lanes_last_ ? sched::Annotation::kThreadY : sched::Annotation::kThreadX;
}

sched::Annotation GpuRowsPlan::lane_threads(Decisions d) const {
  return lanes_last_ || rows(d) == 1 ? sched::Annotation::kThreadX : sched::Annotation::kThreadY;
}

void GpuRowsPlan::emit(TraceMaker& maker, Decisions d) const {
  for (const StageId p : pads_) maker.compute_inline(p);
  for (const auto& member : members_)
    if (member.shared_slot != kNone && !in_shared(d, member)) maker.compute_inline(member.stage);
  std::vector<StageId> stages;  // stages that compute the members; none if inlined
  for (const auto& member : members_) {
    if (member.shared_slot != kNone && !in_shared(d, member)) {
      stages.emplace_back();
    } else if (self_ && member.stage == output_) {
      stages.push_back(maker.cache_write(output_, ir::MemoryScope::kShared));
    } else {
      stages.push_back(move_to(maker, member.stage, ir::MemoryScope::kShared));
    }
  }
  const LoopId attach = emit_root(maker, d);
  // Consumers before producers, so that the readers of each stage are attached before it.
  for (size_t k = 0; k < members_.size(); ++k) {
    if (!stages[k].valid()) continue;
    if (context_.stage(members_[k].stage).reduction) {
      emit_reduction(maker, d, members_[k], stages[k], attach);
    } else {
      bind(maker, d, stages[k], row_of(members_[k]), columns_of(members_[k]));
      maker.compute_at(stages[k], output_, attach);
    }
  }
}

// Returns the loop over blocks.
LoopId GpuRowsPlan::emit_root(TraceMaker& maker, Decisions d) const {
  const auto axes = maker.axis_loops(output_);
  std::vector<LoopId> outer, columns;
  LoopId row;
  for (const AxisId a : axes.ids())
    if (info_.extent(a) <= 1) outer.push_back(axes[a]);
  for (const AxisId a : rows_) {
    if (a != rows_.back()) {
      outer.push_back(axes[a]);
      continue;
    }
    const auto made = maker.split(output_, axes[a], {rows(d)}, kPredicate);
    outer.push_back(made[0]);
    row = made[1];
  }
  for (const AxisId a : columns_) columns.push_back(axes[a]);
  std::vector<LoopId> order = outer;
  if (row.valid()) order.push_back(row);
  order.insert(order.end(), columns.begin(), columns.end());
  maker.reorder(output_, order);
  const LoopId grid = fuse_or_unit(maker, output_, outer);
  maker.annotate(output_, grid, sched::Annotation::kBlockX);
  if (row.valid() && rows(d) > 1) maker.annotate(output_, row, row_threads());
  if (columns.empty()) return grid;
  const int64_t v = vector(d);
  const auto lengths = v > 1 ? std::vector<int64_t>{lanes(d), v} : std::vector<int64_t>{lanes(d)};
  const auto made = maker.split(output_, maker.fuse(output_, columns), lengths, kPredicate);
  maker.annotate(output_, made[1], lane_threads(d));
  if (v > 1) maker.annotate(output_, made[2], sched::Annotation::kVectorize);
  return grid;
}

// Binds the rows of a stage, and its columns as one loop, to the threads of a block. Loops over
// other axes have one iteration per block. Returns the innermost of these loops, inside which a
// thread computes one element.
LoopId GpuRowsPlan::bind(TraceMaker& maker, Decisions d, StageId stage, AxisId row,
                         const std::vector<AxisId>& columns) const {
  const auto axes = maker.axis_loops(stage);
  std::vector<LoopId> others, rest, reduce;
  for (const AxisId a : axes.ids()) {
    if (a.place() >= maker.num_spatial(stage)) {
      reduce.push_back(axes[a]);
    } else if (a != row && std::find(columns.begin(), columns.end(), a) == columns.end()) {
      others.push_back(axes[a]);
    }
  }
  for (const AxisId a : columns) rest.push_back(axes[a]);
  std::vector<LoopId> order = others;
  if (row.valid()) order.push_back(axes[row]);
  order.insert(order.end(), rest.begin(), rest.end());
  order.insert(order.end(), reduce.begin(), reduce.end());
  maker.reorder(stage, order);
  LoopId last = others.empty() ? LoopId() : others.back();
  if (row.valid()) {
    last = maker.split(stage, axes[row], {rows(d)}, kPredicate)[1];
    if (rows(d) > 1) maker.annotate(stage, last, row_threads());
  }
  if (!rest.empty()) {
    last = maker.split(stage, maker.fuse(stage, rest), {lanes(d)}, kPredicate)[1];
    maker.annotate(stage, last, lane_threads(d));
  }
  return last.valid() ? last : maker.unit_loop(stage);
}

// Schedules a stage in shared memory whose elements the threads sum up in registers.
void GpuRowsPlan::emit_step(TraceMaker& maker, Decisions d, StageId stage, AxisId row,
                            const std::vector<AxisId>& columns, LoopId attach) const {
  const StageId sum = maker.cache_write(stage, ir::MemoryScope::kLocal);
  const LoopId element = bind(maker, d, stage, row, columns);
  maker.compute_at(stage, output_, attach);
  maker.compute_at(sum, stage, element);
}

void GpuRowsPlan::emit_reduction(TraceMaker& maker, Decisions d, const Member& member, StageId stage,
                                 LoopId attach) const {
  const AxisId row = row_of(member);
  const std::vector<AxisId> columns = columns_of(member);
  const int64_t lanes = lanes_of(d, member);
  if (lanes == 1) return emit_step(maker, d, stage, row, columns, attach);
  const auto axes = maker.axis_loops(stage);
  std::vector<LoopId> order(axes.begin(), axes.end()), shared;
  for (const AxisId a : member.lane_axes) {
    shared.push_back(axes[a]);
    std::erase(order, axes[a]);
  }
  order.insert(order.end(), shared.begin(), shared.end());
  maker.reorder(stage, order);
  const auto parts = maker.split(stage, maker.fuse(stage, shared), {lanes}, kPredicate);
  const size_t spatial = maker.num_spatial(stage);
  const StageId partial = maker.rfactor(stage, parts[1], spatial);
  StageId second;
  if (const int64_t rest = second_lanes(lanes); rest > 1) {
    const auto halves = maker.split(stage, maker.leaves(stage).back(), {rest}, kPredicate);
    second = maker.rfactor(stage, halves[1], spatial);
  }
  std::vector<AxisId> with_lanes = columns;
  with_lanes.emplace_back(spatial);
  emit_step(maker, d, stage, row, columns, attach);
  if (second.valid()) emit_step(maker, d, second, row, with_lanes, attach);
  emit_step(maker, d, partial, row, with_lanes, attach);
}

}  // namespace tensorsmith::space
