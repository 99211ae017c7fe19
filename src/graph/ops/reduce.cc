// Reduce*, ArgMax, ArgMin, CumSum, CumProd.
#include <algorithm>
#include <numeric>

#include "graph/ops/reduction.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

using ir::Combiner;
using ir::Expr;
using ir::Intrinsic;

ir::Buffer reduce_dims(OpContext& ctx, const std::string& name, const Shape& shape,
                       std::span<const size_t> dims, bool keep_dims, Combiner combiner,
                       const std::function<Expr(std::span<const Expr>)>& value, bool widen) {
  std::vector<ir::Axis> spatial;
  std::vector<ir::Axis> reduce;
  Exprs indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      spatial.push_back({ir::Var("i" + std::to_string(d)), shape[d]});
      indices.push_back(spatial.back().var);
    } else {
      if (keep_dims) spatial.push_back({ir::Var("i" + std::to_string(d)), 1});
      indices.push_back(add_reduce_axis(reduce, "r" + std::to_string(d), shape[d]));
    }
  }
  Expr body = value(indices);
  if (combiner == Combiner::kSum && !reduce.empty() && widen)
    return reduce_sum(ctx, name, std::move(spatial), std::move(reduce), std::move(body));
  const Combiner used = reduce.empty() ? Combiner::kNone : combiner;
  return ctx.reduce(name, std::move(spatial), std::move(reduce), used, std::move(body));
}

ir::Buffer reduce_sum(OpContext& ctx, const std::string& name, std::vector<ir::Axis> spatial,
                      std::vector<ir::Axis> reduce, Expr body) {
  double count = 1;
  for (const ir::Axis& axis : reduce) count *= axis.extent;
  if (body.dtype() != ir::DType::kF32 || count <= kLongSum)
    return ctx.reduce(name, std::move(spatial), std::move(reduce), Combiner::kSum, std::move(body));
  const ir::Buffer sum = ctx.reduce(name, std::move(spatial), std::move(reduce), Combiner::kSum,
                                    ir::cast(ir::DType::kF64, body));
  std::vector<ir::Axis> axes = axes_for(sum->shape);
  Expr rounded = ir::cast(ir::DType::kF32, ir::load(sum, vars_of(axes)));
  return ctx.compute(name + "_f32", std::move(axes), std::move(rounded));
}

Expr read_reduced(const ir::Buffer& reduced, std::span<const Expr> indices) {
  return broadcast_read(reduced, indices);
}

namespace {

struct ReduceSpec {
  std::vector<size_t> dims;
  bool keep_dims = true;
  bool identity = false;  // no axes and noop_with_empty_axes: each element is reduced by itself
};

// Axes are an attribute in older opsets and an input in newer ones.
Result<ReduceSpec> read_reduce(OpContext& ctx) {
  ReduceSpec spec;
  spec.keep_dims = ctx.int_attr("keepdims", 1) != 0;
  std::vector<int64_t> axes;
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(axes, ctx.constant_ints(1, "axes"));
  } else if (auto attr = ctx.ints_attr("axes")) {
    axes = *std::move(attr);
  }
  if (axes.empty()) {
    spec.identity = ctx.int_attr("noop_with_empty_axes", 0) != 0;
    if (spec.identity) return spec;
    spec.dims.resize(ctx.rank(0));
    std::iota(spec.dims.begin(), spec.dims.end(), size_t{0});
    return spec;
  }
  TS_ASSIGN_OR_RETURN(spec.dims, ctx.normalize_axes(axes, ctx.rank(0)));
  return spec;
}

ir::Buffer simple(OpContext& ctx, const std::string& name, const ReduceSpec& spec, Combiner combiner,
                  const std::function<Expr(Expr)>& f = nullptr) {
  return reduce_dims(ctx, name, ctx.shape(0), spec.dims, spec.keep_dims, combiner,
                     [&](std::span<const Expr> indices) {
                       Expr x = ir::load(ctx.in(0), Exprs(indices.begin(), indices.end()));
                       return f ? f(x) : x;
                     });
}

Expr square(const Expr& x) { return wrapping(ir::BinaryOp::kMul, x, x); }
Expr magnitude(const Expr& x) {
  if (ir::is_float(x.dtype())) return ir::call(Intrinsic::kAbs, {x});
  return ir::select(x < ir::make_const(x.dtype(), 0), negated(x), x);
}
// Square root and logarithm of an integer are truncated.
Expr via_float(Intrinsic intrinsic, const Expr& x) {
  if (ir::is_float(x.dtype())) return ir::call(intrinsic, {x});
  return ir::cast(x.dtype(), ir::call(intrinsic, {ir::cast(ir::DType::kF64, x)}));
}

