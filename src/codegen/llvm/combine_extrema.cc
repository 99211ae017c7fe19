#include "codegen/llvm/combine_extrema.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "codegen/llvm/extremum_regions.h"
#include "codegen/loop_decisions.h"
#include "ir/analysis.h"
#include "ir/parts.h"

namespace tensorsmith::codegen {
namespace {

using ir::Expr;
using ir::For;
using ir::ForKind;
using ir::Stmt;

// Most values in one expression.
constexpr int64_t kMaxValues = 64;
// Steps of a serial loop that are combined, and the most values that they may have together.
constexpr int64_t kStepsAtOnce = 4;
constexpr int64_t kMaxValuesAtOnce = 32;

// Loops around a single store.
struct Nest {
  std::vector<const For*> loops;  // the outermost first
  const ir::Store* store = nullptr;
};

class Combiner {
 public:
  explicit Combiner(const ir::Program& program) : decisions_(program, 0) {}

  Stmt rewrite(const Stmt& s) {
    const auto* loop = ir::as<For>(s);
    return loop != nullptr ? rewrite_for(s, *loop) : rewrite_parts(s);
  }

 private:
  Stmt rewrite_for(const Stmt& s, const For& loop) {
    if (Stmt combined = combine(s)) return combined;
    const int64_t before = unroll_step_;
    if (loop.auto_unroll_max_step > 0) unroll_step_ = loop.auto_unroll_max_step;
    Stmt changed = rewrite_parts(s);
    unroll_step_ = before;
    return changed;
  }
  Stmt rewrite_parts(const Stmt& s) {
    return ir::map_parts(s, [this](const Stmt& part) { return rewrite(part); });
  }

  // Returns the nest with its reduction loops turned into an expression, or null if none can be.
  Stmt combine(const Stmt& s) const {
    Nest nest;
    std::vector<bool> unrolled;
    int64_t unroll_step = unroll_step_;
    for (Stmt at = s; nest.store == nullptr;) {
      if (const auto* loop = ir::as<For>(at)) {
        const bool parallel = loop->kind == ForKind::kParallel || loop->kind == ForKind::kThread;
        if (parallel || ir::as_int(loop->extent).value_or(0) < 1) return nullptr;
        nest.loops.push_back(loop);
        unrolled.push_back(loop->kind == ForKind::kUnrolled ||
                           decisions_.steps(at) <= LoopDecisions::unroll_limit(unroll_step));
        if (loop->auto_unroll_max_step > 0) unroll_step = loop->auto_unroll_max_step;
        at = loop->body;
      } else if (const auto* store = ir::as<ir::Store>(at)) {
        nest.store = store;
      } else {
        return nullptr;
      }
    }
    const ir::Binary* update = extremum_update(*nest.store);
    if (update == nullptr || nest.store->buffer->dtype == ir::DType::kI64) return nullptr;
    Expr values = update->b;
    int64_t count = 1;
    bool serial_inside = false;
    for (size_t l = nest.loops.size(); l-- > 0;) {
      const For& loop = *nest.loops[l];
      const int64_t extent = *ir::as_int(loop.extent);
      if (is_used(loop, *nest.store)) {
        serial_inside = serial_inside || (loop.kind == ForKind::kSerial && !unrolled[l]);
        continue;
      }
      if (loop.kind == ForKind::kVectorized) return nullptr;
      if (unrolled[l] && count * extent <= kMaxValues) {
        values = in_a_row(update->op, at_steps(values, loop, 0, extent));
        count *= extent;
        nest.loops.erase(nest.loops.begin() + l);
        continue;
      }
      const int64_t stores = decisions_.steps(loop.body) / count;
      if (loop.kind == ForKind::kSerial && !serial_inside && extent >= 2 * kStepsAtOnce &&
          count * stores * kStepsAtOnce <= kMaxValuesAtOnce)
        return in_strips(nest, l, values);
      break;
    }
    return count == 1 ? nullptr : around(nest, 0, nest.loops.size(), updated(nest, values));
  }

  static bool is_used(const For& loop, const ir::Store& store) {
    return std::any_of(store.indices.begin(), store.indices.end(),
                       [&](const Expr& e) { return ir::uses_var(e, loop.var); });
  }

  // Returns the values of `count` steps of a loop.
  static std::vector<Expr> at_steps(const Expr& value, const For& loop, const Expr& start, int64_t count) {
    std::vector<Expr> all;
    for (int64_t k = 0; k < count; ++k)
      all.push_back(ir::substitute(value, {{loop.var.get(), start + Expr(k)}}));
    return all;
  }
  static Expr in_a_row(ir::BinaryOp op, const std::vector<Expr>& values) {
    Expr out = values.front();
    for (size_t k = 1; k < values.size(); ++k) out = ir::binary(op, out, values[k]);
    return out;
  }
  static Expr in_pairs(ir::BinaryOp op, std::vector<Expr> values) {
    while (values.size() > 1) {
      std::vector<Expr> half;
      for (size_t k = 0; k < values.size(); k += 2)
        half.push_back(k + 1 < values.size() ? ir::binary(op, values[k], values[k + 1]) : values[k]);
      values = std::move(half);
    }
    return values.front();
  }

  static Stmt updated(const Nest& nest, const Expr& values) {
    const ir::Binary& update = *ir::as<ir::Binary>(nest.store->value);
    return ir::make_store(nest.store->buffer, nest.store->indices, ir::binary(update.op, update.a, values));
  }
  // Wraps the loops first .. last - 1 around a statement.
  static Stmt around(const Nest& nest, size_t first, size_t last, Stmt s) {
    for (size_t l = last; l-- > first;) {
      For loop = *nest.loops[l];
      loop.body = std::move(s);
      s = ir::make_for(std::move(loop));
    }
    return s;
  }

  // Emits kStepsAtOnce steps of loop l at a time, then the remaining steps.
  static Stmt in_strips(const Nest& nest, size_t l, const Expr& values) {
    const For& loop = *nest.loops[l];
    const ir::BinaryOp op = ir::as<ir::Binary>(nest.store->value)->op;
    const int64_t extent = *ir::as_int(loop.extent);
    const int64_t left = extent % kStepsAtOnce;
    const size_t end = nest.loops.size();
    const auto body = [&](const Expr& start, int64_t count) {
      return around(nest, l + 1, end, updated(nest, in_pairs(op, at_steps(values, loop, start, count))));
    };
    For strips = loop;
    strips.extent = extent / kStepsAtOnce;
    strips.body = body(Expr(loop.var) * Expr(kStepsAtOnce), kStepsAtOnce);
    std::vector<Stmt> parts = {ir::make_for(std::move(strips))};
    if (left > 0) parts.push_back(body(extent - left, left));
    return around(nest, 0, l, ir::make_seq(std::move(parts)));
  }

  const LoopDecisions decisions_;
  int64_t unroll_step_ = 0;  // auto_unroll_max_step of the enclosing loop
};

}  // namespace

ir::Program combine_extrema(const ir::Program& program) {
  ir::Program out = program;
  out.body = Combiner(program).rewrite(program.body);
  return out;
}

}  // namespace tensorsmith::codegen
