// Steps of row-wise reductions on a GPU.
#include "space/gpu_steps.h"
#include "space/plans/gpu_rows/gpu_rows_plan.h"

namespace tensorsmith::space {

namespace {

constexpr auto kPredicate = sched::TailPolicy::kPredicate;

}  // namespace

void GpuRowsPlan::emit(TraceMaker& maker, Decisions d) const {
  for (const StageId p : pads_) maker.compute_inline(p);
  for (const auto& member : members_)
    if (member.shared_slot != kNone && !in_shared(d, member)) maker.compute_inline(member.stage);
  std::vector<StageId> stages;  // that compute the members
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
  // Consumers before producers, so that each stage's readers are attached before it.
  for (size_t k = 0; k < members_.size(); ++k) {
    if (!stages[k].valid()) continue;
    if (context_.stage(members_[k].stage).reduction) {
      emit_reduction(maker, d, members_[k], stages[k], attach);
    } else {
      share_among_threads(maker, stages[k], threads(d), 1);
      maker.compute_at(stages[k], output_, attach);
    }
  }
}

// Returns the loop of blocks.
LoopId GpuRowsPlan::emit_root(TraceMaker& maker, Decisions d) const {
  const auto axes = maker.axis_loops(output_);
  std::vector<LoopId> outer, inner;
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
  // Threads follow each other as elements do in memory.
  for (const AxisId a : columns_) inner.push_back(axes[a]);
  if (row.valid()) inner.insert(rows_.back() == info_.contiguous_axis ? inner.end() : inner.begin(), row);
  std::vector<LoopId> order = outer;
  order.insert(order.end(), inner.begin(), inner.end());
  maker.reorder(output_, order);
  const LoopId blocks = fuse_or_unit(maker, output_, outer);
  LoopId elements;
  LoopId grid = blocks;
  if (inner.empty()) {
    const auto made = maker.split(output_, blocks, {1}, kPredicate);
    grid = made[0];
    elements = made[1];
  } else {
    elements = maker.fuse(output_, inner);
  }
  const int64_t v = vector(d);
  const auto lengths = v > 1 ? std::vector<int64_t>{threads(d), v} : std::vector<int64_t>{threads(d)};
  const auto made = maker.split(output_, elements, lengths, kPredicate);
  maker.annotate(output_, grid, sched::Annotation::kBlockX);
  maker.annotate(output_, made[1], sched::Annotation::kThreadX);
  if (v > 1) maker.annotate(output_, made[2], sched::Annotation::kVectorize);
  return grid;
}

// A stage of shared memory that threads compute, each its elements in registers.
void GpuRowsPlan::emit_step(TraceMaker& maker, Decisions d, StageId stage, LoopId attach) const {
  const StageId sum = maker.cache_write(stage, ir::MemoryScope::kLocal);
  share_among_threads(maker, stage, threads(d), 1);
  maker.compute_at(stage, output_, attach);
  maker.compute_at(sum, stage, maker.leaves(stage).back());
}

void GpuRowsPlan::emit_reduction(TraceMaker& maker, Decisions d, const Member& member, StageId stage,
                                 LoopId attach) const {
  const int64_t lanes = lanes_of(d, member);
  if (lanes == 1) return emit_step(maker, d, stage, attach);
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
  const StageId partial = maker.rfactor(stage, parts[1], member.lanes_last ? spatial : 0);
  StageId second;
  if (const int64_t rest = second_lanes(lanes); rest > 1) {
    const auto halves = maker.split(stage, maker.leaves(stage).back(), {rest}, kPredicate);
    second = maker.rfactor(stage, halves[1], spatial);
  }
  emit_step(maker, d, stage, attach);
  if (second.valid()) emit_step(maker, d, second, attach);
  emit_step(maker, d, partial, attach);
}

}  // namespace tensorsmith::space
