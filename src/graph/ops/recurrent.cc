// RNN, GRU and LSTM, unrolled over time: one product for the inputs of all steps, then one product
// and the cell per step.
#include <algorithm>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;

// Each step consists of several stages of its own.
constexpr int64_t kMaxUnrolledSteps = 256;

Result<Expr> activate(const OpContext& ctx, const std::string& name, const Expr& x) {
  const Expr one = ir::make_const(x.dtype(), 1);
  if (name == "Tanh") return ir::call(Intrinsic::kTanh, {x});
  if (name == "Sigmoid") return one / (one + ir::call(Intrinsic::kExp, {-x}));
  if (name == "Relu") return ir::max(ir::make_const(x.dtype(), 0), x);
  if (name == "Softsign") return x / (one + ir::call(Intrinsic::kAbs, {x}));
  return ctx.unsupported("activation " + name);
}

class Recurrence {
 public:
  Recurrence(OpContext& ctx, int64_t gates, size_t activations_per_direction)
      : ctx_(ctx), gates_(gates), per_direction_(activations_per_direction) {}

  Result<Buffers> emit() {
    TS_RETURN_IF_ERROR(read());
    std::vector<Buffers> outputs(directions_);
    for (int64_t d = 0; d < directions_; ++d) {
      TS_RETURN_IF_ERROR(run_direction(d, outputs[d]));
    }
    Buffers results = {sequence_output(outputs), last_output(last_h_, "last_h")};
    if (is_lstm()) results.push_back(last_output(last_c_, "last_c"));
    return results;
  }

 private:
  bool is_lstm() const { return gates_ == 4; }
  bool is_gru() const { return gates_ == 3; }
  // From the fifth input on, the numbers differ between operators.
  static constexpr size_t kLengths = 4;
  static constexpr size_t kInitialH = 5;
  static constexpr size_t kInitialC = 6;
  static constexpr size_t kPeepholes = 7;

  Status expect(size_t i, const Shape& shape) const {
    if (!ctx_.has(i) || ctx_.shape(i) == shape) return {};
    return ctx_.invalid("input " + std::to_string(i) + " is " + describe(ctx_.dtype(i), ctx_.shape(i)) +
                        " instead of " + describe(ctx_.dtype(i), shape));
  }

  Status read() {
    batch_first_ = ctx_.int_attr("layout", 0) != 0;
    if (ctx_.rank(0) != 3 || ctx_.rank(1) != 3 || ctx_.rank(2) != 3) {
      return ctx_.invalid("data and weights must have rank 3");
    }
    steps_ = ctx_.shape(0)[batch_first_ ? 1 : 0];
    batch_ = ctx_.shape(0)[batch_first_ ? 0 : 1];
    inputs_ = ctx_.shape(0)[2];
    hidden_ = ctx_.shape(2)[2];
    const std::string direction = ctx_.string_attr("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
      return ctx_.invalid("unknown direction '" + direction + "'");
    }
    directions_ = direction == "bidirectional" ? 2 : 1;
    first_reversed_ = direction == "reverse";
    if (steps_ < 1 || steps_ > kMaxUnrolledSteps) {
      return ctx_.unsupported("a sequence of " + std::to_string(steps_) + " steps (1 to " +
                              std::to_string(kMaxUnrolledSteps) + " can be unrolled)");
    }
    if (hidden_ < 1 || hidden_ > kMaxGeometry) return ctx_.invalid("the hidden size is out of range");
    TS_RETURN_IF_ERROR(expect(1, {directions_, gates_ * hidden_, inputs_}));
    TS_RETURN_IF_ERROR(expect(2, {directions_, gates_ * hidden_, hidden_}));
    TS_RETURN_IF_ERROR(expect(3, {directions_, 2 * gates_ * hidden_}));
    TS_RETURN_IF_ERROR(expect(kLengths, {batch_}));
    const Shape state =
        batch_first_ ? Shape{batch_, directions_, hidden_} : Shape{directions_, batch_, hidden_};
    TS_RETURN_IF_ERROR(expect(kInitialH, state));
    TS_RETURN_IF_ERROR(expect(kInitialC, state));
    TS_RETURN_IF_ERROR(expect(kPeepholes, {directions_, 3 * hidden_}));
    clip_ = ctx_.float_attr("clip", 0);
    activations_ = ctx_.strings_attr("activations").value_or(std::vector<std::string>{});
    if (activations_.empty()) {
      for (int64_t d = 0; d < directions_; ++d) {
        if (per_direction_ > 1) activations_.push_back("Sigmoid");
        for (size_t k = per_direction_ > 1 ? 1 : 0; k < per_direction_; ++k) activations_.push_back("Tanh");
      }
    }
    if (activations_.size() != directions_ * per_direction_)
      return ctx_.invalid("wrong number of activations");
    if (ctx_.has_attr("activation_alpha") || ctx_.has_attr("activation_beta")) {
      return ctx_.unsupported("activation_alpha and activation_beta");
    }
    if (ctx_.error()) return *ctx_.error();
    return {};
  }

