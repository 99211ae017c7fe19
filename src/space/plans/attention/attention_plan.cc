#include "space/plans/attention/attention_plan.h"

#include <algorithm>

#include "space/plan_steps.h"

namespace tensorsmith::space {

namespace {

constexpr int64_t kUnrollLimits[] = {1, 2, 4, 8};
constexpr int64_t kMostRows = 256;

}  // namespace

AttentionPlan::AttentionPlan(const PlanContext& context, StageId output, const AttentionStages& stages)
    : Plan(context), output_(output), stages_(stages) {
  const auto& product = context.stage(stages.product);
  const auto& scores = context.stage(stages.scores);
  const auto& out = context.stage(output);
  std::vector<int> to_output, to_product;
  for (const auto& read : effective_reads(context, output))
    if (read.producer == stages.product) to_output = context.analysis->axis_map(read);
  for (const auto& read : product.reads)
    if (read.producer == stages.exponential) to_product = context.analysis->axis_map(read);
  std::vector<bool> indexed(static_cast<size_t>(product.num_axes()), false);
  for (size_t x = 0; x < to_product.size(); ++x) {
    const int axis = to_product[x];
    if (axis < 0 || scores.extents[x] <= 1) continue;
    indexed[static_cast<size_t>(axis)] = true;
    if (axis >= product.num_spatial) {
      score_column_ = static_cast<int>(x);
      product_reduce_ = axis;
    } else {
      score_row_ = static_cast<int>(x);
      product_row_ = axis;
    }
  }
  for (const auto& read : context.stage(stages.sum).reads)
    sum_row_ = context.analysis->axis_map(read)[static_cast<size_t>(score_row_)];
  score_reduce_ = last_live_axis(scores, scores.num_spatial, scores.num_axes());
  for (int a = 0; a < product.num_spatial; ++a)
    if (!indexed[static_cast<size_t>(a)] && product.extent(a) > 1) product_column_ = a;
  output_row_ = to_output[static_cast<size_t>(product_row_)];
  output_column_ = to_output[static_cast<size_t>(product_column_)];
  queries_ = scores.extent(score_row_);
  keys_ = scores.extent(score_column_);
  depth_ = scores.extent(score_reduce_);
  width_ = product.extent(product_column_);
  batch_ = out.spatial_points() / (queries_ * width_);

  find_masks();

  rows_slot_ = add_tile(context.op(stages.product).name + ".rows", queries_, 1, 1, kMostRows);
  score_slots_ = add_tile_slots(context.op(stages.scores).name, keys_);
  product_slots_ = add_tile_slots(context.op(stages.product).name, width_);
  if (context.threads > 1)
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
  tile.unroll = largest_divisor(depth, kUnrollLimits[category(d, slots.unroll)]);
  return tile;
}

AttentionPlan::Choice AttentionPlan::decode(Decisions d) const {
  Choice c;
  c.rows = std::min(lengths(d, rows_slot_)[0], queries_);
  if (context_.threads > 1) c.parallel = category(d, parallel_slot_);
  // What is left of a loop over blocks is computed by shifting the last one, which parallel loops cannot.
  if (c.parallel == 2) c.rows = largest_divisor(queries_, c.rows);
  c.scores = decode_tile(d, score_slots_, c.rows, keys_, depth_);
  c.product = decode_tile(d, product_slots_, c.rows, width_, keys_);
  return c;
}

int AttentionPlan::last_live_axis(const StageInfo& info, int first, int last) {
  for (int a = last; a-- > first;)
    if (info.extent(a) > 1) return a;
  return first;
}

void AttentionPlan::find_masks() {
  const auto reads = effective_reads(context_, stages_.masked);
  for (const auto& read : reads) {
    const auto& made = context_.stage(read.producer);
    const bool once = std::count_if(reads.begin(), reads.end(),
                                    [&](const Read& other) { return other.producer == read.producer; }) == 1;
    if (!made.constant || !read.affine || !once || made.consumers.size() != 1) continue;
    Mask mask{read.producer, -1, -1};
    bool whole = true;
    for (size_t x = 0; x < read.indices.size(); ++x) {
      if (made.extents[x] == 1) continue;
      const int axis = read.indices[x].constant == 0 ? read.indices[x].single_axis() : -1;
      int& dimension = axis == score_row_ ? mask.row : mask.column;
      whole = whole && dimension < 0 && (axis == score_row_ || axis == score_column_) &&
              made.extents[x] == (axis == score_row_ ? queries_ : keys_);
      dimension = static_cast<int>(x);
    }
    if (whole && mask.row >= 0 && mask.column >= 0) masks_.push_back(mask);
  }
}

std::string AttentionPlan::describe() const {
  return "attention " + context_.op(stages_.product).name + " into " + context_.op(output_).name;
}

int64_t AttentionPlan::vectors(const Tile& tile) const { return tile.columns / tile.lanes; }

Status AttentionPlan::check(Decisions d) const {
  const Choice c = decode(d);
  const auto refuse = [&](std::string reason) {
    return Error{ErrorCode::kResourceExhausted, context_.op(stages_.product).name, std::move(reason)};
  };
  const int64_t lanes = context_.machine.lanes(4);
  for (const auto& [tile, columns] : {std::pair{&c.scores, keys_}, std::pair{&c.product, width_}}) {
    if (tile->rows * vectors(*tile) > context_.machine.registers)
      return refuse("the register tile does not fit the register file");
    if (tile->columns < lanes && tile->columns < columns) return refuse("its vectors are not full");
    if (tile->rows * vectors(*tile) * tile->unroll > 128) return refuse("too much unrolled code");
  }
  const double block = 8.0 * (c.rows * keys_);
  if (c.rows > 16 && block > 2 * context_.machine.l2_bytes)
    return refuse("the scores of a block do not fit the cache");
  return {};
}

}  // namespace tensorsmith::space
