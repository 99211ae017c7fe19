// Quantized operators of ONNX Runtime (com.microsoft), as quantize_static and quantize_dynamic write them: their
// inputs are dequantized, the operator computes in f32, and its result is quantized.
#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using Values = std::vector<ValueId>;

// Returns f32 values of input i, whose scale and zero point are the next two inputs.
Result<ValueId> dequantized(Expansion& e, size_t i, std::map<std::string, Attribute> attributes = {}) {
  Values inputs = {e.in(i), e.in(i + 1)};
  if (e.ctx.has(i + 2)) inputs.push_back(e.in(i + 2));
  return e.op("DequantizeLinear", inputs, std::move(attributes));
}

// Quantizes to the type of the zero point, input i + 1, else to `dtype`; input i is the scale.
Result<Values> quantized(Expansion& e, ValueId id, size_t i, DType dtype) {
  const ValueId zero = e.ctx.has(i + 1) ? e.in(i + 1) : e.scalar(dtype, 0);
  TS_ASSIGN_OR_RETURN(const ValueId result, e.op("QuantizeLinear", {id, e.in(i), zero}));
  return Values{result};
}

Result<Values> expand_quantized_mul(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const ValueId a, dequantized(e, 0));
  TS_ASSIGN_OR_RETURN(const ValueId b, dequantized(e, 3));
  TS_ASSIGN_OR_RETURN(const ValueId result, e.op("Mul", {a, b}));
  return quantized(e, result, 6, e.ctx.dtype(0));
}

// a * (scale of a / scale of c) + b * (scale of b / scale of c) + the rest, rounded and saturated. Sums of quantized
// values are often halfway between two steps, so the order in which ONNX Runtime computes decides.
Result<Values> expand_quantized_add(Expansion& e) {
  OpContext& ctx = e.ctx;
  const DType dtype = ctx.dtype(0), f32 = DType::kF32;
  ValueId rest = e.scalar(f32, 0);
  if (ctx.has(7)) {
    TS_ASSIGN_OR_RETURN(rest, e.cast(e.in(7), f32));
  }
  ValueId terms[2];
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const size_t i = 3 * side;
    TS_ASSIGN_OR_RETURN(const ValueId ratio, e.op("Div", {e.in(i + 1), e.in(6)}));
    TS_ASSIGN_OR_RETURN(const ValueId value, e.cast(e.in(i), f32));
    TS_ASSIGN_OR_RETURN(terms[side], e.op("Mul", {value, ratio}));
    if (!ctx.has(i + 2)) continue;
    TS_ASSIGN_OR_RETURN(ValueId zero, e.cast(e.in(i + 2), f32));
    TS_ASSIGN_OR_RETURN(zero, e.op("Mul", {zero, ratio}));
    TS_ASSIGN_OR_RETURN(rest, e.op("Sub", {rest, zero}));
  }
  TS_ASSIGN_OR_RETURN(ValueId sum, e.op("Add", {terms[0], rest}));
  TS_ASSIGN_OR_RETURN(sum, e.op("Add", {terms[1], sum}));
  const ValueId zero = e.scalar(dtype, 0);
  TS_ASSIGN_OR_RETURN(sum, e.op("QuantizeLinear", {sum, e.scalar(f32, 1), zero}));
  return Values{sum};
}

// Operators of one tensor: X, its scale and zero point, then scale and zero point of the result.
template <Result<ValueId> (*F)(Expansion&, ValueId)>
Result<Values> quantized_unary(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const ValueId x, dequantized(e, 0));
  TS_ASSIGN_OR_RETURN(const ValueId result, F(e, x));
  return quantized(e, result, 3, e.ctx.dtype(0));
}

Result<ValueId> quantized_leaky_relu(Expansion& e, ValueId x) {
  return e.op("LeakyRelu", {x}, {{"alpha", e.ctx.float_attr("alpha", 0.01)}});
}

Result<ValueId> quantized_sigmoid(Expansion& e, ValueId x) { return e.op("Sigmoid", {x}); }

// Before opset 13, the dimensions from the axis on were one.
Result<ValueId> quantized_softmax(Expansion& e, ValueId x) {
  const int64_t opset = e.ctx.int_attr("opset", 13);
  const int64_t axis = e.ctx.int_attr("axis", -1);
  if (opset >= 13) return e.op("Softmax", {x}, {{"axis", axis}});
  const Shape shape = e.shape(x);
  TS_ASSIGN_OR_RETURN(const size_t first, e.ctx.normalize_axis(axis, shape.size()));
  const auto split = shape.begin() + static_cast<int64_t>(first);
  TS_ASSIGN_OR_RETURN(
      x, e.reshape(x, {product(Shape(shape.begin(), split)), product(Shape(split, shape.end()))}));
  TS_ASSIGN_OR_RETURN(x, e.op("Softmax", {x}, {{"axis", int64_t{-1}}}));
  return e.reshape(x, shape);
}

