// Operators of ONNX Runtime (com.microsoft) that its optimizer and exporters write, as functions over
// standard ones. docs/operators.md lists them; ONNX Runtime's docs/ContribOperators.md defines them.
#include <algorithm>
#include <cmath>

#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using Values = std::vector<ValueId>;

Result<Values> only(Result<ValueId> value) {
  if (!value.ok()) return std::move(value).error();
  return Values{*value};
}

// Returns id + other; `id` if there is no other.
Result<ValueId> plus(Expansion& e, ValueId id, ValueId other) {
  return other == kNoValue ? Result<ValueId>(id) : e.op("Add", {id, other});
}

Result<Values> expand_bias_gelu(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const ValueId sum, plus(e, e.in(0), e.in(1)));
  return only(e.op("Gelu", {sum}));
}

Result<Values> expand_fast_gelu(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const ValueId sum, plus(e, e.in(0), e.in(1)));
  return only(e.op("Gelu", {sum}, {{"approximate", std::string("tanh")}}));
}

Result<Values> expand_quick_gelu(Expansion& e) {
  return only(e.op("Swish", {e.in(0)}, {{"alpha", e.ctx.float_attr("alpha", 1.702)}}));
}

Result<Values> expand_bias_add(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const ValueId sum, plus(e, e.in(0), e.in(1)));
  return only(plus(e, sum, e.in(2)));
}

// gelu of the second half of the channels, times the first half.
Result<Values> expand_bias_split_gelu(Expansion& e) {
  const Shape& shape = e.ctx.shape(0);
  if (shape.empty() || shape.back() % 2 != 0) return e.ctx.invalid("the last dimension must be even");
  TS_ASSIGN_OR_RETURN(const ValueId sum, plus(e, e.in(0), e.in(1)));
  const int64_t axis = std::ssize(shape) - 1, half = shape.back() / 2;
  TS_ASSIGN_OR_RETURN(const ValueId value, e.slice(sum, axis, 0, half));
  TS_ASSIGN_OR_RETURN(ValueId gate, e.slice(sum, axis, half, 2 * half));
  TS_ASSIGN_OR_RETURN(gate, e.op("Gelu", {gate}));
  return only(e.op("Mul", {value, gate}));
}

// Applies the function that attribute `activation` names, with its parameters.
Result<ValueId> activate(Expansion& e, ValueId id, const std::string& name,
                         const std::vector<double>& parameters) {
  const auto parameter = [&](size_t i, double otherwise) {
    return i < parameters.size() ? parameters[i] : otherwise;
  };
  if (name.empty()) return id;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "HardSwish" || name == "Gelu")
    return e.op(name, {id});
  if (name == "LeakyRelu") return e.op(name, {id}, {{"alpha", parameter(0, 0.01)}});
  if (name == "HardSigmoid")
    return e.op(name, {id}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (name == "Clip") {
    const DType dtype = e.dtype(id);
    return e.op(name, {id, e.scalar(dtype, parameter(0, std::numeric_limits<float>::lowest())),
                       e.scalar(dtype, parameter(1, std::numeric_limits<float>::max()))});
  }
  return e.ctx.unsupported("activation '" + name + "'");
}

// Returns the attributes of the node that the standard operator has, too.
std::map<std::string, Attribute> kept(const Node& node, std::initializer_list<const char*> names) {
  std::map<std::string, Attribute> attributes;
  for (const char* name : names) {
    const auto found = node.attributes.find(name);
    if (found != node.attributes.end()) attributes.insert(*found);
  }
  return attributes;
}

// Conv, plus input 3 (Z), then the activation.
Result<Values> expand_fused_conv(Expansion& e) {
  Values inputs = {e.in(0), e.in(1)};
  if (e.ctx.has(2)) inputs.push_back(e.in(2));
  TS_ASSIGN_OR_RETURN(
      ValueId result,
      e.op("Conv", inputs,
           kept(e.node(), {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})));
  TS_ASSIGN_OR_RETURN(result, plus(e, result, e.in(3)));
  return only(activate(e, result, e.ctx.string_attr("activation", ""),
                       e.ctx.floats_attr("activation_params").value_or(std::vector<double>())));
}

