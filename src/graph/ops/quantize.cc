// Quantization: linear maps between floats and integers, and integer convolutions and products.
#include "graph/ops/reduction.h"
#include "graph/ops/registry.h"
#include "graph/ops/window.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;

Expr zero(DType dtype) { return ir::make_const(dtype, 0); }

// round(quotient) + zero_point, saturated to the dtype (Cast saturates).
Expr quantize(const Expr& quotient, const Expr& zero_point, DType dtype) {
  const Expr rounded = ir::call(Intrinsic::kRound, {quotient});
  return ir::cast(dtype, rounded + ir::cast(quotient.dtype(), zero_point));
}

bool is_scalar(const OpContext& ctx, size_t i) { return product(ctx.shape(i)) == 1; }

// Reads input i, which has one value for all elements or one per position along the axis.
Result<Expr> parameter(const OpContext& ctx, size_t i, const Expr& position, int64_t extent) {
  if (is_scalar(ctx, i)) return ir::load(ctx.in(i), Exprs(ctx.rank(i), Expr(0)));
  if (ctx.shape(i) == Shape{extent}) return ir::load(ctx.in(i), {position});
  return ctx.invalid("input " + std::to_string(i) + " must be a scalar or have one value per channel, not " +
                     describe(ctx.dtype(i), ctx.shape(i)));
}

Result<size_t> quantization_axis(OpContext& ctx) {
  if (is_scalar(ctx, 1)) return size_t{0};
  return ctx.normalize_axis(ctx.int_attr("axis", 1), ctx.rank(0));
}

// Computes where input i (scale or zero point) is read for the element at `vars` of input 0: one
// value for all, one per position along the axis, or, with the attribute block_size, one per block
// of positions along the axis.
class Parameters {
 public:
  static Result<Parameters> read(OpContext& ctx) {
    Parameters p(ctx);
    p.block_ = ctx.int_attr("block_size", 0);
    if (p.block_ != 0) {
      if (p.block_ < 0 || ctx.rank(0) < 1) return ctx.invalid("block_size must not be negative");
      TS_ASSIGN_OR_RETURN(p.axis_, ctx.normalize_axis(ctx.int_attr("axis", 1), ctx.rank(0)));
      Shape blocks = ctx.shape(0);
      blocks[p.axis_] = blocks[p.axis_] == 0 ? 0 : (blocks[p.axis_] - 1) / p.block_ + 1;
      for (size_t i = 1; i < 3; ++i) {
        if (ctx.has(i) && ctx.shape(i) != blocks)
          return ctx.invalid("input " + std::to_string(i) + " is " + describe(ctx.dtype(i), ctx.shape(i)) +
                             " instead of one value per block: " + describe(ctx.dtype(i), blocks));
      }
      return p;
    }
    TS_ASSIGN_OR_RETURN(p.axis_, quantization_axis(ctx));
    return p;
  }

  Result<Expr> at(size_t i, const Exprs& vars) const {
    if (block_ == 0) {
      return parameter(ctx_, i, vars.empty() ? Expr(0) : vars[axis_],
                       vars.empty() ? 1 : ctx_.shape(0)[axis_]);
    }
    Exprs block = vars;
    block[axis_] = ir::floordiv(vars[axis_], block_);
    return ir::load(ctx_.in(i), block);
  }

 private:
  explicit Parameters(const OpContext& ctx) : ctx_(ctx) {}
  const OpContext& ctx_;
  size_t axis_ = 0;
  int64_t block_ = 0;
};

// Returns x / scale. The type of the division is that of the scale from opset 23 on; for earlier opsets, runtimes divide
// 16-bit floats in f32. The steps that follow it are exact in f32.
Result<Expr> quotient_of(OpContext& ctx, const Parameters& parameters, const Exprs& vars) {
  TS_ASSIGN_OR_RETURN(Expr scale, parameters.at(1, vars));
  Expr x = ir::load(ctx.in(0), vars);
  DType precision = ctx.opset() >= 23 ? ctx.declared_dtype(1) : scale.dtype();
  if (const int64_t wanted = ctx.int_attr("precision", 0); wanted != 0) {
    const auto known = onnx_dtype(wanted);
    if (!known || !ir::is_float(*known)) return ctx.unsupported("precision " + onnx_type_name(wanted));
    precision = *known;
  }
  const DType compute = precision == DType::kF64 ? DType::kF64 : DType::kF32;
  if (x.dtype() != compute) x = ir::cast(compute, x);
  if (scale.dtype() != compute) scale = ir::cast(compute, scale);
  Expr quotient = x / scale;
  if (precision != compute) quotient = ir::cast(compute, ir::cast(precision, quotient));
  return quotient;
}

