// Pad: constant, edge, reflect and wrap.
#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;

struct PadSpec {
  std::vector<int64_t> begin, end;
};

// Pads are attributes before opset 11 (so is the value) and inputs later; opset 18 adds axes.
Result<PadSpec> read_pads(OpContext& ctx) {
  const size_t rank = ctx.rank(0);
  std::vector<int64_t> pads;
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(pads, ctx.constant_ints(1, "pads"));
  } else if (auto attr = ctx.ints_attr("pads")) {
    pads = *std::move(attr);
  } else {
    return ctx.invalid("the pads are missing");
  }
  std::vector<size_t> dims(rank);
  for (size_t d = 0; d < rank; ++d) dims[d] = d;
  if (ctx.has(3)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ctx.constant_ints(3, "axes"));
    TS_ASSIGN_OR_RETURN(dims, ctx.normalize_axes(axes, rank));
  }
  if (pads.size() != 2 * dims.size()) {
    return ctx.invalid("there are " + std::to_string(pads.size()) + " pads instead of " +
                       std::to_string(2 * dims.size()));
  }
  PadSpec spec{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 0)};
  for (size_t k = 0; k < dims.size(); ++k) {
    for (int64_t pad : {pads[k], pads[k + dims.size()]}) {
      if (pad < -kMaxGeometry || pad > kMaxGeometry) return ctx.invalid("a pad is out of range");
    }
    spec.begin[dims[k]] = pads[k];
    spec.end[dims[k]] = pads[k + dims.size()];
  }
  return spec;
}

// Reflects a position in [-(extent - 1), 2 * (extent - 1)] at the borders without repeating them;
// positions further out continue with period 2 * (extent - 1).
Expr reflect(const Expr& position, int64_t extent, int64_t begin, int64_t end) {
  if (extent == 1) return 0;
  const int64_t last = extent - 1;
  if (begin <= last && end <= last) {
    Expr result = position;
    if (end > 0) result = ir::select(result > Expr(last), Expr(2 * last) - result, result);
    if (begin > 0) result = ir::select(position < 0, -position, result);
    return result;
  }
  const Expr phase = ir::floormod(position, 2 * last);
  return ir::min(phase, Expr(2 * last) - phase);
}

Result<Buffers> emit_pad(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  TS_ASSIGN_OR_RETURN(const PadSpec spec, read_pads(ctx));
  const std::string mode = ctx.string_attr("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") {
    return ctx.invalid("unknown mode '" + mode + "'");
  }
  Shape shape = x;
  bool changed = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    shape[d] += spec.begin[d] + spec.end[d];
    changed = changed || spec.begin[d] != 0 || spec.end[d] != 0;
    if (shape[d] < 0) return ctx.invalid("the pads remove more elements than a dimension has");
    const int64_t kept = x[d] + std::min<int64_t>(spec.begin[d], 0) + std::min<int64_t>(spec.end[d], 0);
    if (mode != "constant" && kept <= 0 && shape[d] > 0)
      return ctx.invalid("an empty dimension has no elements to repeat");
  }
  if (!changed) return Buffers{ctx.in(0)};
  Expr fill = ir::make_const(ctx.dtype(0), 0);
  if (ctx.has(2)) {
    if (product(ctx.shape(2)) != 1) return ctx.invalid("input 2 (constant_value) must be a scalar");
    const lower::Tensor* value = ctx.constant(2);
    fill = value != nullptr ? scalar_imm(ctx.dtype(2), value->at(0))
                            : ir::load(ctx.in(2), Exprs(ctx.rank(2), Expr(0)));
  } else if (ctx.has_attr("value")) {
    fill = ir::make_const(ctx.dtype(0), ctx.float_attr("value", 0));
  }
  std::vector<ir::Axis> axes = axes_for(shape);
  Exprs source = vars_of(axes);
  Expr inside;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (spec.begin[d] == 0 && spec.end[d] == 0) continue;
    const Expr position = source[d] - Expr(spec.begin[d]);
    // Negative pads first remove elements, and the rest is repeated: elements first .. first + kept
    // - 1.
    const int64_t first = std::max<int64_t>(-spec.begin[d], 0);
    const int64_t kept = x[d] - first + std::min<int64_t>(spec.end[d], 0);
    if (mode == "constant") {
      const auto require = [&inside](const Expr& condition) {
        inside = inside.defined() ? inside && condition : condition;
      };
      if (spec.begin[d] > 0) require(source[d] >= Expr(spec.begin[d]));
      if (spec.end[d] > 0) require(source[d] < Expr(spec.begin[d] + x[d]));
      source[d] = position;
    } else if (mode == "edge") {
      source[d] = ir::min(ir::max(position, first), first + kept - 1);
    } else if (mode == "wrap") {
      source[d] = Expr(first) + ir::floormod(position - Expr(first), std::max<int64_t>(kept, 1));
    } else {
      source[d] = Expr(first) + reflect(position - Expr(first), kept, std::max<int64_t>(spec.begin[d], 0),
                                        std::max<int64_t>(spec.end[d], 0));
    }
  }
  Expr body = ir::load(ctx.in(0), source);
  if (inside.defined()) body = ir::select(inside, body, fill);
  return Buffers{ctx.compute("pad", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> pad_operators() {
  static const OpEntry kEntries[] = {{"Pad", "a:Tlti", emit_pad, kPicksElements | kMayReturnInput, 2}};
  return kEntries;
}

}  // namespace tensorsmith::graph
