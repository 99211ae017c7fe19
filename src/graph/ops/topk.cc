// TopK: a routine selects; the definition counts for each element how many precede it.
#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;

// NaN is the largest value, as when NumPy sorts.
Expr is_nan(const Expr& x) {
  return ir::is_float(x.dtype()) ? ir::call(ir::Intrinsic::kIsNan, {x}) : ir::bool_imm(false);
}
Expr greater(const Expr& a, const Expr& b) { return a > b || (is_nan(a) && !is_nan(b)); }
Expr same(const Expr& a, const Expr& b) { return a == b || (is_nan(a) && is_nan(b)); }

struct Selected {
  size_t axis = 0;
  int64_t k = 0;
  bool largest = true;
};

Result<Selected> read_selected(OpContext& ctx) {
  Selected s;
  TS_ASSIGN_OR_RETURN(s.axis, ctx.normalize_axis(ctx.int_attr("axis", -1), ctx.rank(0)));
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> values, ctx.constant_ints(1, "k"));
    if (values.size() != 1) return ctx.invalid("input 1 (k) must be one number");
    s.k = values[0];
  } else {
    s.k = ctx.int_attr("k", -1);
  }
  const int64_t extent = ctx.shape(0)[s.axis];
  if (s.k < 0 || s.k > extent)
    return ctx.invalid("k is " + std::to_string(s.k) + " for an extent of " + std::to_string(extent));
  s.largest = ctx.int_attr("largest", 1) != 0;
  return s;
}

Result<std::optional<RoutineUse>> route_topk(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Selected s, read_selected(ctx));
  const std::span<const int64_t> x(ctx.shape(0));
  const int64_t extent = x[s.axis];
  if (extent <= kShortLoop || extent > INT32_MAX) return std::optional<RoutineUse>();
  RoutineUse use;
  int64_t wanted = 0;  // 1: the values, 2: the indices
  for (const size_t o : {size_t{0}, size_t{1}}) {
    if (!ctx.wants_output(o)) continue;
    use.outputs.push_back(o);
    wanted |= int64_t{1} << o;
  }
  use.inputs = {0};
  use.call = {std::string(runtime::kTopK.name),
              {static_cast<int64_t>(ctx.dtype(0)), product(x.first(s.axis)), extent,
               product(x.subspan(s.axis + 1)), s.k, s.largest ? 1 : 0, wanted}};
  return std::optional(std::move(use));
}

Result<Buffers> emit_topk(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Selected selected, read_selected(ctx));
  const Shape& x = ctx.shape(0);
  const size_t axis = selected.axis;
  const int64_t k = selected.k, extent = x[axis];
  const bool largest = selected.largest;
  // Among equal elements, the first precedes the others.
  std::vector<ir::Axis> spatial = axes_for(x);
  std::vector<ir::Axis> others = {{ir::Var("r"), extent}};
  const Exprs own = vars_of(spatial);
  Exprs other = own;
  other[axis] = others[0].var;
  const Expr a = ir::load(ctx.in(0), other);
  const Expr b = ir::load(ctx.in(0), own);
  const Expr before = (largest ? greater(a, b) : greater(b, a)) || (same(a, b) && other[axis] < own[axis]);
  const ir::Buffer rank = ctx.reduce("rank", std::move(spatial), std::move(others), Combiner::kSum,
                                     ir::cast(DType::kI64, before));
  // Selects the element whose rank is the output's position.
  Shape shape = x;
  shape[axis] = k;
  std::vector<ir::Axis> out = axes_for(shape);
  std::vector<ir::Axis> candidates = {{ir::Var("r"), extent}};
  Exprs at = vars_of(out);
  const Expr position = at[axis];
  at[axis] = candidates[0].var;
  const ir::Buffer index = ctx.reduce("topk_index", std::move(out), std::move(candidates), Combiner::kMax,
                                      ir::select(ir::load(rank, at) == position, at[axis], Expr(0)));
  std::vector<ir::Axis> axes = axes_for(shape);
  Exprs source = vars_of(axes);
  source[axis] = wrap_index(ir::load(index, source), extent);
  return Buffers{ctx.compute("topk", std::move(axes), ir::load(ctx.in(0), source)), index};
}

}  // namespace

std::span<const OpEntry> topk_operators() {
  static const OpEntry kEntries[] = {{"TopK", "n:Tl", emit_topk, kPicksElements, 1, route_topk}};
  return kEntries;
}

}  // namespace tensorsmith::graph