// The importer makes it for a QuantizeLinear to a float type without a dtype.
Result<Buffers> emit_quotient(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Parameters parameters, Parameters::read(ctx));
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  TS_ASSIGN_OR_RETURN(Expr quotient, quotient_of(ctx, parameters, vars_of(axes)));
  quotient = ir::cast(DType::kF32, quotient);
  // The zero point, which is 0, makes a negative zero positive.
  const Expr nothing = zero(DType::kF32);
  return Buffers{
      ctx.compute("quotient", std::move(axes), ir::select(quotient == nothing, nothing, quotient))};
}

// The importer's attribute `bits` marks elements of 4 or 2 bits, which are held in bytes.
Result<Buffers> emit_quantize_linear(OpContext& ctx) {
  DType dtype = DType::kU8;
  if (ctx.has(2)) {
    dtype = ctx.dtype(2);
  } else if (const int64_t wanted = ctx.int_attr("output_dtype", 0); wanted != 0) {
    const auto known = onnx_dtype(wanted);
    if (!known) return ctx.unsupported("output_dtype " + std::to_string(wanted));
    dtype = *known;
  }
  if (!ir::is_int(dtype)) return ctx.unsupported("quantization to " + std::string(ir::to_string(dtype)));
  const int64_t bits = ctx.int_attr("bits", 0);
  if (bits != 0 && (bits < 1 || bits > 7 || ir::bytes_of(dtype) != 1))
    return ctx.invalid("attribute bits is " + std::to_string(bits));
  TS_ASSIGN_OR_RETURN(const Parameters parameters, Parameters::read(ctx));
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(axes);
  Expr zero_point = zero(dtype);
  if (ctx.has(2)) {
    TS_ASSIGN_OR_RETURN(zero_point, parameters.at(2, vars));
  }
  TS_ASSIGN_OR_RETURN(const Expr quotient, quotient_of(ctx, parameters, vars));
  if (bits == 0)
    return Buffers{ctx.compute("quantize", std::move(axes), quantize(quotient, zero_point, dtype))};
  const int64_t low = ir::is_signed_int(dtype) ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = low + (int64_t{1} << bits) - 1;
  const Expr wide = quantize(quotient, zero_point, DType::kI32);
  Expr body =
      ir::cast(dtype, ir::min(ir::max(wide, ir::int_imm(DType::kI32, low)), ir::int_imm(DType::kI32, high)));
  return Buffers{ctx.compute("quantize", std::move(axes), std::move(body))};
}

// (x - zero_point) * scale; the importer makes it for floats that it has decoded, which have no zero point.
Result<Buffers> emit_dequantize_linear(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Parameters parameters, Parameters::read(ctx));
  std::vector<ir::Axis> axes = axes_for(ctx.shape(0));
  const Exprs vars = vars_of(axes);
  TS_ASSIGN_OR_RETURN(const Expr scale, parameters.at(1, vars));
  const Expr x = ir::load(ctx.in(0), vars);
  Expr centered = ir::is_float(x.dtype()) ? x : ir::cast(DType::kI32, x);
  if (ctx.has(2)) {
    TS_ASSIGN_OR_RETURN(const Expr zero_point, parameters.at(2, vars));
    centered = centered - ir::cast(DType::kI32, zero_point);
  }
  // Short floats cannot represent large integers.
  const Expr wide = scale.dtype() == DType::kF64 ? scale : ir::cast(DType::kF32, scale);
  Expr body = ir::cast(wide.dtype(), centered) * wide;
  if (wide.dtype() != scale.dtype()) body = ir::cast(scale.dtype(), body);
  if (const int64_t wanted = ctx.int_attr("output_dtype", 0); wanted != 0) {
    const auto known = onnx_dtype(wanted);
    if (!known || !ir::is_float(*known)) return ctx.unsupported("output_dtype " + std::to_string(wanted));
    if (*known != body.dtype()) body = ir::cast(*known, body);
  }
  return Buffers{ctx.compute("dequantize", std::move(axes), std::move(body))};
}

