// Resize and Upsample: nearest, linear and cubic, with one stage per resized dimension.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using ir::Expr;
using ir::Intrinsic;

// One resized dimension: output position o corresponds to input position o * factor + offset.
struct ResizedDimension {
  size_t axis = 0;
  int64_t input = 0;
  int64_t output = 0;
  double factor = 1;
  double offset = 0;
  double scale = 1;  // output / input, as given

  double position(int64_t o) const { return o * factor + offset; }
  Expr position(const Expr& o, DType dtype) const {
    return ir::cast(dtype, o) * ir::make_const(dtype, factor) + ir::make_const(dtype, offset);
  }
};

enum class Rounding { kFloor, kCeil, kPreferFloor, kPreferCeil };

double apply(Rounding rounding, double x) {
  switch (rounding) {
    case Rounding::kFloor:
      return std::floor(x);
    case Rounding::kCeil:
      return std::ceil(x);
    case Rounding::kPreferFloor:
      return std::ceil(x - 0.5);
    case Rounding::kPreferCeil:
      return std::floor(x + 0.5);
  }
  return x;
}

Expr apply(Rounding rounding, const Expr& x) {
  const Expr half = ir::make_const(x.dtype(), 0.5);
  switch (rounding) {
    case Rounding::kFloor:
      return ir::call(Intrinsic::kFloor, {x});
    case Rounding::kCeil:
      return ir::call(Intrinsic::kCeil, {x});
    case Rounding::kPreferFloor:
      return ir::call(Intrinsic::kCeil, {x - half});
    case Rounding::kPreferCeil:
      return ir::call(Intrinsic::kFloor, {x + half});
  }
  return x;
}

// Snaps a position to an integer if they differ only by rounding errors of the factor.
double snapped(double x) {
  const double nearest = std::nearbyint(x * 2) / 2;
  return std::abs(x - nearest) < 1e-9 * (1 + std::abs(x)) ? nearest : x;
}

// Returns the rounded position of each output as an index expression, not clamped. Positions are
// affine, so a single quotient floordiv(o * p + r, q) nearly always gives all of them; r is in the
// intersection of the values that each output allows. Otherwise the position is computed in
// floating point.
Expr rounded_position(const ResizedDimension& d, Rounding rounding, const Expr& o) {
  const int64_t common = std::gcd(d.input, d.output);
  const int64_t p = d.input / common;
  const int64_t q = d.output / common;
  int64_t low = -(int64_t{1} << 62);
  int64_t high = int64_t{1} << 62;
  for (int64_t k = 0; k < d.output; ++k) {
    const double exact = apply(rounding, snapped(d.position(k)));
    if (!(std::abs(exact) < kMaxGeometry) || d.output > 65536) {
      low = 1;
      high = 0;
      break;
    }
    const auto t = static_cast<int64_t>(exact);
    low = std::max(low, t * q - k * p);
    high = std::min(high, (t + 1) * q - k * p - 1);
  }
  if (low <= high) {
    const int64_t r = std::clamp<int64_t>(0, low, high);
    const Expr numerator = o * Expr(p) + Expr(r);
    return q == 1 ? numerator : ir::floordiv(numerator, q);
  }
  return ir::cast(DType::kI64, apply(rounding, d.position(o, DType::kF64)));
}

Expr clamp_to(const Expr& index, int64_t extent) { return ir::min(ir::max(index, 0), extent - 1); }

struct ResizeSpec {
  std::vector<ResizedDimension> dims;  // dimensions that change
  Shape shape;
  std::string mode;
  std::string coordinates;
  Rounding rounding = Rounding::kPreferFloor;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  bool extrapolate = false;
  double extrapolation_value = 0;
};