Result<ValueId> quantized_reduce_mean(Expansion& e, ValueId x) {
  const auto axes = e.ctx.ints_attr("axes");
  Values inputs = {x};
  if (axes) inputs.push_back(e.ints(*axes));
  return e.op("ReduceMean", inputs, {{"keepdims", e.ctx.int_attr("keepdims", 1)}});
}

// Applies F to data with the channels last, as to data with the channels second.
template <Result<ValueId> (*F)(Expansion&, ValueId)>
Result<ValueId> with_channels(Expansion& e, ValueId x) {
  if (e.ctx.int_attr("channels_last", 0) == 0) return F(e, x);
  const int64_t rank = std::ssize(e.shape(x));
  std::vector<int64_t> forth = {0, rank - 1}, back = {0};
  for (int64_t d = 1; d + 1 < rank; ++d) forth.push_back(d);
  for (int64_t d = 2; d < rank; ++d) back.push_back(d);
  back.push_back(1);
  TS_ASSIGN_OR_RETURN(x, e.transpose(x, forth));
  TS_ASSIGN_OR_RETURN(x, F(e, x));
  return e.transpose(x, back);
}

Result<ValueId> quantized_average_pool(Expansion& e, ValueId x) {
  std::map<std::string, Attribute> attributes = e.node().attributes;
  attributes.erase("channels_last");
  return e.op("AveragePool", {x}, std::move(attributes));
}

Result<ValueId> quantized_global_average_pool(Expansion& e, ValueId x) {
  return e.op("GlobalAveragePool", {x});
}

Result<Values> expand_concat(Expansion& e) {
  Values parts;
  const size_t inputs = e.ctx.num_inputs();
  if (inputs < 5 || (inputs - 2) % 3 != 0)
    return e.ctx.invalid("has " + std::to_string(inputs) + " inputs, not 2 and 3 for each part");
  for (size_t i = 2; i < inputs; i += 3) {
    TS_ASSIGN_OR_RETURN(parts.emplace_back(), dequantized(e, i));
  }
  TS_ASSIGN_OR_RETURN(const ValueId all, e.op("Concat", parts, {{"axis", e.ctx.int_attr("axis", 0)}}));
  return quantized(e, all, 0, e.ctx.dtype(2));
}

Result<Values> expand_where(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const ValueId x, dequantized(e, 1));
  TS_ASSIGN_OR_RETURN(const ValueId y, dequantized(e, 4));
  TS_ASSIGN_OR_RETURN(const ValueId result, e.op("Where", {e.in(0), x, y}));
  return quantized(e, result, 7, e.ctx.dtype(1));
}

// A' B' with integer sums, times both scales, plus the bias (if there is one). `zeros`: the place of the zero
// points of A and of B.
struct IntegerProduct {
  ValueId a = kNoValue, b = kNoValue, a_zero = kNoValue, b_zero = kNoValue;
  ValueId scale = kNoValue;  // of the sums
  ValueId bias = kNoValue;   // f32
};
Result<ValueId> product_of(Expansion& e, const IntegerProduct& p) {
  Values inputs = {p.a, p.b, p.a_zero, p.b_zero};
  while (inputs.back() == kNoValue) inputs.pop_back();
  TS_ASSIGN_OR_RETURN(ValueId sum, e.op("MatMulInteger", inputs));
  TS_ASSIGN_OR_RETURN(sum, e.cast(sum, DType::kF32));
  TS_ASSIGN_OR_RETURN(sum, e.op("Mul", {sum, p.scale}));
  if (p.bias == kNoValue) return sum;
  return e.op("Add", {sum, p.bias});
}

Result<Values> expand_matmul_integer_to_float(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const ValueId scale, e.op("Mul", {e.in(2), e.in(3)}));
  TS_ASSIGN_OR_RETURN(const ValueId result,
                      product_of(e, {e.in(0), e.in(1), e.in(4), e.in(5), scale, e.in(6)}));
  return Values{result};
}