// Computes y, scale and zero point from the range of x, extended to include 0.
Result<Buffers> emit_dynamic_quantize_linear(OpContext& ctx) {
  if (ctx.dtype(0) != DType::kF32) return ctx.unsupported("data other than f32");
  std::vector<size_t> dims;
  for (size_t d = 0; d < ctx.rank(0); ++d) dims.push_back(d);
  const auto read = [&](std::span<const Expr> indices) {
    return ir::load(ctx.in(0), Exprs(indices.begin(), indices.end()));
  };
  const ir::Buffer high = reduce_dims(ctx, "range_max", ctx.shape(0), dims, false, Combiner::kMax, read);
  const ir::Buffer low = reduce_dims(ctx, "range_min", ctx.shape(0), dims, false, Combiner::kMin, read);
  const auto f32 = [](double v) { return ir::make_const(DType::kF32, v); };
  const Expr maximum = ir::max(ir::load(high, {}), f32(0));
  const Expr minimum = ir::min(ir::load(low, {}), f32(0));
  const ir::Buffer scale = ctx.compute("scale", {}, (maximum - minimum) / f32(255));
  const Expr s = ir::load(scale, {});
  const Expr offset = ir::select(s == f32(0), f32(0), ir::call(Intrinsic::kRound, {f32(0) - minimum / s}));
  const ir::Buffer zero_point = ctx.compute("zero_point", {}, ir::cast(DType::kU8, offset));
  Buffers out = {map_elements(ctx, "quantize", ctx.in(0), [&](const Expr& x) {
    return quantize(x / s, ir::load(zero_point, {}), DType::kU8);
  })};
  out.push_back(scale);
  out.push_back(zero_point);
  return out;
}

// Two-dimensional or batched product of i32 stages a (..., M, K) and b (..., K, N).
Result<ir::Buffer> integer_matmul(OpContext& ctx, const ir::Buffer& a, const ir::Buffer& b) {
  const size_t rank = std::max(a->shape.size(), b->shape.size());
  if (a->shape.size() < 2 || b->shape.size() < 2) return ctx.unsupported("vectors; use matrices");
  const auto batch =
      broadcast(Shape(a->shape.begin(), a->shape.end() - 2), Shape(b->shape.begin(), b->shape.end() - 2));
  const int64_t depth = a->shape.back();
  if (!batch || b->shape[b->shape.size() - 2] != depth) {
    return ctx.invalid("shapes do not fit: " + describe(ctx.dtype(0), a->shape) + " and " +
                       describe(ctx.dtype(0), b->shape));
  }
  Shape shape = *batch;
  shape.push_back(a->shape[a->shape.size() - 2]);
  shape.push_back(b->shape.back());
  std::vector<ir::Axis> axes = axes_for(shape);
  std::vector<ir::Axis> reduce = {{ir::Var("k"), depth}};
  Exprs at_a = vars_of(axes);
  Exprs at_b = at_a;
  at_a[rank - 1] = reduce[0].var;
  at_b[rank - 2] = reduce[0].var;
  // A dimension of extent 1 broadcasts only in the batch; row, column and depth are read directly.
  const auto read = [](const ir::Buffer& buffer, const Exprs& at) {
    Exprs own(at.end() - buffer->shape.size(), at.end());
    for (size_t d = 0; d + 2 < own.size(); ++d) {
      if (buffer->shape[d] == 1) own[d] = 0;
    }
    return ir::load(buffer, own);
  };
  return ctx.reduce("integer_matmul", std::move(axes), std::move(reduce), Combiner::kSum,
                    read(a, at_a) * read(b, at_b));
}

// Returns i32(x) - zero_point, where the zero point has one value or one per position along the
// axis.
Result<ir::Buffer> centered(OpContext& ctx, size_t data, size_t zero_point, size_t axis) {
  std::vector<ir::Axis> axes = axes_for(ctx.shape(data));
  const Exprs vars = vars_of(axes);
  Expr body = ir::cast(DType::kI32, ir::load(ctx.in(data), vars));
  if (ctx.has(zero_point)) {
    Expr point;
    const Shape& shape = ctx.shape(zero_point);
    if (shape.size() == ctx.rank(data) && shape.size() >= 2 &&
        broadcast(shape, ctx.shape(data)) == ctx.shape(data)) {
      point = broadcast_read(ctx.in(zero_point), vars);  // (..., M, 1) or (..., 1, N)
    } else {
      TS_ASSIGN_OR_RETURN(point, parameter(ctx, zero_point, vars[axis], ctx.shape(data)[axis]));
    }
    body = body - ir::cast(DType::kI32, point);
  }
  return ctx.compute("centered", std::move(axes), std::move(body));
}

