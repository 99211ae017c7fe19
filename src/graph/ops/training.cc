// One step of an optimizer (ai.onnx.preview.training): Adagrad, Adam, Momentum. Inputs: the
// learning rate, the number of steps, then the parameters, their gradients and the state, each with
// as many tensors as there are parameters.
#include <algorithm>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using ir::Expr;
using ir::Intrinsic;

// The inputs of parameter i: [parameter, gradient, state...].
struct Group {
  size_t parameters = 0;
  size_t kinds = 0;
  size_t input(size_t kind, size_t i) const { return 2 + kind * parameters + i; }
};

Result<Group> read_groups(const OpContext& ctx, size_t kinds) {
  Group group{(ctx.num_inputs() - 2) / kinds, kinds};
  if (group.parameters == 0 || 2 + group.parameters * kinds != ctx.num_inputs())
    return ctx.invalid("has " + std::to_string(ctx.num_inputs()) + " inputs, not 2 and " +
                       std::to_string(kinds) + " for each parameter");
  if (product(ctx.shape(0)) != 1 || product(ctx.shape(1)) != 1)
    return ctx.invalid("the learning rate and the step must be one number");
  const DType dtype = ctx.dtype(0);
  if (dtype != DType::kF32 && dtype != DType::kF64) return ctx.unsupported("data other than f32 and f64");
  for (size_t i = 0; i < group.parameters; ++i) {
    for (size_t kind = 0; kind < kinds; ++kind) {
      const size_t at = group.input(kind, i);
      if (!ctx.has(at) || ctx.dtype(at) != dtype || ctx.shape(at) != ctx.shape(group.input(0, i)))
        return ctx.invalid("input " + std::to_string(at) + " does not fit its parameter");
    }
  }
  return group;
}

class Step {
 public:
  Step(OpContext& ctx, const Group& group)
      : ctx_(ctx), group_(group), norm_(number(ctx.float_attr("norm_coefficient", 0))) {}

  Expr number(double v) const { return ir::make_const(ctx_.dtype(0), v); }
  Expr rate() const { return ir::load(ctx_.in(0), Exprs(ctx_.rank(0), Expr(0))); }
  Expr steps() const { return ir::cast(ctx_.dtype(0), ir::load(ctx_.in(1), Exprs(ctx_.rank(1), Expr(0)))); }
  Expr load(size_t kind, size_t i, const Exprs& at) const {
    return ir::load(ctx_.in(group_.input(kind, i)), at);
  }
  // Returns the gradient of parameter i, with that of the norm's penalty.
  Expr gradient(size_t i, const Exprs& at) const { return norm_ * load(0, i, at) + load(1, i, at); }
  // Makes a tensor of parameter i's shape from an expression in its indices.
  ir::Buffer make(const std::string& name, size_t i, const std::function<Expr(const Exprs&)>& body) const {
    std::vector<ir::Axis> axes = axes_for(ctx_.shape(group_.input(0, i)));
    Expr e = body(vars_of(axes));
    return ctx_.compute(name, std::move(axes), std::move(e));
  }

 private:
  OpContext& ctx_;
  const Group& group_;
  const Expr norm_;
};

Expr square_root(const Expr& x) { return ir::call(Intrinsic::kSqrt, {x}); }

Result<Buffers> emit_adagrad(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Group group, read_groups(ctx, 3));
  const Step s(ctx, group);
  const Expr decay = s.number(ctx.float_attr("decay_factor", 0));
  const Expr epsilon = s.number(ctx.float_attr("epsilon", 1e-6));
  const Expr rate = s.rate() / (s.number(1) + s.steps() * decay);
  Buffers parameters, squares;
  for (size_t i = 0; i < group.parameters; ++i) {
    const auto x = [&](const Exprs& at) { return s.load(0, i, at); };
    const auto gradient = [&](const Exprs& at) { return s.gradient(i, at); };
    squares.push_back(
        s.make("square", i, [&](const Exprs& at) { return s.load(2, i, at) + gradient(at) * gradient(at); }));
    parameters.push_back(s.make("parameter", i, [&](const Exprs& at) {
      return x(at) - rate * gradient(at) / (square_root(ir::load(squares.back(), at)) + epsilon);
    }));
  }
  parameters.insert(parameters.end(), squares.begin(), squares.end());
  return parameters;
}

