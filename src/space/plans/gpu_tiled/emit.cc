// Steps of tiles on a GPU.
#include "space/gpu_steps.h"
#include "space/plans/gpu_tiled/gpu_tiled_plan.h"

namespace tensorsmith::space {

namespace {

void append(std::vector<LoopId>& list, const std::vector<LoopId>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

void GpuTiledPlan::emit(TraceMaker& maker, Decisions d) const {
  const Choice c = decode(d);
  const StageId anchor = compute_locally(maker, output_, anchor_);
  struct Made {
    StageId stage;
    Copy copy;
  };
  std::vector<Made> copies;
  std::vector<char> inlined(pads_.size(), 0);
  for (const auto& operand : operands_) {
    Copy copy = copy_of(d, c, operand);
    if (!copy.made) continue;
    const StageId source = operand.read.producer;
    const StageId made = maker.cache_read(source, ir::MemoryScope::kShared, {anchor}, copy.extents.size());
    copies.push_back({made, std::move(copy)});
  }
  // Pads are inlined into the copies, or into the anchor if there is no copy.
  for (const StageId pad : pads_) maker.compute_inline(pad);
  const LoopId thread = emit_output(maker, c).back();
  const LoopId chunk = emit_anchor(maker, c, anchor);
  maker.compute_at(anchor, output_, thread);
  for (const auto& [stage, copy] : copies) {
    if (copy.aligned.valid())
      maker.storage_align(stage, maker.axis_loops(stage)[copy.aligned], copy.align_factor, copy.align_offset);
    share_among_threads(maker, stage, threads(c), copy.vector);
    maker.compute_at(stage, anchor, chunk);
  }
}

// Emits the loops of the output stage. Returns those over blocks, virtual threads and threads.
std::vector<LoopId> GpuTiledPlan::emit_output(TraceMaker& maker, const Choice& c) const {
  const auto axes = maker.axis_loops(output_);
  IdVector<AxisId, LoopId> block(info_.num_spatial);
  std::vector<LoopId> vthreads, threads, inner, blocks;
  LoopId vector;
  std::vector<char> split(axes.size(), 0);
  for (const AxisId a : live_) {
    const AxisId own = output_axis_[a];
    split[own.place()] = 1;
    const auto made =
        maker.split(output_, axes[own], {c.vthreads[a], c.threads[a], c.registers(a)}, kPredicate);
    block[a] = made[0];
    vthreads.push_back(made[1]);
    threads.push_back(made[2]);
    if (const int64_t lanes = store_vector(c); a == contiguous_ && lanes > 1) {
      const auto vectors = maker.split(output_, made[3], {lanes}, kPredicate);
      inner.push_back(vectors[0]);
      vector = vectors[1];
    } else {
      inner.push_back(made[3]);
    }
  }
  // Axes of extent 1 are the outermost loops over blocks.
  for (const AxisId a : axes.ids())
    if (split[a.place()] == 0) blocks.push_back(axes[a]);
  for (const AxisId a : c.block_order) blocks.push_back(block[a]);
  std::vector<LoopId> order = blocks;
  append(order, vthreads);
  append(order, threads);
  append(order, inner);
  if (vector.valid()) order.push_back(vector);
  maker.reorder(output_, order);
  for (const LoopId loop : inner) maker.annotate(output_, loop, sched::Annotation::kUnroll);
  if (vector.valid()) maker.annotate(output_, vector, sched::Annotation::kVectorize);
  LoopId grid = fuse_or_unit(maker, output_, blocks), vthread, thread;
  if (live_.empty()) {
    const auto made = maker.split(output_, grid, {1}, kPredicate);
    grid = made[0];
    thread = made[1];
  } else {
    vthread = maker.fuse(output_, vthreads);
    thread = maker.fuse(output_, threads);
    int64_t count = 1;
    for (const AxisId a : live_) count *= c.vthreads[a];
    if (count > 1) maker.annotate(output_, vthread, sched::Annotation::kVThread);
  }
  maker.annotate(output_, grid, sched::Annotation::kBlockX);
  maker.annotate(output_, thread, sched::Annotation::kThreadX);
  return {grid, vthread, thread};
}

// Returns the loop over chunks of the reduction.
LoopId GpuTiledPlan::emit_anchor(TraceMaker& maker, const Choice& c, StageId anchor) const {
  const auto axes = maker.axis_loops(anchor);
  std::vector<LoopId> order, units, outer, inner, chunks, steps, points;
  std::vector<int64_t> step_lengths, point_lengths;
  for (const AxisId a : info_.spatial_axes()) {
    if (extent(a) <= 1) {
      units.push_back(axes[a]);
      continue;
    }
    const auto made = maker.split(anchor, axes[a], {c.inner[a]}, kPredicate);
    outer.push_back(made[0]);
    inner.push_back(made[1]);
  }
  for (const AxisId r : info_.reduce_axes()) {
    const auto made = maker.split(anchor, axes[r], {c.chunk[r], c.step[r]}, kPredicate);
    chunks.push_back(made[0]);
    steps.push_back(made[1]);
    points.push_back(made[2]);
    step_lengths.push_back(c.chunk[r]);
    point_lengths.push_back(c.step[r]);
  }
  for (const auto* loops : {&chunks, &units, &steps, &outer, &points, &inner}) append(order, *loops);
  maker.reorder(anchor, order);
  for (const auto* loops : {&outer, &inner})
    for (const LoopId loop : *loops) maker.annotate(anchor, loop, sched::Annotation::kUnroll);
  // Unrolls the reduction from the inside outwards within the limit.
  int64_t unrolled = 1;
  const auto unroll = [&](const std::vector<LoopId>& loops, const std::vector<int64_t>& counts) {
    for (size_t i = loops.size(); i-- > 0;) {
      unrolled *= counts[i];
      if (unrolled > c.unroll) return;
      if (counts[i] > 1) maker.annotate(anchor, loops[i], sched::Annotation::kUnroll);
    }
  };
  unroll(points, point_lengths);
  unroll(steps, step_lengths);
  if (c.stages == 1) return chunks.back();
  // The chunks become one loop, so that copies run ahead from a chunk of one axis to the next. The
  // unroll value is the number of chunks in shared memory at a time.
  maker.auto_unroll(anchor, c.stages);
  return chunks.size() > 1 ? maker.fuse(anchor, chunks) : chunks.back();
}

}  // namespace tensorsmith::space
