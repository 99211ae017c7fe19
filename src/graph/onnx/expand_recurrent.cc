// Expands RNN, GRU, LSTM and ONNX Runtime's DynamicQuantizeLSTM: one product for the inputs of all steps, then a loop over
// the steps, for each direction.
#include <algorithm>
#include <optional>

#include "graph/onnx/body.h"
#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

namespace {

// An activation with the parameters that its operator takes.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

// Parameters that an activation takes, with the default values of the operator of that name; there are none for Affine
// and ScaledTanh.
struct ActivationRow {
  std::string_view name;
  int parameters = 0;
  std::optional<double> alpha = {}, beta = {};
};
constexpr ActivationRow kActivations[] = {{"Affine", 2},
                                          {"Elu", 1, 1.},
                                          {"HardSigmoid", 2, .2, .5},
                                          {"LeakyRelu", 1, .01},
                                          {"Relu"},
                                          {"ScaledTanh", 2},
                                          {"Sigmoid"},
                                          {"Softplus"},
                                          {"Softsign"},
                                          {"Tanh"},
                                          {"ThresholdedRelu", 1, 1.}};

class Recurrence {
 public:
  // `quantized`: the weights are integers, (directions, inputs, gates * hidden), with scales and zero points.
  Recurrence(Expansion& e, int64_t gates, size_t activations, bool quantized = false)
      : e_(e), ctx_(e.ctx), gates_(gates), per_direction_(activations), quantized_(quantized) {}

  // The values of one direction.
  struct Direction {
    ValueId sequence;             // (time, batch, hidden)
    std::vector<ValueId> states;  // each (batch, hidden)
  };

  Result<std::vector<ValueId>> expand() {
    TS_RETURN_IF_ERROR(read_attributes());
    TS_RETURN_IF_ERROR(read_activations());
    TS_RETURN_IF_ERROR(read_inputs());
    std::vector<Direction> made;
    for (int64_t d = 0; d < directions_; ++d) {
      TS_ASSIGN_OR_RETURN(made.emplace_back(), run_direction(d));
    }
    std::vector<ValueId> results;
    TS_ASSIGN_OR_RETURN(results.emplace_back(), sequence_output(made));
    for (size_t s = 0; s < made[0].states.size(); ++s) {
      TS_ASSIGN_OR_RETURN(results.emplace_back(), state_output(made, s));
    }
    return results;
  }

 private:
  static constexpr size_t kLengths = 4, kInitialH = 5, kInitialC = 6, kPeepholes = 7, kScales = 8;
  bool is_lstm() const { return gates_ == 4; }
  bool is_gru() const { return gates_ == 3; }

  Status expect(size_t i, const Shape& shape) const {
    if (!ctx_.has(i) || ctx_.shape(i) == shape) return {};
    return ctx_.invalid("input " + std::to_string(i) + " is " + describe(ctx_.dtype(i), ctx_.shape(i)) +
                        " instead of " + describe(ctx_.dtype(i), shape));
  }

