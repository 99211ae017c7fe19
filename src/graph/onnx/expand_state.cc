// Expands operators of recurrent language models that carry a state from call to call: CausalConvWithState (opset 27).
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

}  // namespace

std::span<const ExpandEntry> state_expansions() {
  static const ExpandEntry kEntries[] = {
      {"CausalConvWithState", "f:TTtt", expand_causal_conv},
      {"com.microsoft.CausalConvWithState", "f:TTtt", expand_causal_conv, "activation ndim"},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