  std::vector<ir::Axis> cell_axes() const { return {{ir::Var("b"), batch_}, {ir::Var("h"), hidden_}}; }

  // Returns the input that a step reads, which is also the position of its result: sequences are
  // reversed within their lengths.
  Expr time_of(int64_t step, const Expr& b, bool reversed) const {
    if (!reversed) return step;
    if (!ctx_.has(kLengths)) return steps_ - 1 - step;
    const Expr length = sequence_length(b);
    return ir::select(Expr(step) < length, length - Expr(step + 1), step);
  }
  Expr sequence_length(const Expr& b) const {
    const Expr length = ir::cast(DType::kI64, ir::load(ctx_.in(kLengths), {b}));
    return ir::min(ir::max(length, 0), steps_);
  }

  // Returns [time, batch, gate * hidden]: the contribution of the inputs to all gates.
  ir::Buffer input_product(int64_t d) {
    std::vector<ir::Axis> axes = axes_for({steps_, batch_, gates_ * hidden_});
    std::vector<ir::Axis> reduce = {{ir::Var("k"), inputs_}};
    const Exprs v = vars_of(axes);
    const Expr k = reduce[0].var;
    const Expr x =
        batch_first_ ? ir::load(ctx_.in(0), {v[1], v[0], k}) : ir::load(ctx_.in(0), {v[0], v[1], k});
    Expr body = x * ir::load(ctx_.in(1), {d, v[2], k});
    return ctx_.reduce("gate_inputs", std::move(axes), std::move(reduce), Combiner::kSum, std::move(body));
  }

  // Returns [batch, gate * hidden] for gates [first, last): the contribution of the state.
  ir::Buffer state_product(int64_t d, const ir::Buffer& state, int64_t first, int64_t last) {
    std::vector<ir::Axis> axes = axes_for({batch_, (last - first) * hidden_});
    std::vector<ir::Axis> reduce = {{ir::Var("k"), hidden_}};
    const Exprs v = vars_of(axes);
    const Expr k = reduce[0].var;
    Expr body = ir::load(state, {v[0], k}) * ir::load(ctx_.in(2), {d, v[1] + Expr(first * hidden_), k});
    return ctx_.reduce("gate_state", std::move(axes), std::move(reduce), Combiner::kSum, std::move(body));
  }

  Expr bias(int64_t d, int64_t gate, const Expr& h, bool recurrent) const {
    const int64_t offset = (recurrent ? gates_ + gate : gate) * hidden_;
    return ir::load(ctx_.in(3), {d, h + Expr(offset)});
  }

  Expr clipped(const Expr& x) const {
    if (clip_ <= 0) return x;
    return ir::min(ir::max(x, ir::make_const(x.dtype(), -clip_)), ir::make_const(x.dtype(), clip_));
  }

  Result<Expr> gate_activation(int64_t d, size_t which, const Expr& x) const {
    return activate(ctx_, activations_[d * per_direction_ + which], clipped(x));
  }

  ir::Buffer initial_state(int64_t d, size_t input, const std::string& name) {
    std::vector<ir::Axis> axes = cell_axes();
    const Expr b = axes[0].var;
    const Expr h = axes[1].var;
    const Expr dir = d;
    Expr body = ir::make_const(ctx_.dtype(0), 0);
    if (ctx_.has(input)) {
      body = batch_first_ ? ir::load(ctx_.in(input), {b, dir, h}) : ir::load(ctx_.in(input), {dir, b, h});
    }
    return ctx_.compute(name, std::move(axes), std::move(body));
  }

  // Beyond its length, a sequence keeps its state.
  Expr masked(int64_t step, const Expr& b, const Expr& next, const Expr& previous) const {
    if (!ctx_.has(kLengths)) return next;
    return ir::select(Expr(step) < sequence_length(b), next, previous);
  }

  Status run_direction(int64_t d, Buffers& states) {
    const bool reversed = first_reversed_ || d == 1;
    const ir::Buffer products = input_product(d);
    ir::Buffer h = initial_state(d, kInitialH, "initial_h");
    ir::Buffer c = is_lstm() ? initial_state(d, kInitialC, "initial_c") : nullptr;
    for (int64_t step = 0; step < steps_; ++step) {
      if (is_lstm()) {
        TS_RETURN_IF_ERROR(lstm_step(d, step, reversed, products, h, c));
      } else if (is_gru()) {
        TS_RETURN_IF_ERROR(gru_step(d, step, reversed, products, h));
      } else {
        TS_RETURN_IF_ERROR(rnn_step(d, step, reversed, products, h));
      }
      states.push_back(h);
    }
    last_h_.push_back(h);
    if (is_lstm()) last_c_.push_back(c);
    return {};
  }