Result<Buffers> emit_adam(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Group group, read_groups(ctx, 4));
  const Step s(ctx, group);
  const Expr one = s.number(1);
  const Expr alpha = s.number(ctx.float_attr("alpha", .9));
  const Expr beta = s.number(ctx.float_attr("beta", .999));
  const Expr epsilon = s.number(ctx.float_attr("epsilon", 1e-6));
  const Expr after = s.number(ctx.float_attr("norm_coefficient_post", 0));
  const auto remaining = [&](const Expr& base) { return one - ir::call(Intrinsic::kPow, {base, s.steps()}); };
  const Expr rate = ir::select(s.steps() > s.number(0),
                               s.rate() * square_root(remaining(beta)) / remaining(alpha), s.rate());
  Buffers parameters, means, squares;
  for (size_t i = 0; i < group.parameters; ++i) {
    const auto x = [&](const Exprs& at) { return s.load(0, i, at); };
    const auto gradient = [&](const Exprs& at) { return s.gradient(i, at); };
    means.push_back(s.make(
        "mean", i, [&](const Exprs& at) { return alpha * s.load(2, i, at) + (one - alpha) * gradient(at); }));
    squares.push_back(s.make("square", i, [&](const Exprs& at) {
      return beta * s.load(3, i, at) + (one - beta) * (gradient(at) * gradient(at));
    }));
    parameters.push_back(s.make("parameter", i, [&](const Exprs& at) {
      const Expr step = ir::load(means.back(), at) / (square_root(ir::load(squares.back(), at)) + epsilon);
      return (one - after) * (x(at) - rate * step);
    }));
  }
  parameters.insert(parameters.end(), means.begin(), means.end());
  parameters.insert(parameters.end(), squares.begin(), squares.end());
  return parameters;
}

Result<Buffers> emit_momentum(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const Group group, read_groups(ctx, 3));
  const Step s(ctx, group);
  for (const char* name : {"alpha", "beta", "norm_coefficient"})
    if (!ctx.has_attr(name)) return ctx.invalid("attribute " + std::string(name) + " is missing");
  const Expr alpha = s.number(ctx.float_attr("alpha", 0));
  const Expr beta = s.number(ctx.float_attr("beta", 0));
  const std::string mode = ctx.string_attr("mode", "");
  if (mode != "standard" && mode != "nesterov") return ctx.invalid("unknown mode '" + mode + "'");
  const Expr share = ir::select(s.steps() > s.number(0), beta, s.number(1));
  Buffers parameters, momenta;
  for (size_t i = 0; i < group.parameters; ++i) {
    const auto x = [&](const Exprs& at) { return s.load(0, i, at); };
    const auto gradient = [&](const Exprs& at) { return s.gradient(i, at); };
    momenta.push_back(s.make(
        "momentum", i, [&](const Exprs& at) { return alpha * s.load(2, i, at) + share * gradient(at); }));
    parameters.push_back(s.make("parameter", i, [&](const Exprs& at) {
      const Expr v = ir::load(momenta.back(), at);
      return x(at) - s.rate() * (mode == "nesterov" ? gradient(at) + alpha * v : v);
    }));
  }
  parameters.insert(parameters.end(), momenta.begin(), momenta.end());
  return parameters;
}

}  // namespace

std::span<const OpEntry> training_operators() {
  static const OpEntry kEntries[] = {
      {"ai.onnx.preview.training.Adagrad", "a:FLF*", emit_adagrad},
      {"ai.onnx.preview.training.Adam", "a:FLF*", emit_adam},
      {"ai.onnx.preview.training.Momentum", "a:FLF*", emit_momentum},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
