// Steps of a Winograd plan. The axes of the stages are those that sched/primitives/winograd.cc documents.
#include <algorithm>
#include <array>

#include "space/plan_steps.h"
#include "space/plans/winograd/winograd_plan.h"

namespace tensorsmith::space {

namespace {

using sched::Annotation;
using sched::TailPolicy;

// Most vectors that are transposed together. More of them take more code and more shuffles per
// vector, and the longer rows that they give are not stored faster.
constexpr int64_t kTransposed = 8;

// A loop split into full vectors and the loop around them; a short loop is a single vector.
struct VectorLoop {
  std::vector<LoopId> outer;
  LoopId vector;
};

VectorLoop split_vectors(TraceMaker& maker, StageId stage, LoopId loop, int64_t extent, int64_t lanes,
                         TailPolicy tail = TailPolicy::kPeel) {
  if (extent <= lanes) return {{}, loop};
  const auto made = maker.split(stage, loop, {lanes}, tail);
  return {{made[0]}, made[1]};
}

void vectorize(TraceMaker& maker, StageId stage, LoopId loop, int64_t extent) {
  if (extent > 1) maker.annotate(stage, loop, Annotation::kVectorize);
}

void append_loops(std::vector<LoopId>& list, const std::vector<LoopId>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

void WinogradPlan::emit(TraceMaker& maker, Decisions d) const {
  const Choice c = decode(d);
  maker.pack(stages_.weights, packed_weights(c));
  const StageId anchor = self_ ? maker.cache_write(output_, ir::MemoryScope::kLocal) : stages_.result;
  const StageId local = maker.cache_write(stages_.product, ir::MemoryScope::kLocal);
  const OutputLoops loops = emit_output(maker, c);
  emit_inverse_transform(maker, anchor, loops.block);
  emit_product(maker, c, local);
  if (c.strips) maker.compute_at(stages_.product, output_, loops.strip);
  emit_data_transform(maker, c, loops.strip);
}

// Loop order: strips / rows of tiles / blocks of channels / channels / rows of the image, which are
// contiguous.
WinogradPlan::OutputLoops WinogradPlan::emit_output(TraceMaker& maker, const Choice& c) const {
  const auto all = maker.axis_loops(output_);
  const auto loop_of = [&](AxisId a) { return all[output_axis_[a]]; };
  // Rows beyond the last one are few and are checked once per row, which avoids a second copy of
  // the whole nest.
  const auto h =
      maker.split(output_, loop_of(kHeight), {c.strips ? c.strip : 1, stages_.m}, TailPolicy::kPredicate);
  const auto channels =
      maker.split(output_, loop_of(kChannel), {channel_lanes(out_channels_)}, TailPolicy::kPeel);
  const int64_t lanes = context_.machine.lanes(context_.stage(output_).element_bytes);
  const VectorLoop w = split_vectors(maker, output_, loop_of(kWidth), width_, lanes);
  std::vector<LoopId> strips{h[0]}, blocks{h[1], channels[0]};
  if (output_axis_[kBatch].valid()) strips.insert(strips.begin(), loop_of(kBatch));
  std::vector<LoopId> order = strips;
  append_loops(order, blocks);
  const std::vector<LoopId> rows{channels[1], h[2]};
  append_others(maker, output_, {&strips, &blocks, &rows, &w.outer}, w.vector, order);
  append_loops(order, rows);
  append_loops(order, w.outer);
  order.push_back(w.vector);
  maker.reorder(output_, order);
  vectorize(maker, output_, w.vector, width_);
  OutputLoops loops{strips.back(), blocks.back()};
  if (!c.parallel) return loops;
  if (!c.strips) append_loops(strips, blocks);
  const LoopId fused = maker.fuse(output_, strips);
  maker.annotate(output_, fused, Annotation::kParallel);
  if (c.strips) {
    loops.strip = fused;
  } else {
    loops.block = fused;
  }
  return loops;
}

void WinogradPlan::emit_inverse_transform(TraceMaker& maker, StageId anchor, LoopId block) const {
  const int64_t lanes = channel_lanes(out_channels_);
  {
    // n, oc, h, w: adjacent vectors of channels, which the code generator transposes into rows.
    // They cover whole tiles, with m outputs of a row each.
    const auto all = maker.leaves(anchor);
    const int64_t tiles = std::max<int64_t>(std::min(kTransposed, context_.machine.lanes(4)) / stages_.m, 1);
    const VectorLoop w =
        split_vectors(maker, anchor, all[3], width_, tiles * stages_.m, TailPolicy::kOverrun);
    std::vector<LoopId> order{all[0], all[2]};
    append_loops(order, w.outer);
    append_loops(order, {w.vector, all[1]});
    maker.reorder(anchor, order);
    maker.annotate(anchor, w.vector, Annotation::kUnroll);
    vectorize(maker, anchor, all[1], lanes);
    maker.compute_at(anchor, output_, block);
  }
  // n, h, tw, j, oc: the block has the m rows of a tile.
  const auto all = maker.leaves(stages_.columns);
  maker.reorder(stages_.columns, {all[0], all[2], all[3], all[1], all[4]});
  maker.annotate(stages_.columns, all[1], Annotation::kUnroll);
  vectorize(maker, stages_.columns, all[4], lanes);
  maker.compute_at(stages_.columns, output_, block);
}

void WinogradPlan::emit_product(TraceMaker& maker, const Choice& c, StageId local) const {
  LoopId tile;
  {
    const StageId copy = stages_.product;
    const auto all = maker.leaves(copy);  // i, j, n, th, tw, oc
    const auto h = maker.split(copy, all[3], {c.tile_h}, TailPolicy::kPeel);
    const auto w =
        maker.split(copy, all[4], {c.tile_w}, shifts_tiles(c) ? TailPolicy::kShift : TailPolicy::kPeel);
    const auto channels = maker.split(copy, all[5], {c.tile_c}, TailPolicy::kPeel);
    const VectorLoop vectors = split_vectors(maker, copy, channels[1], c.tile_c, c.lanes);
    // All tiles use a panel of the weights before the next one is read.
    std::vector<LoopId> order{all[0], all[1], channels[0], all[2], h[0], w[0], h[1], w[1]};
    append_loops(order, vectors.outer);
    order.push_back(vectors.vector);
    maker.reorder(copy, order);
    for (LoopId loop : {h[1], w[1]}) maker.annotate(copy, loop, Annotation::kUnroll);
    for (LoopId loop : vectors.outer) maker.annotate(copy, loop, Annotation::kUnroll);
    vectorize(maker, copy, vectors.vector, c.lanes);
    if (c.parallel && !c.strips)
      maker.annotate(copy, maker.fuse(copy, std::array{all[0], all[1], channels[0]}), Annotation::kParallel);
    tile = w[0];
  }
  const auto all = maker.leaves(local);  // i, j, n, th, tw, oc, ic
  const VectorLoop vectors = split_vectors(maker, local, all[5], c.tile_c, c.lanes);
  std::vector<LoopId> sum{all[6]};
  if (c.unroll > 1) sum = maker.split(local, all[6], {c.unroll}, TailPolicy::kPeel);
  std::vector<LoopId> order{all[0], all[1], all[2]};
  append_loops(order, sum);
  append_loops(order, {all[3], all[4]});
  append_loops(order, vectors.outer);
  order.push_back(vectors.vector);
  maker.reorder(local, order);
  if (c.unroll > 1) maker.annotate(local, sum[1], Annotation::kUnroll);
  for (LoopId loop : {all[3], all[4]}) maker.annotate(local, loop, Annotation::kUnroll);
  for (LoopId loop : vectors.outer) maker.annotate(local, loop, Annotation::kUnroll);
  vectorize(maker, local, vectors.vector, c.lanes);
  maker.compute_at(local, stages_.product, tile);
}

void WinogradPlan::emit_data_transform(TraceMaker& maker, const Choice& c, LoopId strip) const {
  const int64_t lanes = channel_lanes(in_channels_);
  LoopId block;
  {
    const StageId input = stages_.input;
    const auto all = maker.leaves(input);  // i, j, n, th, tw, ic
    const auto channels = maker.split(input, all[5], {lanes}, TailPolicy::kPeel);
    maker.reorder(input, {all[2], all[3], channels[0], all[0], all[4], all[1], channels[1]});
    maker.annotate(input, all[1], Annotation::kUnroll);
    vectorize(maker, input, channels[1], lanes);
    block = channels[0];
    if (c.strips) {
      maker.compute_at(input, output_, strip);
    } else if (c.parallel) {
      block = maker.fuse(input, std::array{all[2], all[3], channels[0]});
      maker.annotate(input, block, Annotation::kParallel);
    }
  }
  {
    const auto all = maker.leaves(stages_.rows);  // n, th, i, x, ic
    maker.reorder(stages_.rows, {all[0], all[1], all[3], all[2], all[4]});
    maker.annotate(stages_.rows, all[2], Annotation::kUnroll);
    vectorize(maker, stages_.rows, all[4], lanes);
    maker.compute_at(stages_.rows, stages_.input, block);
  }
  // Adjacent rows, which the code generator transposes into vectors of channels.
  const StageId data = stages_.data;
  const auto all = maker.leaves(data);  // n, y, x, ic
  const int64_t row = context_.stage(data).extent(AxisId(2));
  const VectorLoop x = split_vectors(maker, data, all[2], row, context_.machine.lanes(4), TailPolicy::kShift);
  std::vector<LoopId> order{all[0], all[1]};
  LoopId within = all[3];
  if (c.data != DataLocation::kBlock) {
    const auto channels = maker.split(data, all[3], {lanes}, TailPolicy::kPeel);
    order.push_back(channels[0]);
    within = channels[1];
  }
  append_loops(order, x.outer);
  const VectorLoop rows = split_vectors(maker, data, within, lanes, kTransposed);
  append_loops(order, rows.outer);
  within = rows.vector;
  append_loops(order, {within, x.vector});
  maker.reorder(data, order);
  maker.annotate(data, within, Annotation::kUnroll);
  vectorize(maker, data, x.vector, row);
  if (c.data == DataLocation::kBlock) {
    maker.compute_at(data, stages_.input, block);
  } else if (c.data == DataLocation::kStrip) {
    maker.compute_at(data, output_, strip);
  } else if (c.parallel) {
    maker.annotate(data, maker.fuse(data, std::array{order[0], order[1], order[2]}), Annotation::kParallel);
  }
}

// i, j, oc / tile, ic, oc % tile: the register tile reads a panel from front to back.
sched::Layout WinogradPlan::packed_weights(const Choice& c) const {
  const int64_t a = stages_.m + 2;
  sched::Layout layout{{0, 1, a}, {1, 1, a}};
  const int64_t panels = (out_channels_ + c.tile_c - 1) / c.tile_c;
  if (panels > 1) layout.push_back({3, c.tile_c, panels});
  layout.push_back({2, 1, in_channels_});
  layout.push_back({3, 1, c.tile_c});
  return layout;
}

}  // namespace tensorsmith::space