Result<Values> expand_fused_gemm(Expansion& e) {
  Values inputs = {e.in(0), e.in(1)};
  if (e.ctx.has(2)) inputs.push_back(e.in(2));
  TS_ASSIGN_OR_RETURN(const ValueId product,
                      e.op("Gemm", inputs, kept(e.node(), {"alpha", "beta", "transA", "transB"})));
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (e.ctx.has_attr(name)) parameters.push_back(e.ctx.float_attr(name, 0));
  return only(activate(e, product, e.ctx.string_attr("activation", ""), parameters));
}

// Returns a matrix, or a batch of them, as attributes transX and transBatchX of FusedMatMul say. With
// transBatchX, the first dimension is moved to the place before the last one.
Result<ValueId> matrix(Expansion& e, ValueId id, bool transposed, bool batch_transposed) {
  const auto rank = static_cast<int64_t>(e.shape(id).size());
  if (rank < 2) return id;  // a vector has nothing to transpose
  std::vector<int64_t> order;
  for (int64_t d = 0; d < rank; ++d) order.push_back(d);
  if (batch_transposed) {
    if (rank < 3) return e.ctx.invalid("transBatchA and transBatchB need a rank of at least 3");
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  }
  if (transposed) std::swap(order[rank - 1], order[rank - 2]);
  if (std::ranges::is_sorted(order)) return id;
  return e.transpose(id, order);
}

Result<Values> expand_fused_matmul(Expansion& e) {
  OpContext& ctx = e.ctx;
  TS_ASSIGN_OR_RETURN(const ValueId a, matrix(e, e.in(0), ctx.int_attr("transA", 0) != 0,
                                              ctx.int_attr("transBatchA", 0) != 0));
  TS_ASSIGN_OR_RETURN(const ValueId b, matrix(e, e.in(1), ctx.int_attr("transB", 0) != 0,
                                              ctx.int_attr("transBatchB", 0) != 0));
  TS_ASSIGN_OR_RETURN(ValueId product, e.op("MatMul", {a, b}));
  const double alpha = ctx.float_attr("alpha", 1);
  if (alpha != 1) {
    TS_ASSIGN_OR_RETURN(product, e.op("Mul", {product, e.scalar(ctx.dtype(0), alpha)}));
  }
  if (!ctx.has_attr("activation")) return Values{product};
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (ctx.has_attr(name)) parameters.push_back(ctx.float_attr(name, 0));
  return only(activate(e, product, ctx.string_attr("activation", ""), parameters));
}

// input + skip + bias, normalized over the last dimension. Outputs: the result, the mean, the inverse of the
// standard deviation, and the sum. The simplified form has no mean and no shift (RMSNormalization).
template <bool Simplified>
Result<Values> expand_skip_normalization(Expansion& e) {
  OpContext& ctx = e.ctx;
  const size_t bias = Simplified ? 3 : 4;
  if (ctx.wants_output(1) || ctx.wants_output(2)) return ctx.unsupported("the outputs mean and inv_std_var");
  TS_ASSIGN_OR_RETURN(ValueId sum, e.op("Add", {e.in(0), e.in(1)}));
  TS_ASSIGN_OR_RETURN(sum, plus(e, sum, e.in(bias)));
  const std::map<std::string, Attribute> attributes = {{"axis", int64_t{-1}},
                                                       {"epsilon", ctx.float_attr("epsilon", 1e-12)}};
  Values inputs = {sum, e.in(2)};
  if (!Simplified && ctx.has(3)) inputs.push_back(e.in(3));
  TS_ASSIGN_OR_RETURN(const ValueId result,
                      e.op(Simplified ? "RMSNormalization" : "LayerNormalization", inputs, attributes));
  return Values{result, kNoValue, kNoValue, sum};
}

