// Operators whose result's shape depends on the data at run time: the result has its largest shape,
// with data first and padding behind, and an additional output is the number of data rows. The
// importer makes these operators (ImportOptions::bounded); models cannot contain them.
#include "graph/ops/bounded.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;

Expr one_if(const Expr& condition) { return ir::cast(DType::kI64, condition); }
Expr i64(int64_t value) { return ir::int_imm(DType::kI64, value); }

ir::Buffer sum_over(OpContext& ctx, const std::string& name, std::vector<ir::Axis> axes, int64_t extent,
                    const std::function<Expr(const Expr&)>& body) {
  std::vector<ir::Axis> reduce = {{ir::Var("r"), extent}};
  Expr e = body(reduce[0].var);
  return ctx.reduce(name, std::move(axes), std::move(reduce), Combiner::kSum, std::move(e));
}

// The indices of the flags (i64, 0 or 1) that are 1, in order and followed by -1, and their number.
struct Compacted {
  ir::Buffer order;
  ir::Buffer count;
};

// Works in blocks of sqrt(n) flags, so that n flags take n^1.5 steps: prefix sums over the blocks
// and within each block.
Compacted compact(OpContext& ctx, const ir::Buffer& flags) {
  const int64_t n = flags->shape[0];
  constexpr int64_t kOneBlock = 512;
  const int64_t size =
      n <= kOneBlock ? std::max<int64_t>(n, 1) : static_cast<int64_t>(std::ceil(std::sqrt(n)));
  const int64_t blocks = std::max<int64_t>((n + size - 1) / size, 1);
  const auto flag = [&](const Expr& i) {
    const Expr inside = ir::load(flags, {ir::min(i, i64(std::max<int64_t>(n - 1, 0)))});
    return blocks * size == n ? ir::load(flags, {i}) : ir::select(i < i64(n), inside, i64(0));
  };
  Compacted result;
  result.count = sum_over(ctx, "count", {}, n, [&](const Expr& r) { return ir::load(flags, {r}); });
  if (n == 0) {
    std::vector<ir::Axis> none = axes_for({0});
    result.order = ctx.compute("order", std::move(none), i64(-1));
    return result;
  }
  std::vector<ir::Axis> axes = axes_for({blocks}, "b");
  Expr b = axes[0].var;
  const ir::Buffer in_block =
      sum_over(ctx, "block_count", axes, size, [&](const Expr& r) { return flag(b * i64(size) + r); });
  axes = axes_for({blocks}, "b");
  b = axes[0].var;
  const ir::Buffer before = sum_over(ctx, "blocks_before", axes, blocks, [&](const Expr& r) {
    return ir::select(r < b, ir::load(in_block, {r}), i64(0));
  });
  axes = axes_for({n});
  Expr i = axes[0].var;
  const ir::Buffer within = sum_over(ctx, "place_in_block", axes, size, [&](const Expr& r) {
    return ir::select(r < ir::floormod(i, i64(size)), flag(ir::floordiv(i, i64(size)) * i64(size) + r),
                      i64(0));
  });
  axes = axes_for({n});
  i = axes[0].var;
  const ir::Buffer block = sum_over(ctx, "block", axes, blocks, [&](const Expr& r) {
    return one_if(ir::load(before, {r}) + ir::load(in_block, {r}) <= i);
  });
  axes = axes_for({n});
  i = axes[0].var;
  const ir::Buffer found = sum_over(ctx, "found", axes, size, [&](const Expr& r) {
    const Expr own = ir::load(block, {i});
    const Expr bounded = ir::min(own, i64(blocks - 1));
    const Expr place = bounded * i64(size) + r;
    const Expr safe = ir::min(place, i64(n - 1));
    const Expr rank = ir::load(before, {bounded}) + ir::load(within, {safe});
    const Expr hit = own < i64(blocks) && place < i64(n) && ir::load(flags, {safe}) == i64(1) && rank == i;
    return ir::select(hit, place + i64(1), i64(0));
  });
  result.order = map_elements(ctx, "order", found, [](const Expr& x) { return x - i64(1); });
  return result;
}