Result<Buffers> emit_matmul_integer(OpContext& ctx) {
  if (ctx.rank(0) < 2 || ctx.rank(1) < 2) return ctx.unsupported("vectors; use matrices");
  TS_ASSIGN_OR_RETURN(const ir::Buffer a, centered(ctx, 0, 2, ctx.rank(0) - 2));
  TS_ASSIGN_OR_RETURN(const ir::Buffer b, centered(ctx, 1, 3, ctx.rank(1) - 1));
  TS_ASSIGN_OR_RETURN(ir::Buffer out, integer_matmul(ctx, a, b));
  return Buffers{out};
}

// Converts i32 accumulators to the output's dtype: saturate(round(sum * multiplier) + zero_point).
Expr requantize(const Expr& sum, const Expr& multiplier, const Expr& zero_point, DType dtype) {
  const Expr rounded = ir::call(Intrinsic::kRound, {ir::cast(DType::kF32, sum) * multiplier});
  return ir::cast(dtype, rounded + ir::cast(DType::kF32, zero_point));
}

// Converts the sums of an operator with inputs a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale,
// y_zero_point and bias to its output. The scales of b and the bias have a value for each index in
// dimension `channel` of the sums, which messages call `name`.
Result<Buffers> requantized(OpContext& ctx, const ir::Buffer& sum, size_t channel, const std::string& name) {
  std::vector<ir::Axis> axes = axes_for(sum->shape);
  const Exprs vars = vars_of(axes);
  // Scales of 16 bits are only stored as such.
  const auto scale_of = [&](size_t i, const Expr& position, int64_t extent) -> Result<Expr> {
    TS_ASSIGN_OR_RETURN(const Expr scale, parameter(ctx, i, position, extent));
    return scale.dtype() == DType::kF32 ? scale : ir::cast(DType::kF32, scale);
  };
  TS_ASSIGN_OR_RETURN(const Expr b_scale, scale_of(4, vars[channel], sum->shape[channel]));
  TS_ASSIGN_OR_RETURN(const Expr a_scale, scale_of(1, 0, 1));
  TS_ASSIGN_OR_RETURN(const Expr y_scale, scale_of(6, 0, 1));
  TS_ASSIGN_OR_RETURN(const Expr y_zero, parameter(ctx, 7, 0, 1));
  if (ctx.has(8) && ctx.shape(8) != Shape{sum->shape[channel]})
    return ctx.invalid("the bias must have one value per " + name);
  Expr total = ir::load(sum, vars);
  if (ctx.has(8)) total = total + ir::load(ctx.in(8), {vars[channel]});
  Expr body = requantize(total, a_scale * b_scale / y_scale, y_zero, ctx.dtype(7));
  return Buffers{ctx.compute("requantize", std::move(axes), std::move(body))};
}

// Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point, and, only in
// nodes from fuse_quantized, a bias with one i32 per column.
Result<Buffers> emit_qlinear_matmul(OpContext& ctx) {
  if (ctx.rank(0) < 2 || ctx.rank(3) < 2) return ctx.unsupported("vectors; use matrices");
  const size_t column = ctx.rank(3) - 1;
  if (!is_scalar(ctx, 1) || !is_scalar(ctx, 6) || !is_scalar(ctx, 7)) {
    return ctx.unsupported("scales of a and y that are not scalars");
  }
  TS_ASSIGN_OR_RETURN(const ir::Buffer a, centered(ctx, 0, 2, ctx.rank(0) - 2));
  TS_ASSIGN_OR_RETURN(const ir::Buffer b, centered(ctx, 3, 5, column));
  TS_ASSIGN_OR_RETURN(const ir::Buffer sum, integer_matmul(ctx, a, b));
  return requantized(ctx, sum, sum->shape.size() - 1, "column");
}

