// Steps of an attention plan.
#include <algorithm>

#include "space/plan_steps.h"
#include "space/plans/attention/attention_plan.h"

namespace tensorsmith::space {

namespace {

using sched::Annotation;
using sched::TailPolicy;

// Vectors of a row's partial results: enough to hide the latency of an operation.
constexpr int64_t kPartialVectors = 4;

// Orders the loops of a stage: these innermost, in this order, and all others outside.
void order_inside(TraceMaker& maker, StageId stage, const std::vector<LoopId>& inner) {
  std::vector<LoopId> order;
  for (LoopId loop : maker.leaves(stage))
    if (!contains(inner, loop)) order.push_back(loop);
  order.insert(order.end(), inner.begin(), inner.end());
  maker.reorder(stage, order);
}

// Orders the loops of a stage so that those over a tile's columns, which become unrolled vectors,
// are innermost.
void order_tile(TraceMaker& maker, StageId stage, std::vector<LoopId> inner, LoopId columns, int64_t length,
                int64_t lanes) {
  std::vector<LoopId> made{columns};
  if (length > lanes) made = maker.split(stage, columns, {lanes}, TailPolicy::kPeel);
  inner.insert(inner.end(), made.begin(), made.end());
  order_inside(maker, stage, inner);
  if (made.size() > 1) maker.annotate(stage, made.front(), Annotation::kUnroll);
  if (lanes > 1) maker.annotate(stage, made.back(), Annotation::kVectorize);
}

}  // namespace

void AttentionPlan::emit(TraceMaker& maker, Decisions d) const {
  const Choice c = decode(d);
  if (packs_masks(c))
    for (const Mask& mask : masks_) maker.pack(mask.constant, packed_mask(c, mask));
  const OutputLoops loops = emit_output(maker, c);
  // Consumers before producers, so that all readers of an attached stage are inside its loop.
  emit_accumulators(maker, c.product, stages_.product, product_row_, product_column_, product_reduce_);
  maker.compute_at(stages_.product, output_, loops.tile);
  // All register tiles of the product read the sums. A maximum is only read by the exponentials of
  // its row.
  const std::vector<StageId> sum_lanes = emit_row_reduction(maker, stages_.sum);
  maker.compute_at(stages_.sum, output_, loops.block);
  const LoopId sum_row = maker.axis_loops(stages_.sum)[sum_row_];
  for (const StageId partial : sum_lanes) maker.compute_at(partial, stages_.sum, sum_row);
  const std::vector<StageId> maximum_lanes = emit_row_reduction(maker, stages_.maximum);
  const LoopId row = emit_exponentials(maker);
  maker.compute_at(stages_.exponential, output_, loops.block);
  maker.compute_at(stages_.maximum, stages_.exponential, row);
  for (const StageId partial : maximum_lanes) maker.compute_at(partial, stages_.exponential, row);
  emit_scores(maker, c, loops.block);
}

// Loop order: batch / blocks of rows / register tiles of the product (rows, columns).
AttentionPlan::OutputLoops AttentionPlan::emit_output(TraceMaker& maker, const Choice& c) const {
  const auto all = maker.axis_loops(output_);
  const auto rows =
      maker.split(output_, all[output_row_], {c.rows / c.product.rows, c.product.rows}, TailPolicy::kShift);
  const auto columns = maker.split(output_, all[output_column_], {c.product.columns}, TailPolicy::kShift);
  order_tile(maker, output_, {rows[0], rows[1], columns[0], rows[2]}, columns[1], c.product.columns,
             c.product.lanes);
  maker.annotate(output_, rows[2], Annotation::kUnroll);
  OutputLoops loops{rows[0], columns[0]};
  std::vector<LoopId> outer;
  for (LoopId loop : maker.leaves(output_)) {
    if (loop == rows[0]) break;
    outer.push_back(loop);
  }
  if (c.parallel == 2) outer.push_back(rows[0]);
  if (c.parallel > 0 && !outer.empty()) {
    const LoopId fused = maker.fuse(output_, outer);
    maker.annotate(output_, fused, Annotation::kParallel);
    if (c.parallel == 2) loops.block = fused;
  }
  return loops;
}

void AttentionPlan::emit_accumulators(TraceMaker& maker, const Tile& tile, StageId stage, AxisId row_axis,
                                      AxisId column_axis, AxisId reduce_axis) const {
  const auto all = maker.axis_loops(stage);
  const LoopId row = all[row_axis];
  std::vector<LoopId> inner{all[reduce_axis]};
  if (tile.unroll > 1) {
    inner = maker.split(stage, inner.front(), {tile.unroll}, TailPolicy::kPeel);
    maker.annotate(stage, inner.back(), Annotation::kUnroll);
  }
  inner.push_back(row);
  maker.annotate(stage, row, Annotation::kUnroll);
  order_tile(maker, stage, inner, all[column_axis], tile.columns, tile.lanes);
}

// Loop order: panels of keys / register tiles. All rows of a block use a panel before the next one
// is read.
void AttentionPlan::emit_scores(TraceMaker& maker, const Choice& c, LoopId block) const {
  StageId sums = stages_.scores;
  if (stages_.scores == stages_.masked) sums = maker.cache_write(stages_.masked, ir::MemoryScope::kLocal);
  const StageId masked = stages_.masked;
  spread_rows(maker, masked);
  const auto all = maker.axis_loops(masked);
  const auto rows = maker.split(masked, all[score_row_], {c.scores.rows}, TailPolicy::kPeel);
  const auto columns = maker.split(masked, all[score_column_], {c.scores.columns}, TailPolicy::kShift);
  order_tile(maker, masked, {columns[0], rows[0], rows[1]}, columns[1], c.scores.columns, c.scores.lanes);
  maker.annotate(masked, rows[1], Annotation::kUnroll);
  maker.compute_at(masked, output_, block);
  emit_accumulators(maker, c.scores, sums, score_row_, score_column_, score_reduce_);
  maker.compute_at(sums, masked, rows[0]);
}

// Row / block, column / panel, row % block, column % panel: the order of the loops over blocks,
// panels and tiles.
sched::Layout AttentionPlan::packed_mask(const Choice& c, const Mask& mask) const {
  sched::Layout layout;
  const auto add = [&](AxisId dimension, int64_t divisor, int64_t extent) {
    if (extent > 1) layout.push_back(layout_dim(dimension, divisor, extent));
  };
  add(mask.row, c.rows, queries_ / c.rows);
  add(mask.column, c.scores.columns, keys_ / c.scores.columns);
  add(mask.row, 1, c.rows);
  add(mask.column, 1, c.scores.columns);
  return layout;
}

void AttentionPlan::spread_rows(TraceMaker& maker, StageId stage) const {
  constexpr int64_t kLine = 16;
  if (keys_ < kLine || score_row_ > score_column_) return;
  maker.storage_align(stage, maker.axis_loops(stage)[score_row_], 2 * kLine, kLine);
}

LoopId AttentionPlan::emit_exponentials(TraceMaker& maker) const {
  const StageId stage = stages_.exponential;
  spread_rows(maker, stage);
  const auto all = maker.axis_loops(stage);
  const LoopId row = all[score_row_];
  const int64_t lanes = std::min(keys_, context_.machine.lanes(4));
  std::vector<LoopId> inner{row};
  std::vector<LoopId> columns{all[score_column_]};
  if (keys_ > lanes) columns = maker.split(stage, columns.front(), {lanes}, TailPolicy::kShift);
  inner.insert(inner.end(), columns.begin(), columns.end());
  order_inside(maker, stage, inner);
  maker.annotate(stage, columns.back(), Annotation::kVectorize);
  return row;
}

std::vector<StageId> AttentionPlan::emit_row_reduction(TraceMaker& maker, StageId stage) const {
  const int64_t lanes = context_.machine.lanes(4);
  if (keys_ <= lanes) return {};
  const int64_t factor = keys_ > kPartialVectors * lanes ? kPartialVectors * lanes : lanes;
  const auto& info = context_.stage(stage);
  const LoopId summed = maker.axis_loops(stage)[summed_axis(info)];
  const LoopId lane_loop = maker.split(stage, summed, {factor}, TailPolicy::kPeel).back();
  const size_t spatial = info.num_spatial;
  const StageId partial = maker.rfactor(stage, lane_loop, spatial);
  // The partial results: lanes innermost.
  const auto loops = maker.leaves(partial);
  const auto sums = std::span(loops).subspan(spatial + 1);
  order_tile(maker, partial, {sums.begin(), sums.end()}, loops[spatial], factor, lanes);
  std::vector<StageId> partials{partial};
  combine_lanes(maker, stage, factor, lanes, partials);
  std::reverse(partials.begin(), partials.end());
  return partials;
}

}  // namespace tensorsmith::space