Result<Values> expand_dynamic_quantize_matmul(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const Values a, e.ops("DynamicQuantizeLinear", {e.in(0)}, 3));
  TS_ASSIGN_OR_RETURN(const ValueId scale, e.op("Mul", {a[1], e.in(2)}));
  TS_ASSIGN_OR_RETURN(const ValueId result, product_of(e, {a[0], e.in(1), a[2], e.in(3), scale, e.in(4)}));
  return Values{result};
}

// The bias (input 6) is i32 in steps of both scales. Without a scale of the result, it is f32.
Result<Values> expand_gemm(Expansion& e) {
  OpContext& ctx = e.ctx;
  ValueId a = e.in(0), b = e.in(3);
  if (ctx.rank(0) != 2 || ctx.rank(3) != 2) return ctx.invalid("A and B must be matrices");
  if (ctx.int_attr("transA", 0) != 0) {
    TS_ASSIGN_OR_RETURN(a, e.transpose(a, {1, 0}));
  }
  if (ctx.int_attr("transB", 0) != 0) {
    TS_ASSIGN_OR_RETURN(b, e.transpose(b, {1, 0}));
  }
  Values inputs = {a, b, e.in(2), e.in(5)};
  TS_ASSIGN_OR_RETURN(ValueId sum, e.op("MatMulInteger", inputs));
  if (ctx.has(6)) {
    TS_ASSIGN_OR_RETURN(sum, e.op("Add", {sum, e.in(6)}));
  }
  TS_ASSIGN_OR_RETURN(sum, e.cast(sum, DType::kF32));
  TS_ASSIGN_OR_RETURN(ValueId scale, e.op("Mul", {e.in(1), e.in(4)}));
  if (const double alpha = ctx.float_attr("alpha", 1); alpha != 1) {
    TS_ASSIGN_OR_RETURN(scale, e.op("Mul", {scale, e.scalar(DType::kF32, alpha)}));
  }
  TS_ASSIGN_OR_RETURN(sum, e.op("Mul", {sum, scale}));
  if (!ctx.has(7)) return Values{sum};
  return quantized(e, sum, 7, ctx.dtype(0));
}

template <bool Quantizes>
Result<Values> expand_linear(Expansion& e) {
  Values inputs = {e.in(0), e.in(1)};
  if (e.ctx.has(2)) inputs.push_back(e.in(2));
  TS_ASSIGN_OR_RETURN(const ValueId result, e.op(Quantizes ? "QuantizeLinear" : "DequantizeLinear", inputs,
                                                 {{"axis", e.ctx.int_attr("axis", 1)}}));
  return Values{result};
}

}  // namespace

std::span<const ExpandEntry> quantized_expansions() {
  static const ExpandEntry kEntries[] = {
      {"com.microsoft.DequantizeLinear", "i:TFt", expand_linear<false>, "axis"},
      {"com.microsoft.DynamicQuantizeMatMul", "f:TATut", expand_dynamic_quantize_matmul, ""},
      {"com.microsoft.MatMulIntegerToFloat", "a:AAFFaaf", expand_matmul_integer_to_float, ""},
      {"com.microsoft.QGemm", "i:TFTAFAafa", expand_gemm, "alpha transA transB"},
      {"com.microsoft.QLinearAdd", "i:TFtTFtFt", expand_quantized_add, ""},
      {"com.microsoft.QLinearAveragePool", "i:TFtFt", quantized_unary<with_channels<quantized_average_pool>>,
       "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides"},
      {"com.microsoft.QLinearConcat", "a:FA*", expand_concat, "axis"},
      {"com.microsoft.QLinearGlobalAveragePool", "i:TFtFt",
       quantized_unary<with_channels<quantized_global_average_pool>>, "channels_last"},
      {"com.microsoft.QLinearLeakyRelu", "i:TFtFt", quantized_unary<quantized_leaky_relu>, "alpha"},
      {"com.microsoft.QLinearMul", "i:TFtTFtFt", expand_quantized_mul, ""},
      {"com.microsoft.QLinearReduceMean", "i:TFtFt", quantized_unary<quantized_reduce_mean>, "axes keepdims"},
      {"com.microsoft.QLinearSigmoid", "i:TFtFt", quantized_unary<quantized_sigmoid>, ""},
      {"com.microsoft.QLinearSoftmax", "i:TFtFT", quantized_unary<quantized_softmax>, "axis opset"},
      {"com.microsoft.QLinearWhere", "i:BTFtTFtFt", expand_where, ""},
      {"com.microsoft.QuantizeLinear", "n:TFa", expand_linear<true>, "axis"},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
