// Slice, Split, Concat.
#include <algorithm>
#include <numeric>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;

struct SliceSpec {
  std::vector<int64_t> starts, ends, axes, steps;
};

// Attributes before opset 10, inputs since then.
Result<SliceSpec> read_slice(OpContext& ctx) {
  SliceSpec spec;
  if (ctx.has(1)) {
    if (!ctx.has(2)) return ctx.invalid("input 2 (ends) is missing");
    TS_ASSIGN_OR_RETURN(spec.starts, ctx.constant_ints(1, "starts"));
    TS_ASSIGN_OR_RETURN(spec.ends, ctx.constant_ints(2, "ends"));
    if (ctx.has(3)) {
      TS_ASSIGN_OR_RETURN(spec.axes, ctx.constant_ints(3, "axes"));
    }
    if (ctx.has(4)) {
      TS_ASSIGN_OR_RETURN(spec.steps, ctx.constant_ints(4, "steps"));
    }
  } else {
    spec.starts = ctx.ints_attr("starts").value_or(std::vector<int64_t>{});
    spec.ends = ctx.ints_attr("ends").value_or(std::vector<int64_t>{});
    spec.axes = ctx.ints_attr("axes").value_or(std::vector<int64_t>{});
  }
  if (spec.axes.empty()) {
    spec.axes.resize(spec.starts.size());
    std::iota(spec.axes.begin(), spec.axes.end(), int64_t{0});
  }
  if (spec.steps.empty()) spec.steps.assign(spec.starts.size(), 1);
  if (spec.ends.size() != spec.starts.size() || spec.axes.size() != spec.starts.size() ||
      spec.steps.size() != spec.starts.size()) {
    return ctx.invalid("starts, ends, axes and steps differ in length");
  }
  return spec;
}

Result<Buffers> emit_slice(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const SliceSpec spec, read_slice(ctx));
  const Shape& x = ctx.shape(0);
  TS_ASSIGN_OR_RETURN(const std::vector<size_t> dims, ctx.normalize_axes(spec.axes, x.size()));
  Shape shape = x;
  std::vector<int64_t> first(x.size(), 0);
  std::vector<int64_t> step(x.size(), 1);
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t extent = x[dims[k]];
    const int64_t s = std::clamp(spec.steps[k], -kMaxElements, kMaxElements);
    if (s == 0) return ctx.invalid("a step is 0");
    // Values far outside (INT64_MAX for "to the end") are clamped before the extent is added.
    const auto from_end = [extent](int64_t position) {
      const int64_t p = std::clamp(position, -kMaxElements - 1, kMaxElements + 1);
      return p < 0 ? p + extent : p;
    };
    const int64_t low = s > 0 ? 0 : -1;
    const int64_t high = s > 0 ? extent : extent - 1;
    const int64_t start = std::clamp(from_end(spec.starts[k]), int64_t{0}, std::max<int64_t>(high, 0));
    const int64_t end = std::clamp(from_end(spec.ends[k]), low, std::max(high, low));
    const int64_t distance = s > 0 ? end - start : start - end;
    shape[dims[k]] = extent == 0 || distance <= 0 ? 0 : (distance + std::abs(s) - 1) / std::abs(s);
    first[dims[k]] = start;
    step[dims[k]] = s;
  }
  if (shape == x && std::all_of(step.begin(), step.end(), [](int64_t s) { return s == 1; })) {
    return Buffers{ctx.in(0)};
  }
  std::vector<ir::Axis> axes = axes_for(shape);
  Exprs source = vars_of(axes);
  for (size_t d = 0; d < source.size(); ++d) {
    source[d] = shape[d] == 1 ? Expr(first[d]) : source[d] * Expr(step[d]) + Expr(first[d]);
  }
  return Buffers{ctx.compute("slice", std::move(axes), ir::load(ctx.in(0), source))};
}

Result<Buffers> emit_split(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), x.size()));
  const size_t outputs = ctx.node().outputs.size();
  std::vector<int64_t> parts;
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(parts, ctx.constant_ints(1, "split"));
  } else if (auto attr = ctx.ints_attr("split")) {
    parts = *std::move(attr);
  } else {
    const auto count = ctx.int_attr("num_outputs", outputs);
    if (std::cmp_not_equal(count, outputs) || count < 1) {
      return ctx.invalid("num_outputs is " + std::to_string(count) + " but the node has " +
                         std::to_string(outputs) + " outputs");
    }
    if (!ctx.has_attr("num_outputs") && x[axis] % count != 0) {
      return ctx.invalid("cannot split an extent of " + std::to_string(x[axis]) + " into " +
                         std::to_string(count) + " equal parts");
    }
    // Opset 18: the last part is smaller if the number of parts does not divide the extent.
    const int64_t part = (x[axis] + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) parts.push_back(std::clamp(x[axis] - i * part, int64_t{0}, part));
  }
  int64_t total = 0;
  for (int64_t part : parts) {
    if (part < 0 || part > x[axis]) return ctx.invalid("a part is out of range");
    total += part;
    if (total > x[axis]) break;
  }
  if (total != x[axis] || parts.size() < outputs) {
    return ctx.invalid("the parts do not add up to the extent " + std::to_string(x[axis]) +
                       " or are fewer than the outputs");
  }
  Buffers results;
  int64_t offset = 0;
  for (size_t i = 0; i < outputs; ++i) {
    Shape shape = x;
    shape[axis] = parts[i];
    std::vector<ir::Axis> axes = axes_for(shape);
    Exprs source = vars_of(axes);
    source[axis] = source[axis] + Expr(offset);
    offset += parts[i];
    results.push_back(shape == x ? ctx.in(0)
                                 : ctx.compute("split", std::move(axes), ir::load(ctx.in(0), source)));
  }
  return results;
}

Result<Buffers> emit_concat(OpContext& ctx) {
  if (ctx.num_inputs() == 1) return Buffers{ctx.in(0)};
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 1), ctx.rank(0)));
  Shape shape = ctx.shape(0);
  for (size_t i = 1; i < ctx.num_inputs(); ++i) {
    Shape other = ctx.shape(i);
    const bool same_rank = other.size() == shape.size();
    const int64_t extent = same_rank ? other[axis] : 0;
    if (same_rank) other[axis] = shape[axis];
    if (other != shape || shape[axis] + extent > kMaxElements) {
      return ctx.invalid("input " + std::to_string(i) + " " + describe(ctx.dtype(i), ctx.shape(i)) +
                         " does not fit input 0 " + describe(ctx.dtype(0), ctx.shape(0)));
    }
    shape[axis] += extent;
  }
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  // Built from the last input back: select(i < end_0, in_0[i], select(i < end_1, in_1[i - end_0],
  // ...)).
  int64_t end = shape[axis];
  Expr body;
  for (size_t i = ctx.num_inputs(); i-- > 0;) {
    const int64_t extent = ctx.shape(i)[axis];
    if (extent == 0 && (i > 0 || body.defined())) continue;
    const int64_t begin = end - extent;
    Exprs source = vars;
    source[axis] = source[axis] - Expr(begin);
    const Expr read = ir::load(ctx.in(i), source);
    body = body.defined() ? ir::select(vars[axis] < Expr(end), read, body) : read;
    end = begin;
  }
  return Buffers{ctx.compute("concat", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> slice_operators() {
  static const OpEntry kEntries[] = {
      {"Concat", "a:T*", emit_concat, kMayReturnInput},
      {"Slice", "a:Tuuuu", emit_slice, kMovesElements | kMayReturnInput},
      {"Split", "a:Tl", emit_split, kMovesElements | kMayReturnInput},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