// An operator of ONNX Runtime in the standard domain, which exporters wrote before RMSNormalization.
Result<Values> expand_simplified_normalization(Expansion& e) {
  if (e.ctx.wants_output(1)) return e.ctx.unsupported("the output inv_std_var");
  return only(e.op("RMSNormalization", {e.in(0), e.in(1)},
                   {{"axis", e.ctx.int_attr("axis", -1)}, {"epsilon", e.ctx.float_attr("epsilon", 1e-5)}}));
}

// As the standard operator, but positions come second, and a single number is the position of the first
// element of each sequence.
Result<Values> expand_contributed_rotary(Expansion& e) {
  OpContext& ctx = e.ctx;
  if (ctx.int_attr("is_packed_batching", 0) != 0) return ctx.unsupported("is_packed_batching");
  if (const double scale = ctx.float_attr("scale", 1); scale != 1) return ctx.unsupported("scale");
  const size_t rank = ctx.rank(0);
  if (rank != 3 && rank != 4) return ctx.invalid("the data must have rank 3 or 4");
  const int64_t batch = ctx.shape(0)[0], length = ctx.shape(0)[rank == 4 ? 2 : 1];
  ValueId positions = e.in(1);
  if (product(ctx.shape(1)) == 1 && ctx.shape(1) != Shape{batch, length}) {
    TS_ASSIGN_OR_RETURN(positions, e.reshape(positions, {1, 1}));
    lower::Tensor steps = lower::Tensor::zeros(DType::kI64, {batch, length});
    for (int64_t i = 0; i < batch * length; ++i) steps.set(i, ir::scalar_int(DType::kI64, i % length));
    TS_ASSIGN_OR_RETURN(positions, e.op("Add", {positions, e.constant(std::move(steps))}));
  }
  std::map<std::string, Attribute> attributes =
      kept(e.node(), {"interleaved", "num_heads", "rotary_embedding_dim"});
  if (rank == 3 && ctx.int_attr("num_heads", 0) == 0) {
    // Without the number of heads, their depth is twice the width of the caches.
    const int64_t depth = 2 * ctx.shape(2).back();
    if (ctx.rank(2) != 2 || depth == 0 || ctx.shape(0)[2] % depth != 0)
      return ctx.invalid("the caches do not fit the data");
    attributes.insert_or_assign("num_heads", ctx.shape(0)[2] / depth);
  }
  return only(e.op("RotaryEmbedding", {e.in(0), e.in(2), e.in(3), positions}, std::move(attributes)));
}

// Sum of the embeddings of words, positions and segments, normalized. Inputs: input_ids, segment_ids, tables of words,
// positions and segments, gamma, beta, mask, position_ids. Outputs: the result, the number of tokens that the mask
// shows, the sum.
Result<Values> expand_embedding(Expansion& e) {
  OpContext& ctx = e.ctx;
  if (ctx.rank(0) != 2) return ctx.invalid("input_ids must have rank 2");
  TS_ASSIGN_OR_RETURN(ValueId sum, e.op("Gather", {e.in(2), e.in(0)}));
  ValueId positions = kNoValue;
  if (ctx.has(8)) {
    TS_ASSIGN_OR_RETURN(positions, e.op("Gather", {e.in(3), e.in(8)}));
  } else {
    TS_ASSIGN_OR_RETURN(positions, e.slice(e.in(3), 0, 0, ctx.shape(0)[1]));
  }
  TS_ASSIGN_OR_RETURN(sum, e.op("Add", {sum, positions}));
  if (ctx.has(1) && ctx.has(4)) {
    TS_ASSIGN_OR_RETURN(const ValueId segments, e.op("Gather", {e.in(4), e.in(1)}));
    TS_ASSIGN_OR_RETURN(sum, e.op("Add", {sum, segments}));
  }
  TS_ASSIGN_OR_RETURN(const ValueId result,
                      e.op("LayerNormalization", {sum, e.in(5), e.in(6)},
                           {{"axis", int64_t{-1}}, {"epsilon", ctx.float_attr("epsilon", 1e-12)}}));
  ValueId shown = kNoValue;
  if (ctx.wants_output(1)) {
    if (ctx.has(7)) {
      TS_ASSIGN_OR_RETURN(shown, e.op("ReduceSum", {e.in(7), e.ints({1})}, {{"keepdims", int64_t{0}}}));
    } else {
      shown = e.constant(lower::Tensor::zeros(DType::kI32, {ctx.shape(0)[0]}));
    }
  }
  return Values{result, shown, sum};
}