// Returns flags of the data, read in row-major order.
ir::Buffer flags_of(OpContext& ctx, const ir::Buffer& data, const std::function<Expr(Expr)>& holds) {
  std::vector<ir::Axis> axes = axes_for({data->num_elements()});
  const Exprs at = reshape_indices(data->shape, {data->num_elements()}, vars_of(axes));
  Expr body = one_if(holds(ir::load(data, at)));
  return ctx.compute("flags", std::move(axes), std::move(body));
}

Expr is_set(const Expr& x) { return x.dtype() == DType::kBool ? x : x != ir::make_const(x.dtype(), 0); }

// Outputs [rank, elements] and the number of nonzero elements.
Result<Buffers> emit_non_zero(OpContext& ctx) {
  const Shape& shape = ctx.shape(0);
  const auto rank = std::ssize(shape);
  const int64_t n = product(shape);
  const Compacted c = compact(ctx, flags_of(ctx, ctx.in(0), is_set));
  std::vector<ir::Axis> axes = axes_for({rank, n});
  const Expr place = ir::load(c.order, {axes[1].var});
  const Exprs digits = reshape_indices(shape, {n}, std::vector<Expr>{place});
  Expr body = i64(-1);
  for (int64_t d = rank; d-- > 0;) {
    const Expr digit = ir::select(place < i64(0), i64(-1), digits[d]);
    body = d == rank - 1 ? digit : ir::select(Expr(axes[0].var) == i64(d), digit, body);
  }
  return Buffers{ctx.compute("non_zero", std::move(axes), std::move(body)), c.count};
}

// Returns the slices of x along the axis at order[r]; zeros where that is -1.
ir::Buffer take(OpContext& ctx, const ir::Buffer& x, size_t axis, const ir::Buffer& order) {
  Shape shape = x->shape;
  shape[axis] = order->shape[0];
  std::vector<ir::Axis> axes = axes_for(shape);
  Exprs at = vars_of(axes);
  const Expr place = ir::load(order, {at[axis]});
  at[axis] = wrap_index(place, x->shape[axis]);
  Expr body = ir::select(place < i64(0), ir::make_const(x->dtype, 0), ir::load(x, at));
  return ctx.compute("compress", std::move(axes), std::move(body));
}

// Returns the data and the axis; without the attribute, the data is flattened to a vector.
Result<std::pair<ir::Buffer, size_t>> along_axis(OpContext& ctx) {
  if (!ctx.has_attr("axis"))
    return std::pair{reshape(ctx, "flatten", ctx.in(0), {product(ctx.shape(0))}), size_t{0}};
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), ctx.rank(0)));
  return std::pair{ctx.in(0), axis};
}

Result<Buffers> emit_compress(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const auto along, along_axis(ctx));
  const auto& [x, axis] = along;
  if (ctx.rank(1) != 1 || ctx.shape(1)[0] > x->shape[axis])
    return ctx.invalid("the condition must be a vector no longer than the data");
  const Compacted c = compact(ctx, flags_of(ctx, ctx.in(1), is_set));
  return Buffers{take(ctx, x, axis, c.order), c.count};
}

// NaN equals itself and is greater than all other values, as in a sort.
Expr equal(const Expr& a, const Expr& b) {
  return ir::is_float(a.dtype()) ? a == b || (a != a && b != b) : a == b;
}
Expr less(const Expr& a, const Expr& b) {
  if (a.dtype() == DType::kBool) return !a && b;
  return ir::is_float(a.dtype()) ? a < b || (b != b && a == a) : a < b;
}

