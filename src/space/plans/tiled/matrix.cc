// Register tiles of a tiled plan that matrix units compute (codegen/matrix_nest.h).
#include <algorithm>

#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

using sched::kTileSide;

std::optional<TiledPlan::MatrixTile> TiledPlan::matrix_tile(const Choice& c) const {
  if (!info_.dot || !context_.machine.matrix.take(*info_.dot)) return std::nullopt;
  const AxisId v = c.vector_axis;
  if (!v.valid() || c.lanes == 1 || c.reduce_order.empty() || operands_.size() != 2) return std::nullopt;
  const AxisId k = c.reduce_order.back();
  MatrixTile tile;
  const int64_t steps = inner_steps(c, k);
  if (!sched::steps_fit(steps)) return std::nullopt;
  tile.depth = std::min(steps, kTileSide);
  // A tail without a loop of its own is a condition on the products.
  const bool conditions = c.tail != sched::TailPolicy::kPeel;
  for (const AxisId r : live_reduce_)
    if (conditions && two_level_ && extent(r) % c.r1[r] != 0) return std::nullopt;
  int64_t others = 1;
  for (const AxisId a : live_) {
    if (conditions && (extent(a) % c.tile(a) != 0 || c.region[a] % c.t3[a] != 0)) return std::nullopt;
    if (a == v || c.register_length(a) == 1) continue;
    if (tile.rows.valid()) others *= c.register_length(tile.rows);
    tile.rows = a;
  }
  if (!tile.rows.valid()) return std::nullopt;
  tile.row_tiles = others * sched::tiles_of(c.register_length(tile.rows));
  tile.column_tiles = sched::tiles_of(c.register_length(v));
  // Vectors of a tail that differ in length become loops one after the other, which do not form a
  // nest.
  if (const int64_t rest = extent(v) % c.tile(v) % c.register_length(v);
      rest > kTileSide && rest % kTileSide != 0)
    return std::nullopt;
  if (c.lanes > kTileSide || (c.register_length(v) > kTileSide && c.lanes != kTileSide)) return std::nullopt;
  if (!sched::tiles_fit(tile.row_tiles, tile.column_tiles)) return std::nullopt;
  const auto of_columns = [&](const Operand& o) { return o.read.depends_on(v); };
  const Operand& columns = of_columns(operands_[0]) ? operands_[0] : operands_[1];
  const Operand& rows = &columns == &operands_[0] ? operands_[1] : operands_[0];
  if (!of_columns(columns) || of_columns(rows) || !columns.read.affine || !rows.read.affine)
    return std::nullopt;
  for (const AxisId a : live_)
    if (a != v && c.register_length(a) > 1 && (columns.read.depends_on(a) || !rows.read.depends_on(a)))
      return std::nullopt;
  if (!rearranged(c, columns) && columns.read.stride(v) != 1) return std::nullopt;
  const bool packed_rows = rows.packable && c.pack;
  if (packed_rows           ? !rows.read.depends_on(k)
      : rearranged(c, rows) ? !keeps_rows(c, rows)
                            : rows.read.stride(k) != 1)
    return std::nullopt;
  return tile;
}

bool TiledPlan::sample_matrix_tile(Rng& rng, std::span<int64_t> d) const {
  if (!info_.dot || !context_.machine.matrix.take(*info_.dot) || live_.size() < 2 || rng.bernoulli(0.2))
    return false;
  const Choice c = decode(d);
  const auto set_inner = [&](AxisId axis, int64_t wanted) {
    const auto& slot = slots()[tile_slot_[axis]];
    const auto l = d.subspan(slot.offset, slot.width());
    l.back() = wanted;
    slot.tiles->fit(l, l);  // outer lengths shrink to fit
  };
  // Returns a whole number of tiles, or the largest part of one that leaves no tail.
  const auto side = [&](AxisId axis, int64_t most) {
    const int64_t length = extent(axis);
    if (length % kTileSide == 0) return kTileSide * rng.uniform_int(1, std::min(most, length / kTileSide));
    for (int64_t part = std::min(length, kTileSide); part > kTileSide / 2; --part)
      if (length % part == 0) return part;
    return std::min(length, rng.bernoulli(0.5) ? kTileSide * most : kTileSide);
  };
  std::vector<AxisId> others;
  for (const AxisId a : live_)
    if (a != c.vector_axis) others.push_back(a);
  const AxisId rows = others[rng.below(others.size())];
  const bool wide = rng.bernoulli(0.8);  // 2 x 2 tiles, else 3 x 1 or 1 x 3
  const bool tall = rng.bernoulli(0.5);
  for (const AxisId a : others) set_inner(a, a == rows ? side(a, wide ? 2 : tall ? 3 : 1) : 1);
  set_inner(c.vector_axis, side(c.vector_axis, wide ? 2 : tall ? 1 : 3));
  if (two_level_ && !c.reduce_order.empty()) {
    const AxisId k = c.reduce_order.back();
    const int64_t steps = extent(k) / kTileSide;
    if (steps >= 1)
      set_inner(k, rng.bernoulli(0.5) && extent(k) % kTileSide == 0 ? extent(k)
                                                                    : kTileSide * rng.uniform_int(1, steps));
  }
  return matrix_tile(decode(d)).has_value();
}

}  // namespace tensorsmith::space
