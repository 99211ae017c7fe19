// Steps of products by warpgroups.
#include "sched/tensor_cores.h"
#include "space/gpu_steps.h"
#include "space/plans/gpu_wgmma/gpu_wgmma_plan.h"

namespace tensorsmith::space {

void GpuWgmmaPlan::emit(TraceMaker& maker, Decisions d) const {
  const Choice c = decode(d);
  const StageId anchor = compute_locally(maker, output_, anchor_);
  std::vector<StageId> copies;
  for (const Read* read : {&product_.a, &product_.b})
    copies.push_back(
        maker.cache_read(read->producer, ir::MemoryScope::kShared, {anchor}, read->indices.size()));
  const LoopId lane = emit_output(maker, c);
  const LoopId chunk = emit_anchor(maker, c, anchor);
  maker.compute_at(anchor, output_, lane);
  for (const size_t f : {0, 1}) {
    // Neighbours in columns have the same rows, which are those of the first factor.
    emit_copy(maker, c, copies[f], c.cluster && (f == 0) == neighbours_in_columns(c));
    maker.compute_at(copies[f], anchor, chunk);
  }
}

// Returns the loop over lanes.
LoopId GpuWgmmaPlan::emit_output(TraceMaker& maker, const Choice& c) const {
  const auto axes = maker.axis_loops(output_);
  const AxisId rows = output_axis_[product_.rows], columns = output_axis_[product_.columns];
  const auto i =
      maker.split(output_, axes[rows],
                  {c.groups_down, sched::kWarpgroupWarps, sched::kMmaHalves, sched::kMmaGroups}, kPredicate);
  const auto j = maker.split(
      output_, axes[columns],
      {c.groups_across, c.columns_of_group / sched::kMmaColumns, sched::kMmaPlaces, sched::kMmaPairs},
      kPredicate);
  std::vector<LoopId> blocks;
  for (const AxisId a : axes.ids())
    if (a != rows && a != columns) blocks.push_back(axes[a]);
  append_grouped(maker, output_, c.columns_outside ? j[0] : i[0], c.columns_outside ? i[0] : j[0], c.group,
                 blocks);
  // The sums in the order of the instruction: fragments of eight columns, halves of rows, pairs.
  const std::vector<LoopId> fragments = {j[2], i[3]}, warps = {i[1], j[1], i[2]}, lanes = {i[4], j[3]};
  std::vector<LoopId> order = blocks;
  for (const auto* loops : {&fragments, &warps, &lanes})
    order.insert(order.end(), loops->begin(), loops->end());
  order.push_back(j[4]);
  maker.reorder(output_, order);
  LoopId block = maker.fuse(output_, blocks);
  const LoopId fragment = maker.fuse(output_, fragments), warp = maker.fuse(output_, warps),
               lane = maker.fuse(output_, lanes);
  if (c.persistent) {
    // Neighbouring blocks have neighbouring tiles at any time.
    const auto made = maker.split(output_, block, {blocks_at_a_time(c)}, kPredicate);
    block = made[1];
    maker.reorder(output_, {block, made[0], fragment, warp, lane, j[4]});
  }
  maker.annotate(output_, block, sched::Annotation::kBlockX);
  maker.annotate(output_, fragment, sched::Annotation::kVThread);
  maker.annotate(output_, warp, sched::Annotation::kThreadY);
  maker.annotate(output_, lane, sched::Annotation::kThreadX);
  maker.annotate(output_, j[4], sched::Annotation::kVectorize);
  return lane;
}

// Returns the loop over chunks of the reduction.
LoopId GpuWgmmaPlan::emit_anchor(TraceMaker& maker, const Choice& c, StageId anchor) const {
  const auto axes = maker.axis_loops(anchor);
  const auto k = maker.split(anchor, axes[product_.sum], {c.chunk}, kPredicate);
  std::vector<LoopId> order = {k[0], k[1]};
  for (const AxisId a : info_.reduce_axes())
    if (a != product_.sum) order.push_back(axes[a]);
  for (const AxisId a : info_.spatial_axes()) order.push_back(axes[a]);
  maker.reorder(anchor, order);
  maker.annotate(anchor, axes[product_.columns], sched::Annotation::kUnroll);
  // In a nest for tensor cores, this is the number of chunks in shared memory at a time.
  maker.auto_unroll(anchor, c.stages);
  return k[0];
}

void GpuWgmmaPlan::emit_copy(TraceMaker& maker, const Choice& c, StageId stage, bool for_cluster) const {
  // A copy whose loops are not distributed over threads is a box, which needs to be requested once.
  // The unroll value of the copy tells who does it: 1 = a separate warp of the block, 2 = those of
  // two blocks together.
  if (c.copies == Copies::kOwnWarp) maker.auto_unroll(stage, for_cluster ? 2 : 1);
  if (c.copies != Copies::kThreads) return;
  share_among_warps(maker, stage, sched::kWarpgroupWarps * c.groups(), 16 / product_.element_bytes);
}

}  // namespace tensorsmith::space
