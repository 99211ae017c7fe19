#include "space/plans/attention/attention_plan.h"

#include <algorithm>

#include "space/plan_steps.h"

namespace tensorsmith::space {

namespace {

constexpr int64_t kAttentionUnrollLimits[] = {1, 2, 4, 8};
constexpr int64_t kMostRows = 256;

}  // namespace

AttentionPlan::AttentionPlan(const PlanContext& context, StageId output, const AttentionStages& stages)
    : Plan(context), output_(output), stages_(stages) {
  const auto& product = context.stage(stages.product);
  const auto& scores = context.stage(stages.scores);
  const auto& out = context.stage(output);
  const AxisMap to_output = axes_in(context, output, stages.product);
  AxisMap to_product;
  for (const auto& read : product.reads)
    if (read.producer == stages.exponential) to_product = context.analysis->axis_map(read);
  IdVector<AxisId, bool> indexed(product.num_axes(), false);
  for (const AxisId x : to_product.ids()) {
    const AxisId axis = to_product[x];
    if (!axis.valid() || scores.extent(x) <= 1) continue;
    indexed[axis] = true;
    if (product.is_reduce(axis)) {
      score_column_ = x;
      product_reduce_ = axis;
    } else {
      score_row_ = x;
      product_row_ = axis;
    }
  }
  for (const auto& read : context.stage(stages.sum).reads)
    sum_row_ = context.analysis->axis_map(read)[score_row_];
  score_reduce_ = summed_axis(scores);
  for (const AxisId a : product.spatial_axes())
    if (!indexed[a] && product.extent(a) > 1) product_column_ = a;
  output_row_ = to_output[product_row_];
  output_column_ = to_output[product_column_];
  queries_ = scores.extent(score_row_);
  keys_ = scores.extent(score_column_);
  depth_ = scores.extent(score_reduce_);
  width_ = product.extent(product_column_);
  batch_ = out.spatial_points() / (queries_ * width_);

  find_masks();

  rows_slot_ = add_tile(context.op(stages.product).name + ".rows", queries_, 1, 1, kMostRows);
  score_slots_ = add_tile_slots(context.op(stages.scores).name, keys_);
  product_slots_ = add_tile_slots(context.op(stages.product).name, width_);
  if (context.threads() > 1)
    parallel_slot_ =
        add_category(context.op(stages.product).name + ".parallel", DecisionRole::kParallel, {0.1, 1, 0.5});
}

AttentionPlan::TileSlots AttentionPlan::add_tile_slots(const std::string& name, int64_t columns) {
  const int64_t lanes = context_.machine.lanes(4);
  TileSlots slots;
  slots.rows = add_tile(name + ".tile.rows", queries_, 1, 1, 16);
  slots.columns = add_tile(name + ".tile.columns", columns, 1, lanes, 4 * lanes);
  slots.unroll = add_category(name + ".unroll", DecisionRole::kUnroll, {1, 1, 1, 0.5});
  return slots;
}

AttentionPlan::Tile AttentionPlan::decode_tile(Decisions d, const TileSlots& slots, int64_t rows,
                                               int64_t columns, int64_t depth) const {
  const int64_t lanes = context_.machine.lanes(4);
  Tile tile;
  tile.rows = largest_divisor(rows, lengths(d, slots.rows)[0]);
  tile.columns = std::min(lengths(d, slots.columns)[0], columns);
  if (tile.columns > lanes) tile.columns -= tile.columns % lanes;
  tile.lanes = std::min(tile.columns, lanes);
  tile.unroll = largest_divisor(depth, kAttentionUnrollLimits[category(d, slots.unroll)]);
  return tile;
}

AttentionPlan::Choice AttentionPlan::decode(Decisions d) const {
  Choice c;
  c.rows = std::min(lengths(d, rows_slot_)[0], queries_);
  if (context_.threads() > 1) c.parallel = category(d, parallel_slot_);
  // The rest of a loop over blocks is computed by shifting the last block, which parallel loops
  // cannot do.
  if (c.parallel == 2) c.rows = largest_divisor(queries_, c.rows);
  c.scores = decode_tile(d, score_slots_, c.rows, keys_, depth_);
  c.product = decode_tile(d, product_slots_, c.rows, width_, keys_);
  return c;
}

AxisId AttentionPlan::summed_axis(const StageInfo& info) {
  AxisId last(info.num_spatial);
  for (const AxisId a : info.reduce_axes())
    if (info.extent(a) > 1) last = a;
  return last;
}

void AttentionPlan::find_masks() {
  const auto reads = effective_reads(context_, stages_.masked);
  for (const auto& read : reads) {
    const auto& made = context_.stage(read.producer);
    const bool once = std::count_if(reads.begin(), reads.end(),
                                    [&](const Read& other) { return other.producer == read.producer; }) == 1;
    if (!made.constant || !read.affine || !once || made.consumers.size() != 1) continue;
    Mask mask{read.producer, {}, {}};
    bool whole = true;
    for (const AxisId x : read.indices.ids()) {
      if (made.extent(x) == 1) continue;
      const AxisId axis = read.indices[x].constant == 0 ? read.indices[x].single_axis() : AxisId();
      AxisId& dimension = axis == score_row_ ? mask.row : mask.column;
      whole = whole && !dimension.valid() && (axis == score_row_ || axis == score_column_) &&
              made.extent(x) == (axis == score_row_ ? queries_ : keys_);
      dimension = x;
    }
    if (whole && mask.row.valid() && mask.column.valid()) masks_.push_back(mask);
  }
}

std::string AttentionPlan::describe() const {
  return "attention " + context_.op(stages_.product).name + " into " + context_.op(output_).name;
}

int64_t AttentionPlan::vectors(const Tile& tile) const { return tile.columns / tile.lanes; }

Status AttentionPlan::check(Decisions d) const {
  const Choice c = decode(d);
  const int64_t lanes = context_.machine.lanes(4);
  for (const auto& [tile, columns] : {std::pair{&c.scores, keys_}, std::pair{&c.product, width_}}) {
    if (tile->rows * vectors(*tile) > context_.machine.registers)
      return refuse(stages_.product, "the register tile does not fit the register file");
    if (tile->columns < lanes && tile->columns < columns)
      return refuse(stages_.product, "the vectors of the register tile are not full");
    if (tile->rows * vectors(*tile) * tile->unroll > 128)
      return refuse(stages_.product, "too much unrolled code");
  }
  const double block = 8.0 * (c.rows * keys_);
  if (c.rows > 16 && block > 2 * context_.machine.l2_bytes)
    return refuse(stages_.product, "the scores of a block do not fit the cache");
  return {};
}

}  // namespace tensorsmith::space