template <Combiner C>
Result<Buffers> emit_reduce(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ReduceSpec spec, read_reduce(ctx));
  if (spec.identity) return Buffers{ctx.in(0)};
  if (ctx.dtype(0) == ir::DType::kBool) {
    // Logical or and and, as the maximum or minimum of 0 and 1.
    const ir::Buffer best = simple(ctx, "reduce_" + std::string(ir::to_string(C)), spec, C,
                                   [](const Expr& x) { return ir::cast(ir::DType::kU8, x); });
    return Buffers{map_elements(ctx, "is_set", best,
                                [](const Expr& x) { return x != ir::make_const(ir::DType::kU8, 0); })};
  }
  return Buffers{simple(ctx, "reduce_" + std::string(ir::to_string(C)), spec, C)};
}

Result<Buffers> emit_mean(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ReduceSpec spec, read_reduce(ctx));
  if (spec.identity) return Buffers{ctx.in(0)};
  int64_t count = 1;
  for (size_t d : spec.dims) count *= ctx.shape(0)[d];
  const ir::Buffer sum = simple(ctx, "reduce_sum", spec, Combiner::kSum);
  return Buffers{map_elements(ctx, "mean", sum,
                              [count](const Expr& x) { return x / ir::make_const(x.dtype(), count); })};
}

Result<Buffers> emit_l1(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ReduceSpec spec, read_reduce(ctx));
  return Buffers{simple(ctx, "reduce_l1", spec, Combiner::kSum, magnitude)};
}

Result<Buffers> emit_l2(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ReduceSpec spec, read_reduce(ctx));
  const ir::Buffer sum = simple(ctx, "reduce_sum_square", spec, Combiner::kSum, square);
  return Buffers{
      map_elements(ctx, "sqrt", sum, [](const Expr& x) { return via_float(Intrinsic::kSqrt, x); })};
}

Result<Buffers> emit_sum_square(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ReduceSpec spec, read_reduce(ctx));
  return Buffers{simple(ctx, "reduce_sum_square", spec, Combiner::kSum, square)};
}

Result<Buffers> emit_log_sum(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ReduceSpec spec, read_reduce(ctx));
  const ir::Buffer sum = simple(ctx, "reduce_sum", spec, Combiner::kSum);
  return Buffers{map_elements(ctx, "log", sum, [](const Expr& x) { return via_float(Intrinsic::kLog, x); })};
}

// m + log(sum(exp(x - m))), where m is the maximum, or 0 if that is infinite or NaN.
Result<Buffers> emit_log_sum_exp(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ReduceSpec spec, read_reduce(ctx));
  if (spec.identity) return Buffers{ctx.in(0)};
  if (!ir::is_float(ctx.dtype(0))) return ctx.unsupported("integer data");
  ReduceSpec kept = spec;
  kept.keep_dims = true;
  const ir::Buffer largest = simple(ctx, "reduce_max", kept, Combiner::kMax);
  const ir::Buffer best = map_elements(ctx, "shift", largest, [](const Expr& x) {
    const Expr zero = ir::make_const(x.dtype(), 0);
    return ir::select(x - x == zero, x, zero);
  });
  const ir::Buffer sum = reduce_dims(
      ctx, "exp_sum", ctx.shape(0), spec.dims, true, Combiner::kSum, [&](std::span<const Expr> indices) {
        const Expr x = ir::load(ctx.in(0), Exprs(indices.begin(), indices.end()));
        return ir::call(Intrinsic::kExp, {x - read_reduced(best, indices)});
      });
  std::vector<ir::Axis> axes;
  Exprs indices;
  for (size_t d = 0; d < ctx.rank(0); ++d) {
    const bool reduced = std::find(spec.dims.begin(), spec.dims.end(), d) != spec.dims.end();
    if (!reduced || spec.keep_dims) {
      axes.push_back({ir::Var("i" + std::to_string(d)), reduced ? 1 : ctx.shape(0)[d]});
    }
    indices.push_back(reduced ? Expr(0) : Expr(axes.back().var));
  }
  Expr body = ir::call(Intrinsic::kLog, {ir::load(sum, indices)}) + ir::load(best, indices);
  return Buffers{ctx.compute("log_sum_exp", std::move(axes), std::move(body))};
}

