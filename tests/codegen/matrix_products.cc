#include "codegen/matrix_products.h"

namespace tensorsmith::test {

using ir::Axis;
using ir::Expr;

ir::Workload matrix_product(const MatrixProduct& p) {
  const bool batched = p.batch > 1, of_b = batched && !p.one_b;
  const auto shape = [&](bool with_batch, int64_t x, int64_t y) {
    return with_batch ? std::vector<int64_t>{p.batch, x, y} : std::vector<int64_t>{x, y};
  };
  const auto at = [](bool with_batch, const Expr& batch, const Expr& x, const Expr& y) {
    return with_batch ? std::vector<Expr>{batch, x, y} : std::vector<Expr>{x, y};
  };
  const auto axes = [&] {
    std::vector<Axis> list = {{ir::Var("i"), p.m}, {ir::Var("j"), p.n}};
    if (batched) list.insert(list.begin(), {ir::Var("b"), p.batch});
    return list;
  };
  const auto a =
      ir::placeholder("A", p.a, p.a_transposed ? shape(batched, p.k, p.m) : shape(batched, p.m, p.k));
  const auto b = ir::placeholder("B", p.b, p.b_transposed ? shape(of_b, p.n, p.k) : shape(of_b, p.k, p.n));
  const ir::DType sums = ir::is_float(p.a) ? ir::DType::kF32 : ir::DType::kI32;
  const auto spatial = axes();
  const Axis reduce{ir::Var("k"), p.k};
  const Expr g = batched ? Expr(spatial[0].var) : Expr(0), i = spatial[spatial.size() - 2].var,
             j = spatial.back().var, k = reduce.var;
  const Expr x = ir::load(a->output(), p.a_transposed ? at(batched, g, k, i) : at(batched, g, i, k));
  const Expr y = ir::load(b->output(), p.b_transposed ? at(of_b, g, j, k) : at(of_b, g, k, j));
  const auto factor = [&](const Expr& e) {
    return p.tf32 ? ir::call(ir::Intrinsic::kRoundTf32, {e}) : ir::cast(sums, e);
  };
  const auto c = ir::compute("C", spatial, {reduce}, ir::Combiner::kSum, {factor(x) * factor(y)});
  ir::Workload workload;
  workload.operations = {a, b, c};
  workload.outputs = {c->output()};
  if (!p.epilogue) return workload;
  const auto own = axes();
  std::vector<Expr> place;
  for (const Axis& axis : own) place.emplace_back(axis.var);
  const Expr more = ir::load(c->output(), place) + ir::make_const(sums, 1);
  const auto r =
      ir::compute("R", own, {}, ir::Combiner::kNone, {ir::cast(ir::is_float(p.a) ? p.a : sums, more)});
  workload.operations.push_back(r);
  workload.outputs = {r->output()};
  return workload;
}

}  // namespace tensorsmith::test