  // Returns the sum that is the input of a gate's activation, without peepholes.
  Expr preactivation(int64_t d, int64_t gate, int64_t step, bool reversed, const ir::Buffer& products,
                     const ir::Buffer& state, const Expr& b, const Expr& h) const {
    const Expr index = h + Expr(gate * hidden_);
    Expr sum = ir::load(products, {time_of(step, b, reversed), b, index}) + ir::load(state, {b, index});
    if (ctx_.has(3)) sum = sum + bias(d, gate, h, false) + bias(d, gate, h, true);
    return sum;
  }

  Status rnn_step(int64_t d, int64_t step, bool reversed, const ir::Buffer& products, ir::Buffer& state) {
    const ir::Buffer recurrent = state_product(d, state, 0, 1);
    std::vector<ir::Axis> axes = cell_axes();
    const Expr b = axes[0].var;
    const Expr h = axes[1].var;
    TS_ASSIGN_OR_RETURN(
        const Expr next,
        gate_activation(d, 0, preactivation(d, 0, step, reversed, products, recurrent, b, h)));
    Expr body = masked(step, b, next, ir::load(state, {b, h}));
    state = ctx_.compute("hidden", std::move(axes), std::move(body));
    return {};
  }

  // Gates z, r, h.
  Status gru_step(int64_t d, int64_t step, bool reversed, const ir::Buffer& products, ir::Buffer& state) {
    const bool linear_before_reset = ctx_.int_attr("linear_before_reset", 0) != 0;
    const ir::Buffer recurrent = state_product(d, state, 0, linear_before_reset ? 3 : 2);
    ir::Buffer candidate_product;
    if (!linear_before_reset) {
      std::vector<ir::Axis> axes = cell_axes();
      const Expr b = axes[0].var;
      const Expr h = axes[1].var;
      TS_ASSIGN_OR_RETURN(
          const Expr r,
          gate_activation(d, 0, preactivation(d, 1, step, reversed, products, recurrent, b, h)));
      const ir::Buffer reset = ctx_.compute("reset_state", std::move(axes), r * ir::load(state, {b, h}));
      candidate_product = state_product(d, reset, 2, 3);
    }
    std::vector<ir::Axis> axes = cell_axes();
    const Expr b = axes[0].var;
    const Expr h = axes[1].var;
    const Expr previous = ir::load(state, {b, h});
    TS_ASSIGN_OR_RETURN(
        const Expr z, gate_activation(d, 0, preactivation(d, 0, step, reversed, products, recurrent, b, h)));
    Expr candidate = ir::load(products, {time_of(step, b, reversed), b, h + Expr(2 * hidden_)});
    if (ctx_.has(3)) candidate = candidate + bias(d, 2, h, false);
    if (linear_before_reset) {
      TS_ASSIGN_OR_RETURN(
          const Expr r,
          gate_activation(d, 0, preactivation(d, 1, step, reversed, products, recurrent, b, h)));
      Expr linear = ir::load(recurrent, {b, h + Expr(2 * hidden_)});
      if (ctx_.has(3)) linear = linear + bias(d, 2, h, true);
      candidate = candidate + r * linear;
    } else {
      candidate = candidate + ir::load(candidate_product, {b, h});
      if (ctx_.has(3)) candidate = candidate + bias(d, 2, h, true);
    }
    TS_ASSIGN_OR_RETURN(const Expr fresh, gate_activation(d, 1, candidate));
    const Expr next = (ir::make_const(z.dtype(), 1) - z) * fresh + z * previous;
    Expr body = masked(step, b, next, previous);
    state = ctx_.compute("hidden", std::move(axes), std::move(body));
    return {};
  }

