// Permutations and replications: Transpose, DepthToSpace, SpaceToDepth, Expand, Tile, ReverseSequence, Trilu.
#include <algorithm>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;

Result<Buffers> emit_transpose(OpContext& ctx) {
  const size_t rank = ctx.rank(0);
  std::vector<size_t> perm;
  if (const auto attr = ctx.ints_attr("perm")) {
    TS_ASSIGN_OR_RETURN(perm, ctx.normalize_axes(*attr, rank));
    if (perm.size() != rank) return ctx.invalid("attribute perm does not have one axis per dimension");
  } else {
    for (size_t d = rank; d-- > 0;) perm.push_back(d);
  }
  if (std::is_sorted(perm.begin(), perm.end())) return Buffers{ctx.in(0)};
  Shape shape;
  for (size_t axis : perm) shape.push_back(ctx.shape(0)[axis]);
  std::vector<ir::Axis> axes = axes_for(shape);
  Exprs source(rank);
  for (size_t d = 0; d < rank; ++d) source[perm[d]] = axes[d].var;
  return Buffers{ctx.compute("transpose", std::move(axes), ir::load(ctx.in(0), source))};
}

// DCR: the channel is split into (block row, block column, channel); CRD: (channel, block row,
// block column).
Result<Buffers> emit_depth_to_space(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const int64_t block = ctx.int_attr("blocksize", 0);
  const std::string mode = ctx.string_attr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return ctx.invalid("unknown mode '" + mode + "'");
  if (x.size() != 4 || block < 1 || block > 65536 || x[1] % (block * block) != 0) {
    return ctx.invalid("blocksize " + std::to_string(block) + " does not fit " + describe(ctx.dtype(0), x));
  }
  const int64_t channels = x[1] / (block * block);
  const Shape shape = {x[0], channels, x[2] * block, x[3] * block};
  if (!is_reasonable(shape)) return ctx.invalid("the result would be too large");
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs v = vars_of(axes);
  const Expr row = ir::floormod(v[2], block);
  const Expr column = ir::floormod(v[3], block);
  const Expr within = row * Expr(block) + column;
  const Expr channel = mode == "DCR" ? within * Expr(channels) + v[1] : v[1] * Expr(block * block) + within;
  Expr body = ir::load(ctx.in(0), {v[0], channel, ir::floordiv(v[2], block), ir::floordiv(v[3], block)});
  return Buffers{ctx.compute("depth_to_space", std::move(axes), std::move(body))};
}

Result<Buffers> emit_space_to_depth(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const int64_t block = ctx.int_attr("blocksize", 0);
  if (x.size() != 4 || block < 1 || block > 65536 || x[2] % block != 0 || x[3] % block != 0 || x[1] < 1) {
    return ctx.invalid("blocksize " + std::to_string(block) + " does not fit " + describe(ctx.dtype(0), x));
  }
  if (block * block > kMaxElements / x[1]) return ctx.invalid("the result would be too large");
  std::vector<ir::Axis> axes = axes_for({x[0], x[1] * block * block, x[2] / block, x[3] / block});
  const Exprs v = vars_of(axes);
  const std::string mode = ctx.string_attr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return ctx.invalid("unknown mode '" + mode + "'");
  const bool dcr = mode == "DCR";
  const Expr within = dcr ? ir::floordiv(v[1], x[1]) : ir::floormod(v[1], block * block);
  const Expr channel = dcr ? ir::floormod(v[1], x[1]) : ir::floordiv(v[1], block * block);
  Expr body = ir::load(ctx.in(0), {v[0], channel, v[2] * Expr(block) + ir::floordiv(within, block),
                                   v[3] * Expr(block) + ir::floormod(within, block)});
  return Buffers{ctx.compute("space_to_depth", std::move(axes), std::move(body))};
}

