// N-grams of integers.
#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using ir::Expr;

// Counts how often each row of the pool (n-grams, length) occurs in each row of x (batch, words),
// with up to `skips` words skipped between neighbours, the same number between all.
Result<Buffers> emit_ngram_count(OpContext& ctx) {
  const Shape& x = ctx.shape(0);
  const Shape& pool = ctx.shape(1);
  const int64_t skips = ctx.int_attr("skips", 0);
  if (x.size() != 2 || pool.size() != 2 || pool[1] < 1 || skips < 0) return ctx.invalid("bad shapes");
  const int64_t length = pool[1], words = x[1];
  std::vector<ir::Axis> axes = axes_for({x[0], pool[0]});
  std::vector<ir::Axis> reduce = {{ir::Var("s"), skips + 1}, {ir::Var("r"), words}};
  const Expr step = Expr(reduce[0].var) + Expr(1), start = reduce[1].var;
  Expr match = start + step * Expr(length - 1) < Expr(words);
  for (int64_t k = 0; k < length; ++k) {
    const Expr place = ir::min(start + step * Expr(k), std::max<int64_t>(words - 1, 0));
    match = match && ir::load(ctx.in(0), {axes[0].var, place}) == ir::load(ctx.in(1), {axes[1].var, Expr(k)});
  }
  return Buffers{ctx.reduce("ngram_count", std::move(axes), std::move(reduce), ir::Combiner::kSum,
                            ir::cast(DType::kF32, match))};
}

}  // namespace

std::span<const OpEntry> text_operators() {
  static const OpEntry kEntries[] = {{"Bounded.NgramCount", "a:LL", emit_ngram_count}};
  return kEntries;
}

}  // namespace tensorsmith::graph
