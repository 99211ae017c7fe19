// Reads and writes at indices that are data: Gather*, Scatter* (in gather form), OneHot. Indices
// that are out of range at run time are clamped (reads) or ignored (writes), so that they cannot
// access memory out of range.
#include <algorithm>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::Expr;

// out[a..., i..., b...] = x[a..., indices[i...], b...]
Result<Buffers> emit_gather(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), x.size()));
  if (x[axis] == 0) return ctx.invalid("the gathered dimension is empty");
  Shape shape(x.begin(), x.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), x.begin() + axis + 1, x.end());
  if (!is_reasonable(shape)) return ctx.invalid("the result would be too large");
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  const auto middle = std::span(vars).subspan(axis, indices.size());
  Exprs source(vars.begin(), vars.begin() + axis);
  source.push_back(wrap_index(operand(ctx, 1, middle), x[axis]));
  source.insert(source.end(), vars.begin() + axis + indices.size(), vars.end());
  return Buffers{ctx.compute("gather", std::move(axes), ir::load(ctx.in(0), source))};
}

Result<Buffers> emit_gather_elements(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), x.size()));
  if (indices.size() != x.size()) return ctx.invalid("data and indices differ in rank");
  for (size_t d = 0; d < x.size(); ++d) {
    if (d != axis ? indices[d] > x[d] : x[d] == 0) return ctx.invalid("indices do not fit the data");
  }
  std::vector<ir::Axis> axes = axes_for(indices);
  Exprs source = vars_of(axes);
  source[axis] = wrap_index(ir::load(ctx.in(1), source), x[axis]);
  return Buffers{ctx.compute("gather_elements", std::move(axes), ir::load(ctx.in(0), source))};
}

Result<Buffers> emit_gather_nd(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  const int64_t batch_dims = ctx.int_attr("batch_dims", 0);
  if (indices.empty() || batch_dims < 0 || batch_dims >= std::ssize(indices) ||
      batch_dims >= std::max<int64_t>(x.size(), 1)) {
    return ctx.invalid("batch_dims " + std::to_string(batch_dims) + " does not fit the ranks");
  }
  const int64_t depth = indices.back();
  if (depth < 1 || batch_dims + depth > std::ssize(x) ||
      !std::equal(x.begin(), x.begin() + batch_dims, indices.begin())) {
    return ctx.invalid("indices " + describe(ctx.dtype(1), indices) + " do not fit the data " +
                       describe(ctx.dtype(0), x));
  }
  const int64_t covered = batch_dims + depth;
  for (int64_t d = batch_dims; d < covered; ++d) {
    if (x[d] == 0) return ctx.invalid("a gathered dimension is empty");
  }
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), x.begin() + covered, x.end());
  if (!is_reasonable(shape)) return ctx.invalid("the result would be too large");
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  const size_t outer = indices.size() - 1;
  Exprs source(vars.begin(), vars.begin() + batch_dims);
  for (int64_t q = 0; q < depth; ++q) {
    Exprs at(vars.begin(), vars.begin() + outer);
    at.push_back(q);
    source.push_back(wrap_index(ir::load(ctx.in(1), at), x[batch_dims + q]));
  }
  source.insert(source.end(), vars.begin() + outer, vars.end());
  return Buffers{ctx.compute("gather_nd", std::move(axes), ir::load(ctx.in(0), source))};
}

// Converts an index from data, where negative ones count from the end; does not clamp it.
Expr signed_index(const Expr& index, int64_t extent) {
  const Expr wide = index.dtype() == ir::DType::kI64 ? index : ir::cast(ir::DType::kI64, index);
  return ir::select(wide < 0, wide + Expr(extent), wide);
}

struct Updates {
  std::vector<ir::Axis> reduce;
  Expr matches;   // whether this update applies to the output element
  Expr position;  // position of the update, in order of application
  Expr value;
};