// Computes factor and offset of one dimension; scale = output / input as given, begin and end the
// region of interest.
Result<ResizedDimension> place(const OpContext& ctx, const std::string& coordinates, size_t axis,
                               int64_t input, int64_t output, double scale, double begin, double end) {
  ResizedDimension d{axis, input, output, 1, 0, scale};
  const double in = input;
  const double resized = scale * in;
  if (coordinates == "asymmetric") {
    d.factor = 1 / scale;
  } else if (coordinates == "half_pixel" || (coordinates == "pytorch_half_pixel" && output > 1)) {
    d.factor = 1 / scale;
    d.offset = 0.5 / scale - 0.5;
  } else if (coordinates == "pytorch_half_pixel") {
    d.factor = 0;
    d.offset = -0.5;
  } else if (coordinates == "half_pixel_symmetric") {
    const double adjustment = output / resized;
    d.factor = 1 / scale;
    d.offset = in / 2 * (1 - adjustment) + 0.5 / scale - 0.5;
  } else if (coordinates == "tf_half_pixel_for_nn") {
    d.factor = 1 / scale;
    d.offset = 0.5 / scale;
  } else if (coordinates == "align_corners") {
    d.factor = resized == 1 ? 0 : (in - 1) / (resized - 1);
  } else if (coordinates == "tf_crop_and_resize") {
    d.factor = output == 1 ? 0 : (end - begin) * (in - 1) / (output - 1);
    d.offset = begin * (in - 1) + (output == 1 ? (end - begin) * (in - 1) / 2 : 0);
  } else {
    return ctx.unsupported("coordinate_transformation_mode '" + coordinates + "'");
  }
  return d;
}

// Reads how values are computed; `modern` is whether the node is a Resize of opset 11 or later.
Result<ResizeSpec> read_resize_modes(OpContext& ctx, bool modern) {
  ResizeSpec spec;
  spec.mode = ctx.string_attr("mode", "nearest");
  if (spec.mode == "bilinear" || spec.mode == "trilinear") spec.mode = "linear";
  if (spec.mode != "nearest" && spec.mode != "linear" && spec.mode != "cubic") {
    return ctx.invalid("unknown mode '" + spec.mode + "'");
  }
  spec.coordinates = ctx.string_attr("coordinate_transformation_mode", modern ? "half_pixel" : "asymmetric");
  const std::string rounding = ctx.string_attr("nearest_mode", modern ? "round_prefer_floor" : "floor");
  if (rounding == "floor") {
    spec.rounding = Rounding::kFloor;
  } else if (rounding == "ceil") {
    spec.rounding = Rounding::kCeil;
  } else if (rounding == "round_prefer_ceil") {
    spec.rounding = Rounding::kPreferCeil;
  } else if (rounding != "round_prefer_floor") {
    return ctx.invalid("unknown nearest_mode '" + rounding + "'");
  }
  spec.cubic_a = ctx.float_attr("cubic_coeff_a", -0.75);
  spec.exclude_outside = ctx.int_attr("exclude_outside", 0) != 0;
  spec.extrapolation_value = ctx.float_attr("extrapolation_value", 0);
  spec.extrapolate = spec.coordinates == "tf_crop_and_resize";
  spec.antialias = ctx.int_attr("antialias", 0) != 0;
  if (spec.antialias && spec.mode == "nearest") return ctx.invalid("antialias with mode nearest");
  return spec;
}

