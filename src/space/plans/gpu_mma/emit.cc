// Steps of products on tensor cores.
#include "sched/tensor_cores.h"
#include "space/gpu_steps.h"
#include "space/plans/gpu_mma/gpu_mma_plan.h"

namespace tensorsmith::space {

void GpuMmaPlan::emit(TraceMaker& maker, Decisions d) const {
  const Choice c = decode(d);
  const StageId anchor = compute_locally(maker, output_, anchor_);
  std::vector<std::pair<StageId, Copy>> copies;
  for (const auto& [read, own] : {std::pair(&product_.a, product_.rows), {&product_.b, product_.columns}}) {
    const StageId made =
        maker.cache_read(read->producer, ir::MemoryScope::kShared, {anchor}, read->indices.size());
    copies.emplace_back(made, copy_of(c, *read, own));
  }
  // Pads are inlined into the copies.
  for (const StageId pad : pads_) maker.compute_inline(pad);
  const LoopId lane = emit_output(maker, c);
  const LoopId chunk = emit_anchor(maker, c, anchor);
  maker.compute_at(anchor, output_, lane);
  for (const auto& [stage, copy] : copies) {
    emit_copy(maker, c, copy, stage);
    maker.compute_at(stage, anchor, chunk);
  }
}

// Returns the loop over lanes.
LoopId GpuMmaPlan::emit_output(TraceMaker& maker, const Choice& c) const {
  const auto axes = maker.axis_loops(output_);
  const AxisId rows = output_axis_[product_.rows], columns = output_axis_[product_.columns];
  // Loops of rows: tiles, warps, fragments, halves and groups. Loops of columns: tiles, warps,
  // fragments, places and pairs.
  std::vector<LoopId> blocks;
  const auto in_output = [this](AxisId a) { return a.valid() ? output_axis_[a] : AxisId(); };
  const AxisId outer_rows = in_output(product_.folded_rows),
               outer_columns = in_output(product_.folded_columns);
  for (const AxisId a : axes.ids())
    if (a != rows && a != columns && a != outer_rows && a != outer_columns) blocks.push_back(axes[a]);
  const std::vector<int64_t> of_rows = {c.warps_down, c.warp_rows / sched::kMmaRows, sched::kMmaHalves},
                             of_columns = {c.warps_across, c.warp_columns / sched::kMmaColumns};
  const auto split = [&](AxisId own, AxisId outer, std::vector<int64_t> many,
                         const std::vector<int64_t>& few) {
    if (outer.valid()) {
      auto loops = maker.split(output_, axes[outer], many, kPredicate);
      const auto line = maker.split(output_, axes[own], few, kPredicate);
      blocks.push_back(line[0]);
      loops.insert(loops.end(), line.begin() + 1, line.end());
      return loops;
    }
    many.insert(many.end(), few.begin(), few.end());
    return maker.split(output_, axes[own], many, kPredicate);
  };
  const auto i = split(rows, outer_rows, of_rows, {sched::kMmaGroups});
  const auto j = split(columns, outer_columns, of_columns, {sched::kMmaPlaces, sched::kMmaPairs});
  append_grouped(maker, output_, c.columns_outside ? j[0] : i[0], c.columns_outside ? i[0] : j[0], c.group,
                 blocks);
  const std::vector<LoopId> fragments = {i[2], i[3], j[2]}, warps = {i[1], j[1]}, lanes = {i[4], j[3]};
  std::vector<LoopId> order = blocks;
  for (const auto* loops : {&fragments, &warps, &lanes})
    order.insert(order.end(), loops->begin(), loops->end());
  order.push_back(j[4]);
  maker.reorder(output_, order);
  maker.annotate(output_, maker.fuse(output_, blocks), sched::Annotation::kBlockX);
  maker.annotate(output_, maker.fuse(output_, fragments), sched::Annotation::kVThread);
  maker.annotate(output_, maker.fuse(output_, warps), sched::Annotation::kThreadY);
  const LoopId lane = maker.fuse(output_, lanes);
  maker.annotate(output_, lane, sched::Annotation::kThreadX);
  maker.annotate(output_, j[4], sched::Annotation::kVectorize);
  return lane;
}

// Returns the loop over chunks of the reduction.
LoopId GpuMmaPlan::emit_anchor(TraceMaker& maker, const Choice& c, StageId anchor) const {
  const auto axes = maker.axis_loops(anchor);
  const auto k = maker.split(anchor, axes[product_.sum], {c.chunk}, kPredicate);
  std::vector<LoopId> chunks, order;
  for (const AxisId a : product_.window) chunks.push_back(axes[a]);
  chunks.push_back(k[0]);
  order = chunks;
  order.push_back(k[1]);
  for (const AxisId a : info_.reduce_axes())
    if (a != product_.sum && extent(a) == 1) order.push_back(axes[a]);
  for (const AxisId a : info_.spatial_axes()) order.push_back(axes[a]);
  maker.reorder(anchor, order);
  maker.annotate(anchor, axes[product_.columns], sched::Annotation::kUnroll);
  // In a nest for tensor cores, this is the number of chunks in shared memory at a time.
  if (c.stages > 1) maker.auto_unroll(anchor, c.stages);
  // One loop, so that copies run ahead from one place in the window to the next.
  return chunks.size() > 1 ? maker.fuse(anchor, chunks) : k[0];
}

// All threads of the block copy together, one row of the tile after the other.
void GpuMmaPlan::emit_copy(TraceMaker& maker, const Choice& c, const Copy& copy, StageId stage) const {
  if (copy.aligned.valid()) {
    maker.storage_align(stage, maker.axis_loops(stage)[copy.aligned], copy.factor, copy.offset);
  }
  share_among_warps(maker, stage, c.warps(), copy.vector);
}

}  // namespace tensorsmith::space
