// Expands operators of recurrent language models that carry a state from call to call: CausalConvWithState and
// LinearAttention (opset 27).
#include <cmath>

#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

namespace {

// Each channel is convolved with its own kernel of k elements over the present and the k - 1 elements before it. Those
// before the first are the past state, or 0. The new state is the last k - 1 elements.
Result<std::vector<ValueId>> expand_causal_conv(Expansion& e) {
  OpContext& ctx = e.ctx;
  if (ctx.rank(0) != 3 || ctx.rank(1) != 3 || ctx.shape(1)[0] != ctx.shape(0)[1] || ctx.shape(1)[1] != 1 ||
      ctx.shape(1)[2] < 1)
    return ctx.invalid("input " + describe(ctx.dtype(0), ctx.shape(0)) + " and weight " +
                       describe(ctx.dtype(1), ctx.shape(1)) +
                       " must be (batch, channels, length) and (channels, 1, k)");
  if (ctx.int_attr("ndim", 1) != 1) return ctx.unsupported("ndim other than 1");
  const int64_t batch = ctx.shape(0)[0], channels = ctx.shape(0)[1], length = ctx.shape(0)[2];
  const int64_t past = ctx.shape(1)[2] - 1;
  ValueId padded = e.in(0);
  if (ctx.has(3)) {
    if (ctx.shape(3) != Shape{batch, channels, past})
      return ctx.invalid("past_state is " + describe(ctx.dtype(3), ctx.shape(3)) + " instead of " +
                         describe(ctx.dtype(3), {batch, channels, past}));
    TS_ASSIGN_OR_RETURN(padded, e.op("Concat", {e.in(3), padded}, {{"axis", int64_t{2}}}));
  } else if (past > 0) {
    TS_ASSIGN_OR_RETURN(padded, e.op("Pad", {padded, e.ints({0, 0, past, 0, 0, 0})}));
  }
  std::vector<ValueId> inputs = {padded, e.in(1)};
  if (ctx.has(2)) inputs.push_back(e.in(2));
  TS_ASSIGN_OR_RETURN(ValueId result, e.op("Conv", inputs, {{"group", channels}}));
  const std::string activation = ctx.string_attr("activation", "none");
  if (activation == "silu" || activation == "swish") {
    TS_ASSIGN_OR_RETURN(result, e.op("Swish", {result}));
  } else if (activation != "none") {
    return ctx.invalid("unknown activation '" + activation + "'");
  }
  TS_ASSIGN_OR_RETURN(const ValueId present, e.slice(padded, 2, length, length + past));
  return std::vector<ValueId>{result, present};
}

// The state S of a head is a matrix (depth, width). A token has a key k, a value v, a decay g and a rate b, and its result is
// scale q^T S after
//   S = exp(g) S + k (b (v - k^T exp(g) S))^T
// where, by the attribute update_rule, there is no decay, or v is not corrected ("linear", "gated").
class LinearAttention {
 public:
  explicit LinearAttention(Expansion& e) : e_(e) {}

  Result<std::vector<ValueId>> expand() {
    TS_RETURN_IF_ERROR(read_inputs());
    std::vector<ValueId> results;
    for (int64_t t = 0; t < tokens_; ++t) {
      TS_ASSIGN_OR_RETURN(results.emplace_back(), token(t));
    }
    ValueId result = results[0];
    if (tokens_ > 1) {
      TS_ASSIGN_OR_RETURN(result, e_.op("Concat", results, {{"axis", int64_t{1}}}));
    }
    TS_ASSIGN_OR_RETURN(result, e_.cast(result, ctx_.dtype(0)));
    TS_ASSIGN_OR_RETURN(const ValueId present, e_.cast(state_, ctx_.has(3) ? ctx_.dtype(3) : ctx_.dtype(0)));
    return std::vector<ValueId>{result, present};
  }