// Several updates may apply to an element: "none" keeps the last one, the others combine all with
// the element. last(position) reads the update at a position.
Result<Buffers> emit_scatter(OpContext& ctx, const std::function<Updates(std::span<const Expr>)>& updates,
                             const std::function<Expr(std::span<const Expr>, const Expr&)>& last) {
  const std::string reduction = ctx.string_attr("reduction", "none");
  const ir::DType dtype = ctx.dtype(0);
  const Shape& x = ctx.shape(0);
  std::vector<ir::Axis> axes = axes_for(x);
  const Exprs vars = vars_of(axes);
  Updates u = updates(vars);
  std::vector<ir::Axis> out = axes_for(x);
  const Exprs at = vars_of(out);
  const Expr old = ir::load(ctx.in(0), at);
  if (reduction == "none") {
    const ir::Buffer which = ctx.reduce("scatter_last", std::move(axes), std::move(u.reduce), Combiner::kMax,
                                        ir::select(u.matches, u.position, -1));
    const Expr position = ir::load(which, at);
    Expr body = ir::select(position >= 0, last(at, ir::max(position, 0)), old);
    return Buffers{ctx.compute("scatter", std::move(out), std::move(body))};
  }
  if (dtype == ir::DType::kBool) return ctx.unsupported("reduction of bool data");
  Combiner combiner = Combiner::kSum;
  if (reduction == "mul") {
    combiner = Combiner::kProd;
  } else if (reduction == "max") {
    combiner = Combiner::kMax;
  } else if (reduction == "min") {
    combiner = Combiner::kMin;
  } else if (reduction != "add") {
    return ctx.invalid("unknown reduction '" + reduction + "'");
  }
  const ir::Buffer total = ctx.reduce("scatter_" + reduction, std::move(axes), std::move(u.reduce), combiner,
                                      ir::select(u.matches, u.value, ir::identity_of(combiner, dtype)));
  Expr body = ir::combine(combiner, old, ir::load(total, at));
  return Buffers{ctx.compute("scatter", std::move(out), std::move(body))};
}

// Returns the first parameters of both scatter routines; nothing for a reduction that they do not have.
std::optional<std::vector<int64_t>> scatter_parameters(OpContext& ctx) {
  constexpr std::string_view kReductions[] = {"none", "add", "mul", "min",
                                              "max"};  // runtime::ScatterReduction
  const auto* found = std::ranges::find(kReductions, ctx.string_attr("reduction", "none"));
  if (found == std::end(kReductions)) return std::nullopt;
  const int64_t reduction = found - std::begin(kReductions);
  if (ctx.dtype(0) == ir::DType::kBool && reduction != 0) return std::nullopt;
  return std::vector<int64_t>{static_cast<int64_t>(ctx.dtype(0)), ctx.dtype(1) == ir::DType::kI64 ? 1 : 0,
                              reduction};
}

Result<std::optional<RoutineUse>> route_scatter_elements(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  if (indices.size() != x.size() || ctx.shape(2) != indices || product(indices) == 0)
    return std::optional<RoutineUse>();
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), x.size()));
  auto parameters = scatter_parameters(ctx);
  if (!parameters || indices[axis] <= kShortLoop) return std::optional<RoutineUse>();
  for (size_t d = 0; d < x.size(); ++d)
    if (d != axis && indices[d] > x[d]) return std::optional<RoutineUse>();
  parameters->insert(parameters->end(), {static_cast<int64_t>(axis), std::ssize(x)});
  parameters->insert(parameters->end(), x.begin(), x.end());
  parameters->insert(parameters->end(), indices.begin(), indices.end());
  return std::optional(
      RoutineUse{{std::string(runtime::kScatterElements.name), *std::move(parameters)}, {0, 1, 2}, {0}});
}

Result<std::optional<RoutineUse>> route_scatter_nd(OpContext& ctx) {
  const std::span<const int64_t> x(ctx.shape(0)), indices(ctx.shape(1));
  if (indices.empty() || indices.back() < 1 || indices.back() > std::ssize(x))
    return std::optional<RoutineUse>();
  const int64_t updates = product(indices.first(indices.size() - 1));
  auto parameters = scatter_parameters(ctx);
  if (!parameters || updates <= kShortLoop) return std::optional<RoutineUse>();
  const auto extents = x.first(indices.back()), row = x.subspan(indices.back());
  if (product(ctx.shape(2)) != updates * product(row)) return std::optional<RoutineUse>();
  parameters->insert(parameters->end(), {updates, product(row)});
  parameters->insert(parameters->end(), extents.begin(), extents.end());
  return std::optional(
      RoutineUse{{std::string(runtime::kScatterRows.name), *std::move(parameters)}, {0, 1, 2}, {0}});
}

Result<Buffers> emit_scatter_elements(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  if (indices.size() != x.size() || ctx.shape(2) != indices) {
    return ctx.invalid("data, indices and updates must have one rank, indices and updates one shape");
  }
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), x.size()));
  for (size_t d = 0; d < x.size(); ++d) {
    if (d != axis && indices[d] > x[d]) return ctx.invalid("indices do not fit the data");
  }
  if (product(indices) == 0) return Buffers{ctx.in(0)};
  const auto updates = [&](std::span<const Expr> vars) {
    Updates u;
    u.reduce.push_back({ir::Var("r"), indices[axis]});
    Exprs source(vars.begin(), vars.end());
    source[axis] = u.reduce[0].var;
    u.matches = signed_index(ir::load(ctx.in(1), source), x[axis]) == vars[axis];
    u.value = ir::load(ctx.in(2), source);
    u.position = u.reduce[0].var;
    // Where there are no updates, nothing may be read.
    for (size_t d = 0; d < x.size(); ++d) {
      if (d != axis && indices[d] < x[d]) {
        u.matches = ir::select(vars[d] < Expr(indices[d]), u.matches, ir::bool_imm(false));
      }
    }
    return u;
  };
  const auto last = [&](std::span<const Expr> vars, const Expr& position) {
    Exprs source(vars.begin(), vars.end());
    for (size_t d = 0; d < x.size(); ++d) {
      if (indices[d] < x[d]) source[d] = ir::min(source[d], indices[d] - 1);
    }
    source[axis] = ir::min(position, indices[axis] - 1);
    return ir::load(ctx.in(2), source);
  };
  return emit_scatter(ctx, updates, last);
}