  // Gates i, o, f, c; peepholes i, o, f.
  Status lstm_step(int64_t d, int64_t step, bool reversed, const ir::Buffer& products, ir::Buffer& state,
                   ir::Buffer& cell) {
    const ir::Buffer recurrent = state_product(d, state, 0, 4);
    const bool coupled = ctx_.int_attr("input_forget", 0) != 0;
    const auto peephole = [&](int64_t gate, const Expr& h, const Expr& c) {
      return ir::load(ctx_.in(kPeepholes), {d, h + Expr(gate * hidden_)}) * c;
    };
    const auto gate = [&](int64_t which, size_t activation, const Expr& b, const Expr& h,
                          const Expr& peeped) -> Result<Expr> {
      Expr sum = preactivation(d, which, step, reversed, products, recurrent, b, h);
      if (ctx_.has(kPeepholes) && which < 3) sum = sum + peephole(which, h, peeped);
      return gate_activation(d, activation, sum);
    };
    std::vector<ir::Axis> axes = cell_axes();
    const Expr b = axes[0].var;
    const Expr h = axes[1].var;
    const Expr old_cell = ir::load(cell, {b, h});
    TS_ASSIGN_OR_RETURN(const Expr input, gate(0, 0, b, h, old_cell));
    TS_ASSIGN_OR_RETURN(Expr forget, gate(2, 0, b, h, old_cell));
    if (coupled) forget = ir::make_const(input.dtype(), 1) - input;
    TS_ASSIGN_OR_RETURN(const Expr fresh, gate(3, 1, b, h, old_cell));
    Expr body = masked(step, b, forget * old_cell + input * fresh, old_cell);
    cell = ctx_.compute("cell", std::move(axes), std::move(body));

    std::vector<ir::Axis> out = cell_axes();
    const Expr ob = out[0].var;
    const Expr oh = out[1].var;
    const Expr new_cell = ir::load(cell, {ob, oh});
    TS_ASSIGN_OR_RETURN(const Expr output, gate(1, 0, ob, oh, new_cell));
    TS_ASSIGN_OR_RETURN(const Expr shown, activate(ctx_, activations_[d * per_direction_ + 2], new_cell));
    Expr hidden = masked(step, ob, output * shown, ir::load(state, {ob, oh}));
    state = ctx_.compute("hidden", std::move(out), std::move(hidden));
    return {};
  }

  // Returns states[t] for t in [begin, end), selected by a balanced tree of selects.
  static Expr choose(const Buffers& states, int64_t begin, int64_t end, const Expr& step, const Exprs& at) {
    if (end - begin == 1) return ir::load(states[begin], at);
    const int64_t middle = begin + (end - begin) / 2;
    return ir::select(step < Expr(middle), choose(states, begin, middle, step, at),
                      choose(states, middle, end, step, at));
  }

  // Y: (time, direction, batch, hidden), or (batch, time, direction, hidden).
  ir::Buffer sequence_output(const std::vector<Buffers>& outputs) {
    std::vector<ir::Axis> axes = axes_for(batch_first_ ? Shape{batch_, steps_, directions_, hidden_}
                                                       : Shape{steps_, directions_, batch_, hidden_});
    const Exprs v = vars_of(axes);
    const Expr t = batch_first_ ? v[1] : v[0];
    const Expr dir = batch_first_ ? v[2] : v[1];
    const Expr b = batch_first_ ? v[0] : v[2];
    Expr body;
    for (int64_t d = directions_; d-- > 0;) {
      const bool reversed = first_reversed_ || d == 1;
      Expr step = t;
      if (reversed) {
        step = (ctx_.has(kLengths) ? sequence_length(b) : Expr(steps_)) - 1 - t;
      }
      Expr value = choose(outputs[d], 0, outputs[d].size(), step, {b, v[3]});
      if (ctx_.has(kLengths)) {
        value = ir::select(t < sequence_length(b), value, ir::make_const(ctx_.dtype(0), 0));
      }
      body = body.defined() ? ir::select(dir == Expr(d), value, body) : value;
    }
    return ctx_.compute("sequence", std::move(axes), std::move(body));
  }

  ir::Buffer last_output(const Buffers& states, const std::string& name) {
    std::vector<ir::Axis> axes =
        axes_for(batch_first_ ? Shape{batch_, directions_, hidden_} : Shape{directions_, batch_, hidden_});
    const Exprs v = vars_of(axes);
    const Expr dir = batch_first_ ? v[1] : v[0];
    const Expr b = batch_first_ ? v[0] : v[1];
    Expr body = choose(states, 0, states.size(), dir, {b, v[2]});
    return ctx_.compute(name, std::move(axes), std::move(body));
  }

  OpContext& ctx_;
  int64_t gates_;
  size_t per_direction_;
  bool batch_first_ = false;
  bool first_reversed_ = false;
  int64_t directions_ = 1;
  int64_t steps_ = 0;
  int64_t batch_ = 0;
  int64_t inputs_ = 0;
  int64_t hidden_ = 0;
  double clip_ = 0;
  std::vector<std::string> activations_;
  Buffers last_h_;
  Buffers last_c_;
};

Result<Buffers> emit_rnn(OpContext& ctx) { return Recurrence(ctx, 1, 1).emit(); }
Result<Buffers> emit_gru(OpContext& ctx) { return Recurrence(ctx, 3, 2).emit(); }
Result<Buffers> emit_lstm(OpContext& ctx) { return Recurrence(ctx, 4, 3).emit(); }

}  // namespace

std::span<const OpEntry> recurrent_operators() {
  static const OpEntry kEntries[] = {
      {"GRU", "f:TTTtit", emit_gru, 0, 7},
      {"LSTM", "f:TTTtittt", emit_lstm, 0, 7},
      {"RNN", "f:TTTtit", emit_rnn, 0, 7},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
