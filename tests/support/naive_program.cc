#include "support/naive_program.h"

#include <algorithm>
#include <utility>

#include "ir/analysis.h"

namespace tensorsmith::test {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

Stmt nest(const std::vector<Axis>& axes, Stmt body, VarMap& fresh) {
  std::vector<Var> vars;
  for (const Axis& axis : axes) {
    vars.emplace_back(axis.var.name());
    fresh[axis.var.get()] = vars.back();
  }
  body = substitute(body, fresh);
  for (size_t d = axes.size(); d-- > 0;)
    body = make_for({.var = vars[d], .extent = axes[d].extent, .body = body});
  return body;
}

Stmt nest(const std::vector<Axis>& axes, Stmt body) {
  VarMap fresh;
  return nest(axes, std::move(body), fresh);
}

Stmt operation(const Operation& op) {
  std::vector<Expr> indices;
  for (const Axis& axis : op.spatial) indices.emplace_back(axis.var);
  if (!op.has_reduction()) return nest(op.spatial, make_store(op.output(), indices, op.bodies[0]));

  std::vector<Stmt> init;
  std::vector<Axis> all = op.spatial;
  all.insert(all.end(), op.reduce.begin(), op.reduce.end());
  init.push_back(make_store(op.output(), indices, identity_of(op.combiner, op.bodies[0].dtype())));
  if (op.bodies.size() == 1) {
    const Stmt update =
        make_store(op.output(), indices, combine(op.combiner, load(op.output(), indices), op.bodies[0]));
    return make_seq({nest(op.spatial, make_seq(init)), nest(all, update)});
  }
  // Among equal values the smallest index wins, in any order of the loops.
  const DType index_dtype = op.bodies[1].dtype();
  init.push_back(make_store(op.outputs[1], indices, identity_of(Combiner::kMin, index_dtype)));
  const Expr best = load(op.outputs[0], indices);
  const Expr at = load(op.outputs[1], indices);
  const Expr better = op.combiner == Combiner::kArgMax ? op.bodies[0] > best : op.bodies[0] < best;
  const Stmt update = make_if(better || (op.bodies[0] == best && op.bodies[1] < at),
                              make_seq({make_store(op.outputs[1], indices, op.bodies[1]),
                                        make_store(op.outputs[0], indices, op.bodies[0])}));
  return make_seq({nest(op.spatial, make_seq(init)), nest(all, update)});
}

}  // namespace

Program naive_program(const Workload& workload) {
  Program out;
  out.name = "naive";
  out.inputs = workload.inputs();
  out.outputs = workload.outputs;
  std::vector<Stmt> stmts;
  std::vector<Buffer> allocated;
  for (const OperationRef& op : workload.operations) {
    if (op->is_placeholder()) continue;
    stmts.push_back(operation(*op));
    for (const Buffer& buffer : op->outputs) {
      if (std::find(out.outputs.begin(), out.outputs.end(), buffer) == out.outputs.end())
        allocated.push_back(buffer);
    }
  }
  out.body = make_seq(std::move(stmts));
  for (size_t i = allocated.size(); i-- > 0;) out.body = make_allocate(allocated[i], out.body);
  return out;
}

namespace {

Stmt vary(const Stmt& s, Rng& rng, bool vectorized) {
  return visit(
      overloaded{
          [&](const For& n) -> Stmt {
            const auto extent = as_int(n.extent);
            const uint64_t choice = rng.below(6);
            For loop = n;
            if (choice == 0 && extent.has_value() && *extent > 1) {
              // i = o * factor + r, guarded if the factor does not divide.
              const int64_t factor = rng.uniform_int(2, 5);
              const Var outer(n.var.name() + ".0");
              const Var inner(n.var.name() + ".1");
              const Expr index = Expr(outer) * factor + Expr(inner);
              Stmt body = substitute(n.body, VarMap{{n.var.get(), index}});
              body = vary(body, rng, vectorized);
              if (*extent % factor != 0) body = make_if(index < *extent, body);
              body = make_for({.var = inner, .extent = factor, .body = body});
              return make_for({.var = outer, .extent = (*extent + factor - 1) / factor, .body = body});
            }
            const bool concurrent = n.kind == ForKind::kParallel || n.kind == ForKind::kThread;
            if ((choice >= 1 && choice <= 4) || (vectorized && concurrent)) {
              loop.kind = ForKind::kSerial;
              loop.thread = ThreadAxis::kNone;
            }
            if (choice == 1 && !vectorized) loop.kind = ForKind::kParallel;
            if (choice == 2) loop.kind = ForKind::kUnrolled;
            if (choice == 3) loop.kind = ForKind::kVectorized;
            if (choice == 4 && !vectorized) {
              loop.kind = ForKind::kThread;
              loop.thread = static_cast<ThreadAxis>(1 + rng.below(7));
            }
            if (rng.bernoulli(0.2)) loop.auto_unroll_max_step = static_cast<int64_t>(16 * rng.below(5));
            loop.body = vary(n.body, rng, vectorized || loop.kind == ForKind::kVectorized);
            return make_for(std::move(loop));
          },
          [&](const Store&) { return s; },
          [&](const IfThenElse& n) {
            return make_if(n.condition, vary(n.then_body, rng, vectorized),
                           n.else_body == nullptr ? nullptr : vary(n.else_body, rng, vectorized));
          },
          [&](const Seq& n) {
            std::vector<Stmt> out;
            for (const Stmt& child : n.stmts) out.push_back(vary(child, rng, vectorized));
            return make_seq(std::move(out));
          },
          [&](const Allocate& n) { return make_allocate(n.buffer, vary(n.body, rng, vectorized)); },
      },
      s);
}

}  // namespace

Program random_variation(const Program& program, Rng& rng) {
  Program out = program;
  out.body = vary(program.body, rng, false);
  return out;
}

}  // namespace tensorsmith::test