// Softmax of the sum of data and bias, of which the dimensions from `axis` on are one.
Result<Values> expand_bias_softmax(Expansion& e) {
  TS_ASSIGN_OR_RETURN(const ValueId sum, e.op("Add", {e.in(0), e.in(1)}));
  const auto rank = static_cast<int64_t>(e.ctx.rank(0));
  TS_ASSIGN_OR_RETURN(const size_t axis, e.ctx.normalize_axis(e.ctx.int_attr("axis", 1), rank));
  Shape flat(e.ctx.shape(0).begin(), e.ctx.shape(0).begin() + static_cast<int64_t>(axis));
  flat.push_back(product(std::span(e.ctx.shape(0)).subspan(axis)));
  TS_ASSIGN_OR_RETURN(ValueId result, e.reshape(sum, flat));
  TS_ASSIGN_OR_RETURN(result, e.op("Softmax", {result}, {{"axis", int64_t{-1}}}));
  return only(e.reshape(result, e.ctx.shape(0)));
}

}  // namespace

std::span<const ExpandEntry> contributed_expansions() {
  static const ExpandEntry kEntries[] = {
      {"SimplifiedLayerNormalization", "f:TU", expand_simplified_normalization, "axis epsilon stash_type"},
      {"com.microsoft.BiasAdd", "f:TTt", expand_bias_add, ""},
      {"com.microsoft.BiasGelu", "f:TT", expand_bias_gelu, ""},
      {"com.microsoft.BiasSoftmax", "f:TT", expand_bias_softmax, "axis is_inner_broadcast"},
      {"com.microsoft.BiasSplitGelu", "f:TT", expand_bias_split_gelu, ""},
      {"com.microsoft.EmbedLayerNormalization", "f:IiTTtTTii", expand_embedding, "epsilon mask_index_type"},
      {"com.microsoft.FastGelu", "f:Tt", expand_fast_gelu, ""},
      {"com.microsoft.FusedConv", "f:TTtt", expand_fused_conv,
       "activation activation_params auto_pad dilations group kernel_shape pads strides"},
      {"com.microsoft.FusedGemm", "f:TTt", expand_fused_gemm,
       "activation activation_alpha activation_beta activation_gamma alpha beta transA transB"},
      {"com.microsoft.FusedMatMul", "f:TT", expand_fused_matmul,
       "alpha transA transB transBatchA transBatchB"},
      {"com.microsoft.FusedMatMulActivation", "f:TT", expand_fused_matmul,
       "activation activation_alpha activation_axis activation_beta activation_gamma alpha transA transB "
       "transBatchA transBatchB"},
      {"com.microsoft.Gelu", "f:T", expand_bias_gelu, ""},
      {"com.microsoft.QuickGelu", "f:T", expand_quick_gelu, "alpha"},
      {"com.microsoft.RotaryEmbedding", "f:TLTT", expand_contributed_rotary,
       "interleaved is_packed_batching num_heads rotary_embedding_dim scale"},
      {"com.microsoft.SkipLayerNormalization", "f:TTTtt", expand_skip_normalization<false>, "epsilon"},
      {"com.microsoft.SkipSimplifiedLayerNormalization", "f:TTTt", expand_skip_normalization<true>,
       "epsilon"},
      {"com.microsoft.TransposeMatMul", "f:TT", expand_fused_matmul,
       "alpha transA transB transBatchA transBatchB"},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
