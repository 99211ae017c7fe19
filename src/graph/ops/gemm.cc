// Gemm and MatMul.
#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::Expr;

std::string both_shapes(const OpContext& ctx) {
  return describe(ctx.dtype(0), ctx.shape(0)) + " and " + describe(ctx.dtype(1), ctx.shape(1));
}

// alpha * A' B' + beta * C, where A' and B' may be transposed.
Result<Buffers> emit_gemm(OpContext& ctx) {
  if (ctx.rank(0) != 2 || ctx.rank(1) != 2) {
    return ctx.invalid("A and B must be matrices; they are " + both_shapes(ctx));
  }
  const bool trans_a = ctx.int_attr("transA", 0) != 0;
  const bool trans_b = ctx.int_attr("transB", 0) != 0;
  const double alpha = ctx.float_attr("alpha", 1.0);
  const double beta = ctx.float_attr("beta", 1.0);
  const int64_t m = ctx.shape(0)[trans_a ? 1 : 0];
  const int64_t depth = ctx.shape(0)[trans_a ? 0 : 1];
  const int64_t n = ctx.shape(1)[trans_b ? 0 : 1];
  if (ctx.shape(1)[trans_b ? 1 : 0] != depth) {
    return ctx.invalid("the inner dimensions of " + both_shapes(ctx) + " differ");
  }
  if (ctx.has(2) && broadcast(ctx.shape(2), {m, n}) != Shape{m, n}) {
    return ctx.invalid("C " + describe(ctx.dtype(2), ctx.shape(2)) + " does not broadcast to [" +
                       std::to_string(m) + "," + std::to_string(n) + "]");
  }
  std::vector<ir::Axis> axes = {{ir::Var("i"), m}, {ir::Var("j"), n}};
  std::vector<ir::Axis> reduce = {{ir::Var("k"), depth}};
  const Expr i = axes[0].var;
  const Expr j = axes[1].var;
  const Expr k = reduce[0].var;
  const Expr a = trans_a ? ir::load(ctx.in(0), {k, i}) : ir::load(ctx.in(0), {i, k});
  const Expr b = trans_b ? ir::load(ctx.in(1), {j, k}) : ir::load(ctx.in(1), {k, j});
  const ir::Buffer sum =
      ctx.reduce("gemm", std::move(axes), std::move(reduce), ir::Combiner::kSum, ctx.product(a, b));
  const bool add_c = ctx.has(2) && beta != 0.0;
  if (alpha == 1.0 && !add_c) return Buffers{sum};

  const ir::DType dtype = ctx.dtype(0);
  std::vector<ir::Axis> out = axes_for({m, n});
  const Exprs vars = vars_of(out);
  Expr body = ir::load(sum, vars);
  if (alpha != 1.0) body = wrapping(ir::BinaryOp::kMul, body, ir::make_const(dtype, alpha));
  if (add_c) {
    Expr c = operand(ctx, 2, vars);
    if (beta != 1.0) c = wrapping(ir::BinaryOp::kMul, c, ir::make_const(dtype, beta));
    body = wrapping(ir::BinaryOp::kAdd, body, c);
  }
  return Buffers{ctx.compute("bias_add", std::move(out), std::move(body))};
}

// NumPy's matmul: leading dimensions broadcast; vectors are promoted to matrices, and the added
// dimension is removed again.
Result<Buffers> emit_matmul(OpContext& ctx) {
  Shape a = ctx.shape(0);
  Shape b = ctx.shape(1);
  if (a.empty() || b.empty()) return ctx.invalid("operands must not be scalars");
  const bool vector_a = a.size() == 1;
  const bool vector_b = b.size() == 1;
  if (vector_a) a.insert(a.begin(), 1);
  if (vector_b) b.push_back(1);
  const int64_t m = a[a.size() - 2];
  const int64_t depth = a.back();
  const int64_t n = b.back();
  const auto batch = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (b[b.size() - 2] != depth || !batch) {
    return ctx.invalid("shapes do not fit: " + both_shapes(ctx));
  }
  std::vector<ir::Axis> axes = axes_for(*batch, "b");
  const Exprs batch_vars = vars_of(axes);
  Expr i = 0;
  Expr j = 0;
  if (!vector_a) {
    axes.push_back({ir::Var("i"), m});
    i = axes.back().var;
  }
  if (!vector_b) {
    axes.push_back({ir::Var("j"), n});
    j = axes.back().var;
  }
  std::vector<ir::Axis> reduce = {{ir::Var("k"), depth}};
  const Expr k = reduce[0].var;
  const auto read = [&](const ir::Buffer& buffer, const Shape& shape, bool vector, const Expr& row,
                        const Expr& column) {
    if (vector) return ir::load(buffer, {k});
    Exprs indices;
    const size_t batch_rank = shape.size() - 2;
    for (size_t d = 0; d < batch_rank; ++d) {
      indices.push_back(shape[d] == 1 ? Expr(0) : batch_vars[batch_vars.size() - batch_rank + d]);
    }
    indices.push_back(row);
    indices.push_back(column);
    return ir::load(buffer, indices);
  };
  Expr body = ctx.product(read(ctx.in(0), a, vector_a, i, k), read(ctx.in(1), b, vector_b, k, j));
  const std::string name = batch->empty() ? "matmul" : "batch_matmul";
  return Buffers{ctx.reduce(name, std::move(axes), std::move(reduce), ir::Combiner::kSum, std::move(body))};
}

}  // namespace

std::span<const OpEntry> gemm_operators() {
  static const OpEntry kEntries[] = {
      {"Gemm", "n:TTt", emit_gemm, kRoundsFactors, 6},
      {"MatMul", "n:TT", emit_matmul, kRoundsFactors},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