Result<Buffers> emit_scatter_nd(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& indices = ctx.shape(1);
  if (indices.empty() || indices.back() < 1 || indices.back() > std::ssize(x)) {
    return ctx.invalid("indices " + describe(ctx.dtype(1), indices) + " do not fit the data " +
                       describe(ctx.dtype(0), x));
  }
  const int64_t depth = indices.back();
  const Shape tuples(indices.begin(), indices.end() - 1);
  Shape expected = tuples;
  expected.insert(expected.end(), x.begin() + depth, x.end());
  if (ctx.shape(2) != expected) {
    return ctx.invalid("updates have shape " + describe(ctx.dtype(2), ctx.shape(2)) + " instead of " +
                       describe(ctx.dtype(2), expected));
  }
  if (product(tuples) == 0) return Buffers{ctx.in(0)};
  const auto updates = [&](std::span<const Expr> vars) {
    Updates u;
    u.reduce = axes_for(tuples, "r");
    if (u.reduce.empty()) u.reduce.push_back({ir::Var("r"), 1});
    Exprs tuple = vars_of(u.reduce);
    if (tuples.empty()) tuple.clear();
    u.position = linear_index(tuples, tuple);
    u.matches = ir::bool_imm(true);
    for (int64_t q = 0; q < depth; ++q) {
      Exprs at = tuple;
      at.push_back(q);
      u.matches = u.matches && signed_index(ir::load(ctx.in(1), at), x[q]) == vars[q];
    }
    Exprs source = tuple;
    source.insert(source.end(), vars.begin() + depth, vars.end());
    u.value = ir::load(ctx.in(2), source);
    return u;
  };
  const auto last = [&](std::span<const Expr> vars, const Expr& position) {
    const Exprs linear = {ir::min(position, product(tuples) - 1)};
    Exprs source = reshape_indices(tuples, {product(tuples)}, linear);
    source.insert(source.end(), vars.begin() + depth, vars.end());
    return ir::load(ctx.in(2), source);
  };
  return emit_scatter(ctx, updates, last);
}

// Inputs: indices, depth (constant), values [off, on].
Result<Buffers> emit_one_hot(OpContext& ctx) {
  const lower::Tensor* depth_tensor = ctx.constant(1);
  if (depth_tensor == nullptr) {
    return ctx.unsupported("input 1 (depth) must be constant; it is only known at run time");
  }
  if (depth_tensor->num_elements() != 1 || ctx.shape(2) != Shape{2}) {
    return ctx.invalid("depth must be a scalar and values a pair");
  }
  const ir::Scalar scalar = depth_tensor->at(0);
  const int64_t depth = ir::eval_cast(ir::DType::kI64, scalar).i;
  if (depth < 1) return ctx.invalid("depth must be positive");
  const Shape& indices = ctx.shape(0);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", -1), indices.size() + 1));
  Shape shape = indices;
  shape.insert(shape.begin() + axis, depth);
  if (!is_reasonable(shape)) return ctx.invalid("the result would be too large");
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  Exprs at = vars;
  at.erase(at.begin() + axis);
  Expr body = ir::select(signed_index(ir::load(ctx.in(0), at), depth) == vars[axis],
                         ir::load(ctx.in(2), {Expr(1)}), ir::load(ctx.in(2), {Expr(0)}));
  return Buffers{ctx.compute("one_hot", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> gather_operators() {
  static const OpEntry kEntries[] = {
      {"Gather", "a:TI", emit_gather, kMovesElements},
      {"GatherElements", "a:TI", emit_gather_elements, kMovesElements},
      {"GatherND", "a:TL", emit_gather_nd, kMovesElements},
      {"OneHot", "a:NNT", emit_one_hot},
      {"Scatter", "a:TIT", emit_scatter_elements, 0, 1, route_scatter_elements},
      {"ScatterElements", "a:TIT", emit_scatter_elements, 0, 1, route_scatter_elements},
      {"ScatterND", "a:TLT", emit_scatter_nd, 0, 1, route_scatter_nd},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