// Outputs: the unique slices, the index of the first occurrence of each, the position of each input
// slice among them, their counts, and the number of unique slices.
Result<Buffers> emit_unique(OpContext& ctx) {
  const bool sorted = ctx.int_attr("sorted", 1) != 0;
  TS_ASSIGN_OR_RETURN(const auto along, along_axis(ctx));
  const ir::Buffer x = along.first;
  const size_t axis = along.second;
  const int64_t n = x->shape[axis];
  constexpr int64_t kMaxSlices = 8192;
  if (n > kMaxSlices || n == 0)
    return ctx.unsupported(std::to_string(n) + " slices at run time; 1 to " + std::to_string(kMaxSlices) +
                           " are supported");
  // Finds the first element in which two slices differ, in row-major order of the other dimensions.
  Shape others = x->shape;
  others[axis] = 1;
  const int64_t elements = product(others);
  if (elements == 0) return ctx.unsupported("empty slices");
  const auto element = [&](const Expr& slice, const Expr& e) {
    Exprs at = reshape_indices(others, {elements}, std::vector<Expr>{e});
    at[axis] = slice;
    return ir::load(x, at);
  };
  ir::Buffer differs;
  if (elements > 1) {
    std::vector<ir::Axis> pair = axes_for({n, n});
    std::vector<ir::Axis> reduce = {{ir::Var("r"), elements}};
    const Expr e = reduce[0].var;
    const Expr same = equal(element(pair[0].var, e), element(pair[1].var, e));
    Expr first = ir::select(same, i64(elements), e);
    differs = ctx.reduce("differs", std::move(pair), std::move(reduce), Combiner::kMin, std::move(first));
  }
  const auto is_equal = [&](const Expr& a, const Expr& b) {
    return elements > 1 ? ir::load(differs, {a, b}) == i64(elements) : equal(element(a, 0), element(b, 0));
  };
  const auto is_less = [&](const Expr& a, const Expr& b) {
    if (elements == 1) return less(element(a, 0), element(b, 0));
    const Expr at = ir::load(differs, {a, b});
    const Expr safe = ir::min(at, i64(elements - 1));
    return at < i64(elements) && less(element(a, safe), element(b, safe));
  };
  std::vector<ir::Axis> axes = axes_for({n});
  std::vector<ir::Axis> reduce = {{ir::Var("r"), n}};
  Expr i = axes[0].var;
  Expr r = reduce[0].var;
  Expr body = ir::select(is_equal(r, i), r, i64(n));
  const ir::Buffer first =
      ctx.reduce("first", std::move(axes), std::move(reduce), Combiner::kMin, std::move(body));
  axes = axes_for({n});
  i = axes[0].var;
  const ir::Buffer inverse = sum_over(ctx, "inverse", axes, n, [&](const Expr& k) {
    const Expr before = sorted ? is_less(k, i) : k < ir::load(first, {i});
    return one_if(ir::load(first, {k}) == k && before);
  });
  axes = axes_for({n});
  i = axes[0].var;
  const ir::Buffer found = sum_over(ctx, "found", axes, n, [&](const Expr& k) {
    return ir::select(ir::load(first, {k}) == k && ir::load(inverse, {k}) == i, k + i64(1), i64(0));
  });
  const ir::Buffer order = map_elements(ctx, "order", found, [](const Expr& e) { return e - i64(1); });
  axes = axes_for({n});
  i = axes[0].var;
  const ir::Buffer counts =
      sum_over(ctx, "counts", axes, n, [&](const Expr& k) { return one_if(ir::load(inverse, {k}) == i); });
  const ir::Buffer count =
      sum_over(ctx, "count", {}, n, [&](const Expr& k) { return one_if(ir::load(first, {k}) == k); });
  return Buffers{take(ctx, x, axis, order), order, inverse, counts, count};
}

// Returns the scores of boxes that may be selected; those of others are -inf.
Result<Buffers> emit_nms_scores(OpContext& ctx) {
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Expr score = ir::load(ctx.in(0), vars_of(axes));
  const Expr none = ir::make_const(ctx.dtype(0), -std::numeric_limits<double>::infinity());
  Expr body = ctx.has(1) ? ir::select(score > ir::load(ctx.in(1), Exprs(ctx.rank(1), Expr(0))), score, none)
                         : ir::select(score == score, score, none);
  return Buffers{ctx.compute("nms_scores", std::move(axes), std::move(body))};
}