Result<Buffers> emit_expand(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Shape wanted, ctx.constant_ints(1, "shape"));
  const auto shape = is_reasonable(wanted) ? broadcast(ctx.shape(0), wanted) : std::nullopt;
  if (!shape) {
    return ctx.invalid("cannot expand " + describe(ctx.dtype(0), ctx.shape(0)) + " to " +
                       describe(ctx.dtype(0), wanted));
  }
  if (*shape == ctx.shape(0)) return Buffers{ctx.in(0)};
  std::vector<ir::Axis> axes = axes_for(*shape);
  Expr body = broadcast_read(ctx.in(0), vars_of(axes));
  return Buffers{ctx.compute("expand", std::move(axes), std::move(body))};
}

Result<Buffers> emit_tile(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, ctx.constant_ints(1, "repeats"));
  const Shape& x = ctx.shape(0);
  if (repeats.size() != x.size()) return ctx.invalid("repeats does not have one number per dimension");
  Shape shape = x;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d] < 0 || repeats[d] > kMaxElements / std::max<int64_t>(x[d], 1)) {
      return ctx.invalid("repeats are out of range");
    }
    shape[d] *= repeats[d];
  }
  if (!is_reasonable(shape)) return ctx.invalid("the result would be too large");
  std::vector<ir::Axis> axes = axes_for(shape);
  Exprs source = vars_of(axes);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (x[d] == 1) {
      source[d] = 0;
    } else if (repeats[d] != 1 && x[d] != 0) {
      source[d] = ir::floormod(source[d], x[d]);
    }
  }
  return Buffers{ctx.compute("tile", std::move(axes), ir::load(ctx.in(0), source))};
}

// The first lengths[b] elements of each sequence are reversed; the rest is kept.
Result<Buffers> emit_reverse_sequence(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const int64_t batch_axis = ctx.int_attr("batch_axis", 1);
  const int64_t time_axis = ctx.int_attr("time_axis", 0);
  if (x.size() < 2 || (batch_axis != 0 && batch_axis != 1) || time_axis != 1 - batch_axis) {
    return ctx.invalid("batch_axis and time_axis must be 0 and 1 in some order");
  }
  if (ctx.shape(1) != Shape{x[batch_axis]})
    return ctx.invalid("sequence_lens must have one length per sequence");
  std::vector<ir::Axis> axes = axes_for(x);
  Exprs source = vars_of(axes);
  // Clamped, since an invalid length at run time must not read out of range.
  const Expr length = ir::min(ir::max(ir::load(ctx.in(1), {source[batch_axis]}), 0), x[time_axis]);
  source[time_axis] =
      ir::select(source[time_axis] < length, length - 1 - source[time_axis], source[time_axis]);
  return Buffers{ctx.compute("reverse_sequence", std::move(axes), ir::load(ctx.in(0), source))};
}

// Keeps the triangle on one side of the diagonal k.
Result<Buffers> emit_trilu(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  if (x.size() < 2) return ctx.invalid("data must have rank 2 or more");
  int64_t diagonal = 0;
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> k, ctx.constant_ints(1, "k"));
    if (k.size() != 1) return ctx.invalid("input 1 (k) must be one number");
    diagonal = std::clamp(k[0], -kMaxElements, kMaxElements);
  }
  const bool upper = ctx.int_attr("upper", 1) != 0;
  std::vector<ir::Axis> axes = axes_for(x);
  const Exprs vars = vars_of(axes);
  const Expr offset = vars[x.size() - 1] - vars[x.size() - 2];
  const Expr keep = upper ? offset >= Expr(diagonal) : offset <= Expr(diagonal);
  Expr body = ir::select(keep, ir::load(ctx.in(0), vars), ir::make_const(ctx.dtype(0), 0));
  return Buffers{ctx.compute("trilu", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> transpose_operators() {
  static const OpEntry kEntries[] = {
      {"DepthToSpace", "a:T", emit_depth_to_space, kMovesElements},
      {"Expand", "a:TL", emit_expand, kMovesElements | kMayReturnInput},
      {"ReverseSequence", "a:TL", emit_reverse_sequence, kMovesElements},
      {"SpaceToDepth", "a:T", emit_space_to_depth, kMovesElements},
      {"Tile", "a:TL", emit_tile, kMovesElements | kMayReturnInput, 6},
      {"Transpose", "a:T", emit_transpose, kMovesElements | kMayReturnInput},
      {"Trilu", "a:Tl", emit_trilu, kPicksElements},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