 private:
  Status read_inputs() {
    // Each token becomes some ten nodes.
    constexpr int64_t kMostTokens = 512;
    for (const size_t i : {0, 1, 2})
      if (ctx_.rank(i) != 3) return ctx_.invalid("query, key and value must have rank 3");
    const Shape &q = ctx_.shape(0), &k = ctx_.shape(1), &v = ctx_.shape(2);
    const int64_t heads = ctx_.int_attr("q_num_heads", 0);
    kv_heads_ = ctx_.int_attr("kv_num_heads", 0);
    if (heads < 1 || kv_heads_ < 1 || heads % kv_heads_ != 0 || q[2] % heads != 0 || k[2] % kv_heads_ != 0 ||
        v[2] % kv_heads_ != 0 || q[2] / heads != k[2] / kv_heads_)
      return ctx_.invalid("the numbers of heads do not fit query, key and value");
    batch_ = q[0];
    tokens_ = q[1];
    shared_ = heads / kv_heads_;
    depth_ = q[2] / heads;
    width_ = v[2] / kv_heads_;
    if (tokens_ < 1 || tokens_ > kMostTokens)
      return ctx_.unsupported(std::to_string(tokens_) + " tokens (1 to " + std::to_string(kMostTokens) + ")");
    const std::string rule = ctx_.string_attr("update_rule", "gated_delta");
    if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
      return ctx_.invalid("unknown update_rule '" + rule + "'");
    decays_ = rule.starts_with("gated");
    corrects_ = rule.ends_with("delta");
    if ((decays_ && !ctx_.has(4)) || (corrects_ && !ctx_.has(5)))
      return ctx_.invalid("the inputs decay and beta do not fit update_rule '" + rule + "'");
    scale_ = ctx_.float_attr("scale", 0);
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(depth_));
    dtype_ = wide(ctx_.dtype(0));
    if (ctx_.has(3)) {
      if (ctx_.shape(3) != Shape{batch_, kv_heads_, depth_, width_})
        return ctx_.invalid("past_state has another shape");
      TS_ASSIGN_OR_RETURN(state_, e_.cast(e_.in(3), dtype_));
    } else {
      state_ = e_.constant(lower::Tensor::zeros(dtype_, {batch_, kv_heads_, depth_, width_}));
    }
    return {};
  }

  // Returns input i of token t as (batch, kv heads, rows, columns).
  Result<ValueId> part(size_t i, int64_t t, int64_t rows, int64_t columns) {
    ValueId id = e_.in(i);
    if (tokens_ > 1) {
      TS_ASSIGN_OR_RETURN(id, e_.slice(id, 1, t, t + 1));
    }
    TS_ASSIGN_OR_RETURN(id, e_.cast(id, dtype_));
    return e_.reshape(id, {batch_, e_.shape(id)[2] / (rows * columns), rows, columns});
  }

  Result<ValueId> token(int64_t t) {
    TS_ASSIGN_OR_RETURN(const ValueId key, part(1, t, depth_, 1));
    TS_ASSIGN_OR_RETURN(ValueId value, part(2, t, 1, width_));
    if (decays_) {
      const bool by_depth = ctx_.shape(4)[2] == kv_heads_ * depth_ && depth_ > 1;
      TS_ASSIGN_OR_RETURN(ValueId decay, part(4, t, by_depth ? depth_ : 1, 1));
      TS_ASSIGN_OR_RETURN(decay, e_.op("Exp", {decay}));
      TS_ASSIGN_OR_RETURN(state_, e_.op("Mul", {state_, decay}));
    }
    if (corrects_) {
      TS_ASSIGN_OR_RETURN(const ValueId row, e_.reshape(key, {batch_, kv_heads_, 1, depth_}));
      TS_ASSIGN_OR_RETURN(const ValueId known, e_.op("MatMul", {row, state_}));
      TS_ASSIGN_OR_RETURN(value, e_.op("Sub", {value, known}));
      TS_ASSIGN_OR_RETURN(const ValueId rate, part(5, t, 1, 1));
      TS_ASSIGN_OR_RETURN(value, e_.op("Mul", {value, rate}));
    }
    TS_ASSIGN_OR_RETURN(const ValueId update, e_.op("Mul", {key, value}));
    TS_ASSIGN_OR_RETURN(state_, e_.op("Add", {state_, update}));
    TS_ASSIGN_OR_RETURN(const ValueId query, part(0, t, shared_, depth_));
    TS_ASSIGN_OR_RETURN(ValueId result, e_.op("MatMul", {query, state_}));
    TS_ASSIGN_OR_RETURN(result, e_.op("Mul", {result, e_.scalar(dtype_, scale_)}));
    return e_.reshape(result, {batch_, 1, kv_heads_ * shared_ * width_});
  }

  Expansion& e_;
  OpContext& ctx_ = e_.ctx;
  int64_t batch_ = 0, tokens_ = 0, kv_heads_ = 0, depth_ = 0, width_ = 0;
  int64_t shared_ = 1;  // query heads of a state
  bool decays_ = false, corrects_ = false;
  double scale_ = 1;
  ir::DType dtype_ = ir::DType::kF32;
  ValueId state_ = kNoValue;  // (batch, kv heads, depth, width)
};

Result<std::vector<ValueId>> expand_linear_attention(Expansion& e) { return LinearAttention(e).expand(); }

}  // namespace

std::span<const ExpandEntry> state_expansions() {
  static const ExpandEntry kEntries[] = {
      {"CausalConvWithState", "f:TTtt", expand_causal_conv},
      {"LinearAttention", "f:TTTftt", expand_linear_attention},
      {"com.microsoft.CausalConvWithState", "f:TTtt", expand_causal_conv, "activation ndim"},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