// One selection: the best box of each batch and class (-1 if none is left), and the scores without
// this box and those that overlap it. Inputs: scores (batch, class, box), boxes (batch, box, 4),
// threshold.
Result<Buffers> emit_nms_step(OpContext& ctx) {
  const Shape& shape = ctx.shape(0);
  const DType dtype = ctx.dtype(0);
  const bool centered = ctx.int_attr("center_point_box", 0) != 0;
  const Expr none = ir::make_const(dtype, -std::numeric_limits<double>::infinity());
  std::vector<ir::Axis> axes = axes_for({shape[0], shape[1]});
  std::vector<ir::Axis> reduce = {{ir::Var("r"), shape[2]}};
  Exprs at = {axes[0].var, axes[1].var, reduce[0].var};
  const Expr r = reduce[0].var;
  const Buffers best =
      ctx.reduce_arg("nms_best", axes, reduce, Combiner::kArgMax, ir::load(ctx.in(0), at), r);
  std::vector<ir::Axis> own = axes_for({shape[0], shape[1]});
  const Exprs bc = vars_of(own);
  Expr body = ir::select(ir::load(best[0], bc) == none, i64(-1), ir::load(best[1], bc));
  const ir::Buffer index = ctx.compute("nms_index", std::move(own), std::move(body));

  std::vector<ir::Axis> out = axes_for(shape);
  const Exprs vars = vars_of(out);
  const Expr chosen = wrap_index(ir::load(best[1], {vars[0], vars[1]}), shape[2]);
  BoxExprs boxes[2];
  for (size_t k = 0; k < 2; ++k) {
    Expr v[4];
    for (int64_t e = 0; e < 4; ++e) v[e] = ir::load(ctx.in(1), {vars[0], k == 0 ? vars[2] : chosen, Expr(e)});
    boxes[k] = box_of(v, centered);
  }
  const Expr threshold = ir::load(ctx.in(2), Exprs(ctx.rank(2), Expr(0)));
  Expr left = ir::select(vars[2] == chosen || overlaps(boxes[0], boxes[1], ir::cast(dtype, threshold)), none,
                         ir::load(ctx.in(0), vars));
  return Buffers{index, ctx.compute("nms_left", std::move(out), std::move(left))};
}

// Turns (batch, class, selection) indices of boxes, with -1 for none, into rows of batch, class and
// box, and returns the number of rows.
Result<Buffers> emit_nms_select(OpContext& ctx) {
  const Shape& shape = ctx.shape(0);
  const int64_t n = product(shape);
  const Compacted c = compact(ctx, flags_of(ctx, ctx.in(0), [](const Expr& x) { return x >= i64(0); }));
  std::vector<ir::Axis> axes = axes_for({n, 3});
  const Expr place = ir::load(c.order, {axes[0].var});
  const Expr column = axes[1].var;
  const Expr safe = ir::max(place, i64(0));
  const Exprs digits = reshape_indices(shape, {n}, std::vector<Expr>{safe});
  const Expr value = ir::select(column == i64(0), digits[0],
                                ir::select(column == i64(1), digits[1], ir::load(ctx.in(0), digits)));
  Expr body = ir::select(place < i64(0), i64(-1), value);
  return Buffers{ctx.compute("nms_rows", std::move(axes), std::move(body)), c.count};
}

}  // namespace

BoxExprs box_of(const Expr (&v)[4], bool centered) {
  if (!centered) return {ir::min(v[0], v[2]), ir::min(v[1], v[3]), ir::max(v[0], v[2]), ir::max(v[1], v[3])};
  const Expr half = ir::make_const(v[0].dtype(), 0.5);
  return {v[1] - v[3] * half, v[0] - v[2] * half, v[1] + v[3] * half, v[0] + v[2] * half};
}

Expr overlaps(const BoxExprs& a, const BoxExprs& b, const Expr& threshold) {
  const Expr zero = ir::make_const(threshold.dtype(), 0);
  const auto area = [](const BoxExprs& box) { return (box.y2 - box.y1) * (box.x2 - box.x1); };
  const Expr height = ir::min(a.y2, b.y2) - ir::max(a.y1, b.y1);
  const Expr width = ir::min(a.x2, b.x2) - ir::max(a.x1, b.x1);
  const Expr both = height * width;
  const Expr any = area(a) + area(b) - both;
  return height > zero && width > zero && any > zero && both / any > threshold;
}

std::span<const OpEntry> bounded_operators() {
  static const OpEntry kEntries[] = {
      {"Bounded.Compress", "a:TB", emit_compress},   {"Bounded.NonZero", "a:T", emit_non_zero},
      {"Bounded.Unique", "a:T", emit_unique},        {"Bounded.NmsScores", "f:Tf", emit_nms_scores},
      {"Bounded.NmsSelect", "i:T", emit_nms_select}, {"Bounded.NmsStep", "f:TTF", emit_nms_step},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