  Status read_attributes() {
    batch_first_ = ctx_.int_attr("layout", 0) != 0;
    if (ctx_.rank(0) != 3 || ctx_.rank(1) != 3 || ctx_.rank(2) != 3)
      return ctx_.invalid("data and weights must have rank 3");
    steps_ = ctx_.shape(0)[batch_first_ ? 1 : 0];
    batch_ = ctx_.shape(0)[batch_first_ ? 0 : 1];
    inputs_ = ctx_.shape(0)[2];
    hidden_ = ctx_.shape(2)[quantized_ ? 1 : 2];
    const std::string direction = ctx_.string_attr("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      return ctx_.invalid("unknown direction '" + direction + "'");
    directions_ = direction == "bidirectional" ? 2 : 1;
    first_reversed_ = direction == "reverse";
    if (steps_ < 1 || batch_ < 1) return ctx_.unsupported("a sequence or a batch without elements");
    if (hidden_ < 1 || hidden_ > kMaxGeometry) return ctx_.invalid("the hidden size is out of range");
    const auto matrix = [&](int64_t columns) {
      const int64_t rows = gates_ * hidden_;
      return quantized_ ? Shape{directions_, columns, rows} : Shape{directions_, rows, columns};
    };
    TS_RETURN_IF_ERROR(expect(1, matrix(inputs_)));
    TS_RETURN_IF_ERROR(expect(2, matrix(hidden_)));
    for (size_t i = kScales; quantized_ && i < kScales + 4; ++i) {
      if (!ctx_.has(i) || ctx_.shape(i) == Shape{directions_, gates_ * hidden_}) continue;
      TS_RETURN_IF_ERROR(expect(i, {directions_}));
    }
    TS_RETURN_IF_ERROR(expect(3, {directions_, 2 * gates_ * hidden_}));
    TS_RETURN_IF_ERROR(expect(kLengths, {batch_}));
    const Shape state =
        batch_first_ ? Shape{batch_, directions_, hidden_} : Shape{directions_, batch_, hidden_};
    TS_RETURN_IF_ERROR(expect(kInitialH, state));
    TS_RETURN_IF_ERROR(expect(kInitialC, state));
    TS_RETURN_IF_ERROR(expect(kPeepholes, {directions_, 3 * hidden_}));
    clip_ = ctx_.float_attr("clip", 0);
    dtype_ = wide(ctx_.dtype(0));
    if (ctx_.error()) return *ctx_.error();
    return {};
  }

  // Alpha and beta are consumed in the order of the activations that take them.
  Status read_activations() {
    std::vector<std::string> names = ctx_.strings_attr("activations").value_or(std::vector<std::string>{});
    if (names.empty()) {
      for (int64_t d = 0; d < directions_; ++d) {
        if (per_direction_ > 1) names.emplace_back("Sigmoid");
        for (size_t k = per_direction_ > 1 ? 1 : 0; k < per_direction_; ++k) names.emplace_back("Tanh");
      }
    }
    if (names.size() != directions_ * per_direction_) return ctx_.invalid("wrong number of activations");
    const auto alpha = ctx_.floats_attr("activation_alpha").value_or(std::vector<double>{});
    const auto beta = ctx_.floats_attr("activation_beta").value_or(std::vector<double>{});
    size_t next_alpha = 0, next_beta = 0;
    for (std::string& name : names) {
      const auto row = std::ranges::find(kActivations, name, &ActivationRow::name);
      if (row == std::end(kActivations)) return ctx_.unsupported("activation " + name);
      std::optional<double> a = row->alpha, b = row->beta;
      if (row->parameters > 0 && next_alpha < alpha.size()) a = alpha[next_alpha++];
      if (row->parameters > 1 && next_beta < beta.size()) b = beta[next_beta++];
      if ((row->parameters > 0 && !a) || (row->parameters > 1 && !b))
        return ctx_.invalid("activation " + name + " needs activation_alpha and activation_beta");
      activations_.push_back({std::move(name), a.value_or(0), b.value_or(0)});
    }
    return {};
  }

  Status read_inputs() {
    TS_ASSIGN_OR_RETURN(x_, e_.cast(e_.in(0), dtype_));
    if (batch_first_) {
      TS_ASSIGN_OR_RETURN(x_, e_.transpose(x_, {1, 0, 2}));
    }
    TS_ASSIGN_OR_RETURN(x_, e_.reshape(x_, {steps_ * batch_, inputs_}));
    if (!ctx_.has(kLengths)) return {};
    TS_ASSIGN_OR_RETURN(lengths_, e_.cast(e_.in(kLengths), ir::DType::kI64));
    TS_ASSIGN_OR_RETURN(lengths_, e_.op("Max", {lengths_, e_.ints({0})}));
    TS_ASSIGN_OR_RETURN(lengths_, e_.op("Min", {lengths_, e_.ints({steps_})}));
    std::vector<int64_t> steps;
    for (int64_t t = 0; t < steps_; ++t) steps.push_back(t);
    TS_ASSIGN_OR_RETURN(const ValueId time, e_.reshape(e_.ints(steps), {steps_, 1, 1}));
    TS_ASSIGN_OR_RETURN(const ValueId length, e_.reshape(lengths_, {1, batch_, 1}));
    TS_ASSIGN_OR_RETURN(active_, e_.op("Less", {time, length}));
    return {};
  }

  // Returns the rows of one direction's matrix that belong to gates [first, last), transposed: (columns, rows). If it is
  // quantized, its scale and zero point follow, and the gates are all of them.
  Result<std::vector<ValueId>> weights(size_t i, int64_t d, int64_t first, int64_t last) {
    if (quantized_) {
      const size_t scale = kScales + 2 * (i - 1);
      std::vector<ValueId> made;
      for (const size_t input : {i, scale, scale + 1}) {
        if (!ctx_.has(input)) continue;
        ValueId id = e_.in(input);
        if (directions_ > 1) {
          TS_ASSIGN_OR_RETURN(id, e_.slice(id, 0, d, d + 1));
        }
        const Shape& shape = e_.shape(id);
        TS_ASSIGN_OR_RETURN(made.emplace_back(), e_.reshape(id, {shape.begin() + 1, shape.end()}));
      }
      return made;
    }
    TS_ASSIGN_OR_RETURN(ValueId id, e_.cast(e_.in(i), dtype_));
    if (directions_ > 1) {
      TS_ASSIGN_OR_RETURN(id, e_.slice(id, 0, d, d + 1));
    }
    if (first > 0 || last < gates_) {
      TS_ASSIGN_OR_RETURN(id, e_.slice(id, 1, first * hidden_, last * hidden_));
    }
    TS_ASSIGN_OR_RETURN(id, e_.reshape(id, {(last - first) * hidden_, e_.shape(id)[2]}));
    TS_ASSIGN_OR_RETURN(id, e_.transpose(id, {1, 0}));
    return std::vector<ValueId>{id};
  }

  // Returns the product of x with weights(), of which a body has its own values. Factors of quantized weights are
  // quantized as a whole, by their least and largest elements.
  Result<ValueId> product(Expansion& e, ValueId x, std::span<const ValueId> weights) const {
    std::vector<ValueId> factors = {x};
    factors.insert(factors.end(), weights.begin(), weights.end());
    return e.op(quantized_ ? "com.microsoft.DynamicQuantizeMatMul" : "MatMul", std::move(factors));
  }

  // Returns elements [first, last) of one direction's vector, as a row.
  Result<ValueId> row(size_t i, int64_t d, int64_t first, int64_t last) {
    TS_ASSIGN_OR_RETURN(ValueId id, e_.cast(e_.in(i), dtype_));
    if (directions_ > 1) {
      TS_ASSIGN_OR_RETURN(id, e_.slice(id, 0, d, d + 1));
    }
    return e_.slice(id, 1, first, last);
  }

  bool linear_before_reset() const { return is_gru() && ctx_.int_attr("linear_before_reset", 0) != 0; }

  // Returns the contribution of the inputs to all gates, with those biases that are added to it:
  // (time, batch, gates * hidden). Sequences that are read backwards within their lengths are reversed.
  Result<ValueId> input_product(int64_t d, bool reversed) {
    TS_ASSIGN_OR_RETURN(const std::vector<ValueId> w, weights(1, d, 0, gates_));
    TS_ASSIGN_OR_RETURN(ValueId product, this->product(e_, x_, w));
    if (ctx_.has(3)) {
      const int64_t all = gates_ * hidden_;
      TS_ASSIGN_OR_RETURN(ValueId bias, row(3, d, 0, all));
      TS_ASSIGN_OR_RETURN(ValueId recurrent, row(3, d, all, 2 * all));
      if (linear_before_reset()) {
        TS_ASSIGN_OR_RETURN(recurrent, row(3, d, all, 2 * all - hidden_));
        TS_ASSIGN_OR_RETURN(recurrent, e_.op("Pad", {recurrent, e_.ints({0, 0, 0, hidden_})}));
      }
      TS_ASSIGN_OR_RETURN(bias, e_.op("Add", {bias, recurrent}));
      TS_ASSIGN_OR_RETURN(product, e_.op("Add", {product, bias}));
    }
    TS_ASSIGN_OR_RETURN(product, e_.reshape(product, {steps_, batch_, gates_ * hidden_}));
    return reversed ? reverse(product) : product;
  }

  // Reverses sequences within their lengths. Without lengths, the loop runs backwards instead.
  Result<ValueId> reverse(ValueId sequences) {
    if (lengths_ == kNoValue) return sequences;
    return e_.op("ReverseSequence", {sequences, lengths_},
                 {{"time_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
  }

  Result<ValueId> initial_state(int64_t d, size_t input) {
    if (!ctx_.has(input)) return e_.constant(lower::Tensor::zeros(dtype_, {batch_, hidden_}));
    TS_ASSIGN_OR_RETURN(ValueId id, e_.cast(e_.in(input), dtype_));
    if (directions_ > 1) {
      TS_ASSIGN_OR_RETURN(id, e_.slice(id, batch_first_ ? 1 : 0, d, d + 1));
    }
    return e_.reshape(id, {batch_, hidden_});
  }

  Result<Direction> run_direction(int64_t d) {
    const bool reversed = first_reversed_ || d == 1;
    std::vector<ValueId> states, slices, others;
    TS_ASSIGN_OR_RETURN(states.emplace_back(), initial_state(d, kInitialH));
    if (is_lstm()) {
      TS_ASSIGN_OR_RETURN(states.emplace_back(), initial_state(d, kInitialC));
    }
    TS_ASSIGN_OR_RETURN(slices.emplace_back(), input_product(d, reversed));
    if (lengths_ != kNoValue) slices.push_back(active_);
    const int64_t all = gates_ * hidden_;
    if (is_gru() && !linear_before_reset()) {
      TS_ASSIGN_OR_RETURN(others, weights(2, d, 0, 2));
      TS_ASSIGN_OR_RETURN(const std::vector<ValueId> candidate, weights(2, d, 2, 3));
      others.push_back(candidate[0]);
    } else {
      TS_ASSIGN_OR_RETURN(others, weights(2, d, 0, gates_));
      if (linear_before_reset() && ctx_.has(3)) {
        TS_ASSIGN_OR_RETURN(others.emplace_back(), row(3, d, 2 * all - hidden_, 2 * all));
      }
    }
    const size_t before_peepholes = others.size();
    for (int64_t p = 0; ctx_.has(kPeepholes) && p < 3; ++p) {
      TS_ASSIGN_OR_RETURN(others.emplace_back(), row(kPeepholes, d, p * hidden_, (p + 1) * hidden_));
    }

    BodyBuilder builder;
    Expansion body(builder, e_.node(), ctx_);
    Body in{body, d, {}, {}, {}, before_peepholes};
    for (const ValueId id : states) in.states.push_back(builder.input("state", e_.dtype(id), e_.shape(id)));
    for (const ValueId id : slices) {
      const Shape& shape = e_.shape(id);
      in.slices.push_back(builder.input("slice", e_.dtype(id), {shape.begin() + 1, shape.end()}));
    }
    std::vector<ValueId> inputs = states;
    inputs.insert(inputs.end(), slices.begin(), slices.end());
    for (const ValueId id : others) {
      in.others.push_back(builder.shared(e_.value(id)));
      if (e_.known(id) == nullptr) inputs.push_back(id);
    }
    TS_ASSIGN_OR_RETURN(std::vector<ValueId> next, is_lstm()  ? lstm_step(in)
                                                   : is_gru() ? gru_step(in)
                                                              : rnn_step(in));
    for (size_t s = 0; lengths_ != kNoValue && s < next.size(); ++s) {
      // Beyond its length, a sequence keeps its state.
      TS_ASSIGN_OR_RETURN(next[s], body.op("Where", {in.slices[1], next[s], in.states[s]}));
    }
    next.push_back(next[0]);

    auto region = std::make_shared<Region>();
    region->turns = steps_;
    region->states = states.size();
    const bool backwards = reversed && lengths_ == kNoValue;
    region->slices_backwards.assign(slices.size(), backwards);
    region->results_backwards.assign(1, backwards);
    region->bodies.push_back(builder.finish(std::move(next)));
    TS_ASSIGN_OR_RETURN(std::vector<ValueId> made, e_.loop(std::move(region), std::move(inputs)));
    Direction direction;
    direction.states.assign(made.begin(), made.end() - 1);
    direction.sequence = made.back();
    if (lengths_ != kNoValue) {
      if (reversed) {
        TS_ASSIGN_OR_RETURN(direction.sequence, reverse(direction.sequence));
      }
      TS_ASSIGN_OR_RETURN(direction.sequence,
                          e_.op("Where", {active_, direction.sequence, e_.scalar(dtype_, 0)}));
    }
    return direction;
  }

  // Values in the body of a direction's loop.
  struct Body {
    Expansion& e;
    int64_t direction;
    std::vector<ValueId> states, slices, others;
    size_t peepholes;  // where they are among the others
  };

  Result<ValueId> clipped(Expansion& e, ValueId x) const {
    if (clip_ <= 0) return x;
    return e.op("Clip", {x, e.scalar(dtype_, -clip_), e.scalar(dtype_, clip_)});
  }

  Result<ValueId> activate(const Body& body, size_t which, ValueId x) const {
    Expansion& e = body.e;
    const Activation& a = activations_[body.direction * per_direction_ + which];
    if (a.name == "Affine" || a.name == "ScaledTanh") {
      const bool affine = a.name == "Affine";
      TS_ASSIGN_OR_RETURN(x, e.op("Mul", {x, e.scalar(dtype_, affine ? a.alpha : a.beta)}));
      if (affine) return e.op("Add", {x, e.scalar(dtype_, a.beta)});
      TS_ASSIGN_OR_RETURN(x, e.op("Tanh", {x}));
      return e.op("Mul", {x, e.scalar(dtype_, a.alpha)});
    }
    if (a.name == "HardSigmoid") return e.op(a.name, {x}, {{"alpha", a.alpha}, {"beta", a.beta}});
    if (a.name == "Elu" || a.name == "LeakyRelu" || a.name == "ThresholdedRelu")
      return e.op(a.name, {x}, {{"alpha", a.alpha}});
    return e.op(a.name, {x});
  }

  Result<ValueId> gate(const Body& body, size_t which, ValueId x) const {
    TS_ASSIGN_OR_RETURN(x, clipped(body.e, x));
    return activate(body, which, x);
  }

  Result<std::vector<ValueId>> split(Expansion& e, ValueId x, size_t parts) const {
    return e.ops("Split", {x}, parts, {{"axis", int64_t{1}}, {"num_outputs", static_cast<int64_t>(parts)}});
  }

  Result<std::vector<ValueId>> rnn_step(const Body& in) const {
    TS_ASSIGN_OR_RETURN(ValueId sum, in.e.op("MatMul", {in.states[0], in.others[0]}));
    TS_ASSIGN_OR_RETURN(sum, in.e.op("Add", {sum, in.slices[0]}));
    TS_ASSIGN_OR_RETURN(const ValueId next, gate(in, 0, sum));
    return std::vector<ValueId>{next};
  }

  // Gates z, r, h.
  Result<std::vector<ValueId>> gru_step(const Body& in) const {
    Expansion& e = in.e;
    const ValueId state = in.states[0];
    TS_ASSIGN_OR_RETURN(ValueId product, e.op("MatMul", {state, in.others[0]}));
    ValueId z, r, candidate;
    if (linear_before_reset()) {
      TS_ASSIGN_OR_RETURN(const auto inputs, split(e, in.slices[0], 3));
      TS_ASSIGN_OR_RETURN(const auto own, split(e, product, 3));
      TS_ASSIGN_OR_RETURN(z, e.op("Add", {inputs[0], own[0]}));
      TS_ASSIGN_OR_RETURN(r, e.op("Add", {inputs[1], own[1]}));
      TS_ASSIGN_OR_RETURN(r, gate(in, 0, r));
      ValueId linear = own[2];
      if (in.others.size() > 1) {
        TS_ASSIGN_OR_RETURN(linear, e.op("Add", {linear, in.others[1]}));
      }
      TS_ASSIGN_OR_RETURN(linear, e.op("Mul", {r, linear}));
      TS_ASSIGN_OR_RETURN(candidate, e.op("Add", {inputs[2], linear}));
    } else {
      TS_ASSIGN_OR_RETURN(const ValueId gates, e.slice(in.slices[0], 1, 0, 2 * hidden_));
      TS_ASSIGN_OR_RETURN(const ValueId input, e.slice(in.slices[0], 1, 2 * hidden_, 3 * hidden_));
      TS_ASSIGN_OR_RETURN(product, e.op("Add", {product, gates}));
      TS_ASSIGN_OR_RETURN(const auto parts, split(e, product, 2));
      z = parts[0];
      TS_ASSIGN_OR_RETURN(r, gate(in, 0, parts[1]));
      TS_ASSIGN_OR_RETURN(const ValueId reset, e.op("Mul", {r, state}));
      TS_ASSIGN_OR_RETURN(candidate, e.op("MatMul", {reset, in.others[1]}));
      TS_ASSIGN_OR_RETURN(candidate, e.op("Add", {candidate, input}));
    }
    TS_ASSIGN_OR_RETURN(z, gate(in, 0, z));
    TS_ASSIGN_OR_RETURN(candidate, gate(in, 1, candidate));
    TS_ASSIGN_OR_RETURN(const ValueId rest, e.op("Sub", {e.scalar(dtype_, 1), z}));
    TS_ASSIGN_OR_RETURN(const ValueId fresh, e.op("Mul", {rest, candidate}));
    TS_ASSIGN_OR_RETURN(const ValueId kept, e.op("Mul", {z, state}));
    TS_ASSIGN_OR_RETURN(const ValueId next, e.op("Add", {fresh, kept}));
    return std::vector<ValueId>{next};
  }

  // Gates i, o, f, c; peepholes i, o, f.
  Result<std::vector<ValueId>> lstm_step(const Body& in) const {
    Expansion& e = in.e;
    const ValueId state = in.states[0], cell = in.states[1];
    TS_ASSIGN_OR_RETURN(ValueId product, this->product(e, state, std::span(in.others).first(in.peepholes)));
    TS_ASSIGN_OR_RETURN(product, e.op("Add", {product, in.slices[0]}));
    TS_ASSIGN_OR_RETURN(auto parts, split(e, product, 4));
    const auto peeped = [&](size_t which, ValueId cell_value) -> Result<ValueId> {
      if (in.others.size() == in.peepholes) return parts[which];
      TS_ASSIGN_OR_RETURN(const ValueId added, e.op("Mul", {in.others[in.peepholes + which], cell_value}));
      return e.op("Add", {parts[which], added});
    };
    TS_ASSIGN_OR_RETURN(ValueId input, peeped(0, cell));
    TS_ASSIGN_OR_RETURN(input, gate(in, 0, input));
    ValueId forget;
    if (ctx_.int_attr("input_forget", 0) != 0) {
      TS_ASSIGN_OR_RETURN(forget, e.op("Sub", {e.scalar(dtype_, 1), input}));
    } else {
      TS_ASSIGN_OR_RETURN(forget, peeped(2, cell));
      TS_ASSIGN_OR_RETURN(forget, gate(in, 0, forget));
    }
    TS_ASSIGN_OR_RETURN(const ValueId fresh, gate(in, 1, parts[3]));
    TS_ASSIGN_OR_RETURN(const ValueId kept, e.op("Mul", {forget, cell}));
    TS_ASSIGN_OR_RETURN(const ValueId added, e.op("Mul", {input, fresh}));
    TS_ASSIGN_OR_RETURN(const ValueId next_cell, e.op("Add", {kept, added}));
    TS_ASSIGN_OR_RETURN(ValueId output, peeped(1, next_cell));
    TS_ASSIGN_OR_RETURN(output, gate(in, 0, output));
    TS_ASSIGN_OR_RETURN(const ValueId shown, activate(in, 2, next_cell));
    TS_ASSIGN_OR_RETURN(const ValueId next, e.op("Mul", {output, shown}));
    return std::vector<ValueId>{next, next_cell};
  }

  Result<ValueId> joined(std::vector<ValueId> parts, int64_t axis) {
    if (parts.size() == 1) return parts[0];
    return e_.op("Concat", std::move(parts), {{"axis", axis}});
  }

  // Y: (time, direction, batch, hidden), or (batch, time, direction, hidden).
  Result<ValueId> sequence_output(const std::vector<Direction>& made) {
    std::vector<ValueId> parts;
    for (const Direction& direction : made) {
      TS_ASSIGN_OR_RETURN(parts.emplace_back(), e_.reshape(direction.sequence, {steps_, 1, batch_, hidden_}));
    }
    TS_ASSIGN_OR_RETURN(ValueId all, joined(std::move(parts), 1));
    if (batch_first_) {
      TS_ASSIGN_OR_RETURN(all, e_.transpose(all, {2, 0, 1, 3}));
    }
    return e_.cast(all, ctx_.dtype(0));
  }

  // (direction, batch, hidden), or (batch, direction, hidden).
  Result<ValueId> state_output(const std::vector<Direction>& made, size_t s) {
    std::vector<ValueId> parts;
    for (const Direction& direction : made) {
      TS_ASSIGN_OR_RETURN(parts.emplace_back(), e_.reshape(direction.states[s], {1, batch_, hidden_}));
    }
    TS_ASSIGN_OR_RETURN(ValueId all, joined(std::move(parts), 0));
    if (batch_first_) {
      TS_ASSIGN_OR_RETURN(all, e_.transpose(all, {1, 0, 2}));
    }
    return e_.cast(all, ctx_.dtype(0));
  }

  Expansion& e_;
  OpContext& ctx_;
  const int64_t gates_;
  const size_t per_direction_;
  const bool quantized_;
  bool batch_first_ = false, first_reversed_ = false;
  int64_t directions_ = 1, steps_ = 0, batch_ = 0, inputs_ = 0, hidden_ = 0;
  double clip_ = 0;
  ir::DType dtype_ = ir::DType::kF32;
  std::vector<Activation> activations_;
  ValueId x_;        // (time * batch, inputs)
  ValueId lengths_;  // (batch), if they are given
  ValueId active_;   // (time, batch, 1): whether the step is within the sequence
};

Result<std::vector<ValueId>> expand_rnn(Expansion& e) { return Recurrence(e, 1, 1).expand(); }
Result<std::vector<ValueId>> expand_gru(Expansion& e) { return Recurrence(e, 3, 2).expand(); }
Result<std::vector<ValueId>> expand_lstm(Expansion& e) { return Recurrence(e, 4, 3).expand(); }

Result<std::vector<ValueId>> expand_quantized_lstm(Expansion& e) {
  return Recurrence(e, 4, 3, true).expand();
}

}  // namespace

std::span<const ExpandEntry> recurrent_expansions() {
  constexpr int kOldest = 7;
  static const ExpandEntry kEntries[] = {
      {"GRU", "f:TTTtit", expand_gru, {}, kOldest},
      {"LSTM", "f:TTTtittt", expand_lstm, {}, kOldest},
      {"com.microsoft.DynamicQuantizeLSTM", "f:TAATitttFaFa", expand_quantized_lstm,
       "activation_alpha activation_beta activations clip direction hidden_size input_forget"},
      {"RNN", "f:TTTtit", expand_rnn, {}, kOldest},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