// The i32 convolution of x - x_zero and w - w_zero.
Result<ir::Buffer> integer_conv(OpContext& ctx, size_t x, size_t w, size_t x_zero, size_t w_zero) {
  const Shape& xs = ctx.shape(x);
  const Shape& ws = ctx.shape(w);
  const int64_t groups = ctx.int_attr("group", 1);
  if (xs.size() < 3 || ws.size() != xs.size() || groups < 1 || ws[0] < 1 || ws[0] % groups != 0 ||
      xs[1] % groups != 0 || ws[1] != xs[1] / groups) {
    return ctx.invalid("data " + describe(ctx.dtype(x), xs) + ", weights " + describe(ctx.dtype(w), ws) +
                       " and group " + std::to_string(groups) + " do not fit");
  }
  if (ctx.has(x_zero) && !is_scalar(ctx, x_zero))
    return ctx.unsupported("a zero point of the data that is not a scalar");
  TS_ASSIGN_OR_RETURN(const Window window,
                      read_window(ctx, Shape(xs.begin() + 2, xs.end()), Shape(ws.begin() + 2, ws.end())));
  // Padding represents the real value 0, which is the zero point, and so 0 after centering.
  const ir::Buffer data = pad_for_windows(ctx, ctx.in(x), window, zero(DType::kI32), [&](const Expr& e) {
    const Expr wide = ir::cast(DType::kI32, e);
    if (!ctx.has(x_zero)) return wide;
    return wide - ir::cast(DType::kI32, ir::load(ctx.in(x_zero), Exprs(ctx.rank(x_zero), Expr(0))));
  });
  TS_ASSIGN_OR_RETURN(const ir::Buffer weights, centered(ctx, w, w_zero, 0));
  return convolve(ctx, convolution_name("integer_conv", window.rank(), groups, ws[1]), data, weights, window,
                  groups);
}

Result<Buffers> emit_conv_integer(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(ir::Buffer out, integer_conv(ctx, 0, 1, 2, 3));
  return Buffers{out};
}

// Inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias.
Result<Buffers> emit_qlinear_conv(OpContext& ctx) {
  if (!is_scalar(ctx, 1) || !is_scalar(ctx, 6) || !is_scalar(ctx, 7)) {
    return ctx.unsupported("scales of x and y that are not scalars");
  }
  TS_ASSIGN_OR_RETURN(const ir::Buffer sum, integer_conv(ctx, 0, 3, 2, 5));
  return requantized(ctx, sum, 1, "channel");
}

// The operators' inputs must be 8-bit integers and f32 scales; a bias is i32.
template <Emitter F>
Result<Buffers> with_dtypes(OpContext& ctx) {
  const bool linear = ctx.node().op.starts_with("QLinear");
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    if (!ctx.has(i)) continue;
    const bool scale = linear && (i == 1 || i == 4 || i == 6);
    const bool bias = linear && i == 8;
    const DType dtype = ctx.dtype(i);
    const bool fits = scale  ? dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16
                      : bias ? dtype == DType::kI32
                             : dtype == DType::kI8 || dtype == DType::kU8;
    if (!fits) {
      return ctx.unsupported("input " + std::to_string(i) + " has dtype " +
                             std::string(ir::to_string(dtype)));
    }
  }
  return F(ctx);
}

Result<Buffers> emit_dequantize_checked(OpContext& ctx) {
  if (!ir::is_int(ctx.dtype(0)))
    return ctx.unsupported("data of dtype " + std::string(ir::to_string(ctx.dtype(0))));
  return emit_dequantize_linear(ctx);
}

}  // namespace

std::span<const OpEntry> quantize_operators() {
  static const OpEntry kEntries[] = {
      {"Bounded.Dequantize", "a:AF", emit_dequantize_linear},
      {"Bounded.Quotient", "a:AF", emit_quotient},
      {"ConvInteger", "a:AAaa", with_dtypes<emit_conv_integer>},
      {"DequantizeLinear", "i:TFt", emit_dequantize_checked},
      {"DynamicQuantizeLinear", "f:T", emit_dynamic_quantize_linear},
      {"MatMulInteger", "a:AAaa", with_dtypes<emit_matmul_integer>},
      {"QLinearConv", "a:AAAAAAAAa", with_dtypes<emit_qlinear_conv>},
      {"QLinearMatMul", "a:AAAAAAAAa", with_dtypes<emit_qlinear_matmul>},
      {"QuantizeLinear", "n:TFa", emit_quantize_linear},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
