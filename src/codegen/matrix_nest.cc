#include "codegen/matrix_nest.h"

#include <algorithm>

#include "ir/analysis.h"
#include "ir/linear.h"
#include "ir/simplify.h"
#include "ir/structural.h"

namespace tensorsmith::codegen {
namespace {

using ir::Expr;
using ir::For;
using ir::ForKind;

bool uses(const std::vector<Expr>& indices, const For& loop) {
  return std::any_of(indices.begin(), indices.end(),
                     [&](const Expr& e) { return ir::uses_var(e, loop.var); });
}

// Returns the coefficient of the loop's variable in the index, or nothing if other terms depend on the
// variable, too.
std::optional<int64_t> coefficient(const Expr& index, const For& loop) {
  const ir::LinearSum sum = ir::linearize(index);
  if (sum.bad) return std::nullopt;
  int64_t result = 0;
  for (const ir::LinearSum::Term& term : sum.terms) {
    const auto* ref = ir::as<ir::VarRef>(term.atom);
    if (ref != nullptr && ref->var == loop.var)
      result += term.coefficient;
    else if (ir::uses_var(term.atom, loop.var))
      return std::nullopt;
  }
  return result;
}

// Returns the elements that the access moves by in one step of the loop, or nothing if that is not
// a constant.
std::optional<int64_t> stride(const ir::Buffer& buffer, const std::vector<Expr>& indices, const For& loop) {
  const std::vector<int64_t> strides = buffer->effective_strides();
  int64_t result = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!ir::uses_var(indices[d], loop.var)) continue;
    auto factor = coefficient(indices[d], loop);
    if (!factor) factor = coefficient(ir::simplify(indices[d]), loop);
    if (!factor) return std::nullopt;
    result += *factor * strides[d];
  }
  return result;
}

// Matches C[..] = C[..] + dot(x, y).
bool match_update(const ir::Store& store, const sched::MatrixUnits& units, MatrixNest& nest) {
  const auto* sum = ir::as<ir::Binary>(store.value);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return false;
  const auto* call = ir::as<ir::Call>(sum->b);
  const auto* old = ir::as<ir::Load>(sum->a);
  if (call == nullptr) {
    call = ir::as<ir::Call>(sum->a);
    old = ir::as<ir::Load>(sum->b);
  }
  if (call == nullptr || old == nullptr || old->buffer != store.buffer || !units.take(call->intrinsic))
    return false;
  if (!ir::structural_equal(old->indices, store.indices)) return false;
  nest.store = &store;
  nest.dot = call->intrinsic;
  nest.a = ir::as<ir::Load>(call->args[0]);
  nest.b = ir::as<ir::Load>(call->args[1]);
  return nest.a != nullptr && nest.b != nullptr && nest.a->buffer != store.buffer &&
         nest.b->buffer != store.buffer;
}

}  // namespace

std::optional<MatrixNest> match_matrix_nest(const For& loop, const sched::MatrixUnits& units) {
  if (!units.dot4 && !units.dot2) return std::nullopt;
  std::vector<const For*> loops;
  const ir::Store* store = nullptr;
  for (const For* l = &loop; l != nullptr;) {
    const auto extent = ir::as_int(l->extent);
    if (!extent || *extent < 1 || l->kind == ForKind::kParallel || l->kind == ForKind::kThread)
      return std::nullopt;
    loops.push_back(l);
    store = ir::as<ir::Store>(l->body);
    l = ir::as<For>(l->body);
  }
  MatrixNest nest;
  if (store == nullptr || !match_update(*store, units, nest)) return std::nullopt;
  if (loops.back()->kind != ForKind::kVectorized) return std::nullopt;
  // The innermost loop runs along columns, so its variable must appear in the indices of b.
  if (uses(nest.a->indices, *loops.back())) {
    std::swap(nest.a, nest.b);
    nest.b_is_first = true;
  }
  for (const For* l : loops) {
    const bool in_a = uses(nest.a->indices, *l), in_b = uses(nest.b->indices, *l),
               in_c = uses(store->indices, *l);
    if (!in_c) {
      if (!nest.rows.empty() || !nest.columns.empty() || l->kind == ForKind::kVectorized) return std::nullopt;
      nest.sums.push_back(l);
    } else if (l->kind == ForKind::kSerial && ir::as_int(l->extent) != 1) {
      return std::nullopt;
    } else if (in_a != in_b) {
      (in_a ? nest.rows : nest.columns).push_back(l);
    } else {
      return std::nullopt;
    }
  }
  if (nest.sums.empty() || nest.rows.empty() || nest.columns.empty()) return std::nullopt;
  const For &k = *nest.sums.back(), &i = *nest.rows.back(), &j = *nest.columns.back();
  if (!sched::steps_fit(*ir::as_int(k.extent))) return std::nullopt;
  const auto is = [](std::optional<int64_t> value, int64_t wanted) { return value && *value == wanted; };
  const auto a_stride = stride(nest.a->buffer, nest.a->indices, i);
  const auto b_stride = stride(nest.b->buffer, nest.b->indices, k);
  const auto c_stride = stride(store->buffer, store->indices, i);
  if (!a_stride || !b_stride || !c_stride || !is(stride(nest.a->buffer, nest.a->indices, k), 1) ||
      !is(stride(nest.b->buffer, nest.b->indices, j), 1) || !is(stride(store->buffer, store->indices, j), 1))
    return std::nullopt;
  nest.a_stride = *a_stride;
  nest.b_stride = *b_stride;
  nest.c_stride = *c_stride;
  const auto tiles = [](const std::vector<const For*>& all) {
    int64_t count = sched::tiles_of(*ir::as_int(all.back()->extent));
    for (size_t l = 0; l + 1 < all.size(); ++l) count *= *ir::as_int(all[l]->extent);
    return count;
  };
  if (!sched::tiles_fit(tiles(nest.rows), tiles(nest.columns))) return std::nullopt;
  return nest;
}

}  // namespace tensorsmith::codegen