template <Combiner C>
Result<Buffers> emit_arg(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), ctx.rank(0)));
  const bool keep_dims = ctx.int_attr("keepdims", 1) != 0;
  const bool last = ctx.int_attr("select_last_index", 0) != 0;
  const int64_t extent = ctx.shape(0)[axis];
  if (extent == 0) return ctx.invalid("the reduced dimension is empty");
  std::vector<ir::Axis> spatial;
  Exprs indices;
  // The first of equal values is chosen; reading backwards makes that the last.
  std::vector<ir::Axis> reduce = {{ir::Var("r"), extent}};
  const Expr r = reduce[0].var;
  for (size_t d = 0; d < ctx.rank(0); ++d) {
    if (d != axis || keep_dims) {
      spatial.push_back({ir::Var("i" + std::to_string(d)), d == axis ? 1 : ctx.shape(0)[d]});
    }
    indices.push_back(d == axis ? (last ? Expr(extent - 1) - r : r) : Expr(spatial.back().var));
  }
  const Expr value = ir::load(ctx.in(0), indices);
  Buffers best = ctx.reduce_arg(C == Combiner::kArgMax ? "argmax" : "argmin", std::move(spatial),
                                std::move(reduce), C, value, r);
  if (!last) return Buffers{best[1]};
  return Buffers{
      map_elements(ctx, "last_index", best[1], [extent](const Expr& x) { return Expr(extent - 1) - x; })};
}

struct ScanOf {
  size_t axis = 0;
  bool exclusive = false, reverse = false;
};

Result<ScanOf> read_scan(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ctx.constant_ints(1, "axis"));
  if (axes.size() != 1) return ctx.invalid("input 1 (axis) must be one number");
  ScanOf scan;
  TS_ASSIGN_OR_RETURN(scan.axis, ctx.normalize_axis(axes[0], ctx.rank(0)));
  scan.exclusive = ctx.int_attr("exclusive", 0) != 0;
  scan.reverse = ctx.int_attr("reverse", 0) != 0;
  return scan;
}

template <Combiner C>
Result<std::optional<RoutineUse>> route_scan(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ScanOf scan, read_scan(ctx));
  const std::span<const int64_t> x(ctx.shape(0));
  if (x[scan.axis] <= kShortLoop) return std::optional<RoutineUse>();
  RoutineUse use{{std::string(runtime::kPrefixScan.name),
                  {static_cast<int64_t>(ctx.dtype(0)), product(x.first(scan.axis)), x[scan.axis],
                   product(x.subspan(scan.axis + 1)), C == Combiner::kProd ? 1 : 0, scan.exclusive ? 1 : 0,
                   scan.reverse ? 1 : 0}},
                 {0},
                 {0}};
  return std::optional(std::move(use));
}

// out[i] = sum or product over r <= i (or <, or from the back) of x[r].
template <Combiner C>
Result<Buffers> emit_scan(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ScanOf scan, read_scan(ctx));
  const auto [axis, exclusive, reverse] = scan;
  std::vector<ir::Axis> spatial = axes_for(ctx.shape(0));
  std::vector<ir::Axis> reduce = {{ir::Var("r"), ctx.shape(0)[axis]}};
  Exprs indices = vars_of(spatial);
  const Expr i = indices[axis];
  const Expr r = reduce[0].var;
  indices[axis] = r;
  const Expr included = reverse ? (exclusive ? r > i : r >= i) : (exclusive ? r < i : r <= i);
  constexpr bool kSums = C == Combiner::kSum;
  Expr body = ir::select(included, ir::load(ctx.in(0), indices), ir::make_const(ctx.dtype(0), kSums ? 0 : 1));
  return Buffers{
      ctx.reduce(kSums ? "cumsum" : "cumprod", std::move(spatial), std::move(reduce), C, std::move(body))};
}

}  // namespace

std::span<const OpEntry> reduce_operators() {
  static const OpEntry kEntries[] = {
      {"ArgMax", "n:T", emit_arg<Combiner::kArgMax>, kReduces},
      {"ArgMin", "n:T", emit_arg<Combiner::kArgMin>, kReduces},
      {"CumProd", "n:TI", emit_scan<Combiner::kProd>, 0, 1, route_scan<Combiner::kProd>},
      {"CumSum", "n:TI", emit_scan<Combiner::kSum>, 0, 1, route_scan<Combiner::kSum>},
      {"ReduceL1", "n:Tl", emit_l1, kReduces | kMayReturnInput},
      {"ReduceL2", "n:Tl", emit_l2, kReduces | kMayReturnInput},
      {"ReduceLogSum", "n:Tl", emit_log_sum, kReduces | kMayReturnInput},
      {"ReduceLogSumExp", "n:Tl", emit_log_sum_exp, kReduces | kMayReturnInput},
      {"ReduceMax", "o:Tl", emit_reduce<Combiner::kMax>, kReduces | kPicksElements | kMayReturnInput},
      {"ReduceMean", "n:Tl", emit_mean, kReduces | kMayReturnInput},
      {"ReduceMin", "o:Tl", emit_reduce<Combiner::kMin>, kReduces | kPicksElements | kMayReturnInput},
      {"ReduceProd", "n:Tl", emit_reduce<Combiner::kProd>, kReduces | kMayReturnInput},
      {"ReduceSum", "n:Tl", emit_reduce<Combiner::kSum>, kReduces | kMayReturnInput},
      {"ReduceSumSquare", "n:Tl", emit_sum_square, kReduces | kMayReturnInput},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