// Inputs by opset: 7 Upsample(x), 9 Upsample and 10 Resize(x, scales), 11 Resize(x, roi, scales, sizes).
Result<ResizeSpec> read_resize(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const bool modern = ctx.node().op == "Resize" && ctx.opset() >= 11;
  TS_ASSIGN_OR_RETURN(ResizeSpec spec, read_resize_modes(ctx, modern));
  const std::string policy = ctx.string_attr("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return ctx.invalid("unknown keep_aspect_ratio_policy '" + policy + "'");

  std::vector<size_t> axes(x.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  if (const auto attr = ctx.ints_attr("axes")) {
    TS_ASSIGN_OR_RETURN(axes, ctx.normalize_axes(*attr, x.size()));
  }
  const auto present = [&](size_t i) { return ctx.has(i) && product(ctx.shape(i)) != 0; };
  std::vector<double> scales;
  std::vector<int64_t> sizes;
  const size_t scales_input = modern ? 2 : 1;
  if (present(scales_input)) {
    TS_ASSIGN_OR_RETURN(scales, ctx.constant_floats(scales_input, "scales"));
  } else if (modern && present(3)) {
    TS_ASSIGN_OR_RETURN(sizes, ctx.constant_ints(3, "sizes"));
  } else if (auto attr = ctx.floats_attr("scales")) {
    scales = *std::move(attr);
  }
  if (scales.size() + sizes.size() != axes.size()) {
    return ctx.invalid("there must be one scale or size per dimension");
  }
  std::vector<double> roi;
  if (spec.extrapolate) {
    if (!present(1)) return ctx.invalid("input 1 (roi) is missing");
    TS_ASSIGN_OR_RETURN(roi, ctx.constant_floats(1, "roi"));
    if (roi.size() != 2 * axes.size()) return ctx.invalid("roi must have two numbers per dimension");
  }
  spec.shape = x;
  // One scale for all sizes: the smallest or the largest of the individual scales.
  std::optional<double> common;
  for (size_t k = 0; policy != "stretch" && k < sizes.size(); ++k) {
    const double own = sizes[k] / std::max<double>(x[axes[k]], 1);
    common = !common ? own : policy == "not_larger" ? std::min(*common, own) : std::max(*common, own);
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t axis = axes[k];
    double scale = 0;
    if (sizes.empty()) {
      scale = scales[k];
      // ONNX multiplies in f32.
      const double extent = std::floor(static_cast<float>(x[axis]) * static_cast<float>(scale));
      if (!(scale > 0) || !(extent >= 1) || extent > kMaxGeometry) {
        return ctx.invalid("scale " + std::to_string(scale) + " of dimension " + std::to_string(axis) +
                           " is out of range");
      }
      spec.shape[axis] = static_cast<int64_t>(extent);
    } else {
      if (sizes[k] < 1 || sizes[k] > kMaxGeometry || x[axis] < 1) {
        return ctx.invalid("size " + std::to_string(sizes[k]) + " of dimension " + std::to_string(axis) +
                           " is out of range");
      }
      scale = static_cast<double>(sizes[k]) / x[axis];
      spec.shape[axis] = sizes[k];
      if (common) {
        scale = *common;
        const double extent = std::floor(scale * x[axis] + 0.5);
        if (!(extent >= 1) || extent > kMaxGeometry)
          return ctx.invalid("the common scale " + std::to_string(scale) + " makes dimension " +
                             std::to_string(axis) + " empty or too large");
        spec.shape[axis] = static_cast<int64_t>(extent);
      }
    }
    const double begin = roi.empty() ? 0 : roi[k];
    const double end = roi.empty() ? 1 : roi[k + axes.size()];
    if (scale == 1.0 && begin == 0 && end == 1) continue;
    TS_ASSIGN_OR_RETURN(ResizedDimension d,
                        place(ctx, spec.coordinates, axis, x[axis], spec.shape[axis], scale, begin, end));
    if (!std::isfinite(d.factor) || !std::isfinite(d.offset))
      return ctx.invalid("roi or scales are not finite");
    spec.dims.push_back(d);
  }
  if (!is_reasonable(spec.shape)) return ctx.invalid("the result would be too large");
  return spec;
}

ir::Buffer emit_nearest(OpContext& ctx, const ResizeSpec& spec) {
  std::vector<ir::Axis> axes = axes_for(spec.shape);
  Exprs source = vars_of(axes);
  for (const ResizedDimension& d : spec.dims) {
    // The smallest and largest positions are those of the first and last output.
    const Expr index = rounded_position(d, spec.rounding, source[d.axis]);
    const double first = apply(spec.rounding, snapped(d.position(0)));
    const double last = apply(spec.rounding, snapped(d.position(d.output - 1)));
    const bool inside = std::min(first, last) >= 0 && std::max(first, last) < d.input && d.output <= 65536;
    source[d.axis] = inside ? index : clamp_to(index, d.input);
  }
  return ctx.compute("resize_nearest", std::move(axes), ir::load(ctx.in(0), source));
}

// Weights of the four neighbours at distance t from the second: Keys' cubic convolution with
// parameter a.
Exprs cubic_weights(const Expr& t, double a) {
  const auto constant = [&](double v) { return ir::make_const(t.dtype(), v); };
  const Expr one = constant(1);
  const auto near = [&](const Expr& s) {  // |s| <= 1
    return (constant(a + 2) * s - constant(a + 3)) * s * s + one;
  };
  const auto far = [&](const Expr& s) {  // 1 < |s| < 2
    return ((constant(a) * s - constant(5 * a)) * s + constant(8 * a)) * s - constant(4 * a);
  };
  return {far(t + one), near(t), near(one - t), far(constant(2) - t)};
}

// Interpolates one dimension, linearly or cubically.
ir::Buffer interpolate(OpContext& ctx, const ResizeSpec& spec, const ResizedDimension& d,
                       const ir::Buffer& x) {
  Shape shape = x->shape;
  shape[d.axis] = d.output;
  const DType dtype = x->dtype;
  const DType weight_dtype = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  std::vector<ir::Axis> axes = axes_for(shape);
  const Exprs vars = vars_of(axes);
  const Expr& o = vars[d.axis];
  const Expr floor = rounded_position(d, Rounding::kFloor, o);
  const Expr t = d.position(o, weight_dtype) - ir::cast(weight_dtype, floor);
  const Expr one = ir::make_const(weight_dtype, 1);
  const bool cubic = spec.mode == "cubic";
  Exprs weights = cubic ? cubic_weights(t, spec.cubic_a) : Exprs{one - t, t};
  const int64_t first = cubic ? -1 : 0;
  if (spec.exclude_outside) {
    Expr total;
    for (int64_t k = 0; k < std::ssize(weights); ++k) {
      const Expr index = floor + Expr(first + k);
      weights[k] =
          ir::select(index >= 0 && index < Expr(d.input), weights[k], ir::make_const(weight_dtype, 0));
      total = total.defined() ? total + weights[k] : weights[k];
    }
    for (Expr& weight : weights) weight = weight / total;
  }
  Expr sum;
  for (int64_t k = 0; k < std::ssize(weights); ++k) {
    Exprs source = vars;
    source[d.axis] = clamp_to(floor + Expr(first + k), d.input);
    const Expr weight = dtype == weight_dtype ? weights[k] : ir::cast(dtype, weights[k]);
    const Expr term = ir::load(x, source) * weight;
    sum = sum.defined() ? sum + term : term;
  }
  return ctx.compute("resize_" + spec.mode, std::move(axes), std::move(sum));
}

// Filter weight at distance x: a triangle, or Keys' cubic convolution.
Expr filter(const Expr& x, bool cubic, double a) {
  const auto constant = [&](double v) { return ir::make_const(x.dtype(), v); };
  const Expr s = ir::call(Intrinsic::kAbs, {x});
  const Expr zero = constant(0);
  if (!cubic) return ir::max(constant(1) - s, zero);
  const Expr near = (constant(a + 2) * s - constant(a + 3)) * s * s + constant(1);
  const Expr far = ((constant(a) * s - constant(5 * a)) * s + constant(8 * a)) * s - constant(4 * a);
  return ir::select(s <= constant(1), near, ir::select(s < constant(2), far, zero));
}

// If the result is smaller, the filter is wider by the same factor, so that each element of the
// input contributes.
//   w[o, t] = f((first + t - position(o)) * scale); y[o] = sum_t x[first + t] * w[o, t] / sum_t w[o, t]
Result<ir::Buffer> antialias(OpContext& ctx, const ResizeSpec& spec, const ResizedDimension& d,
                             const ir::Buffer& x) {
  const bool cubic = spec.mode == "cubic";
  const double scale = std::min(d.scale, 1.0);
  const double radius = (cubic ? 2 : 1) / scale;
  if (!(radius < 65536)) return ctx.unsupported("antialias with a scale of " + std::to_string(d.scale));
  const auto before = static_cast<int64_t>(std::floor(radius));
  const int64_t taps = 2 * before + 2;
  const DType dtype = x->dtype;
  const auto wide = [](double v) { return ir::make_const(DType::kF64, v); };
  const auto first = [&](const Expr& o) { return rounded_position(d, Rounding::kFloor, o) - Expr(before); };
  std::vector<ir::Axis> axes = axes_for({d.output, taps});
  const Expr place = first(axes[0].var) + Expr(axes[1].var);
  const Expr distance = ir::cast(DType::kF64, place) - d.position(axes[0].var, DType::kF64);
  Expr weight = filter(distance * wide(scale), cubic, spec.cubic_a);
  if (spec.exclude_outside) weight = ir::select(place >= 0 && place < Expr(d.input), weight, wide(0));
  const ir::Buffer weights = ctx.compute("antialias_weights", std::move(axes), std::move(weight));
  std::vector<ir::Axis> one = axes_for({d.output});
  std::vector<ir::Axis> over = {{ir::Var("r"), taps}};
  Expr term = ir::load(weights, {one[0].var, over[0].var});
  const ir::Buffer total =
      ctx.reduce("antialias_total", std::move(one), std::move(over), ir::Combiner::kSum, std::move(term));
  std::vector<ir::Axis> both = axes_for({d.output, taps});
  const Exprs at = vars_of(both);
  Expr share = ir::cast(dtype, ir::load(weights, at) / ir::load(total, {at[0]}));
  const ir::Buffer shares = ctx.compute("antialias_shares", std::move(both), std::move(share));
  Shape shape = x->shape;
  shape[d.axis] = d.output;
  std::vector<ir::Axis> out = axes_for(shape);
  std::vector<ir::Axis> reduce = {{ir::Var("r"), taps}};
  Exprs source = vars_of(out);
  const Expr o = source[d.axis];
  source[d.axis] = clamp_to(first(o) + Expr(reduce[0].var), d.input);
  Expr body = ir::load(x, source) * ir::load(shares, {o, reduce[0].var});
  return ctx.reduce("resize_antialias", std::move(out), std::move(reduce), ir::Combiner::kSum,
                    std::move(body));
}

ir::Buffer converted(OpContext& ctx, const std::string& name, const ir::Buffer& x, DType dtype) {
  return map_elements(ctx, name, x, [dtype](const Expr& e) { return ir::cast(dtype, e); });
}

Result<Buffers> emit_resize(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const ResizeSpec spec, read_resize(ctx));
  if (spec.dims.empty()) return Buffers{ctx.in(0)};
  ir::Buffer result = ctx.in(0);
  if (spec.mode == "nearest") {
    result = emit_nearest(ctx, spec);
  } else {
    if (!ir::is_float(ctx.dtype(0))) return ctx.unsupported("interpolation of integers");
    // For f16 and bf16, the stages compute in f32, and only their result is rounded.
    if (ir::is_short_float(ctx.dtype(0))) result = converted(ctx, "widen", result, DType::kF32);
    for (const ResizedDimension& d : spec.dims) {
      if (spec.antialias) {
        TS_ASSIGN_OR_RETURN(result, antialias(ctx, spec, d, result));
      } else {
        result = interpolate(ctx, spec, d, result);
      }
    }
    if (result->dtype != ctx.dtype(0)) result = converted(ctx, "round", result, ctx.dtype(0));
  }
  if (!spec.extrapolate) return Buffers{result};
  std::vector<ir::Axis> axes = axes_for(spec.shape);
  const Exprs vars = vars_of(axes);
  Expr inside = ir::bool_imm(true);
  for (const ResizedDimension& d : spec.dims) {
    const Expr position = d.position(vars[d.axis], DType::kF64);
    inside = inside && position >= ir::make_const(DType::kF64, 0) &&
             position <= ir::make_const(DType::kF64, d.input - 1);
  }
  Expr body =
      ir::select(inside, ir::load(result, vars), ir::make_const(ctx.dtype(0), spec.extrapolation_value));
  return Buffers{ctx.compute("extrapolate", std::move(axes), std::move(body))};
}

}  // namespace

std::span<const OpEntry> resize_operators() {
  static const OpEntry kEntries[] = {
      {"Resize", "a:Tffl", emit_resize, kMayReturnInput},
      {"Upsample", "a:Tf", emit_resize, kMayReturnInput, 7},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
