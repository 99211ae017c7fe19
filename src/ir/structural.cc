#include "ir/structural.h"

#include <bit>

namespace tensorsmith::ir {

namespace {

bool equal_lists(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!structural_equal(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace

bool structural_equal(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  if (!a.defined() || !b.defined() || a.dtype() != b.dtype() || a->kind.index() != b->kind.index())
    return false;
  return visit(overloaded{
                   [&](const IntImm& n) { return n.value == as<IntImm>(b)->value; },
                   [&](const FloatImm& n) {
                     return std::bit_cast<uint64_t>(n.value) ==
                            std::bit_cast<uint64_t>(as<FloatImm>(b)->value);
                   },
                   [&](const VarRef& n) { return n.var == as<VarRef>(b)->var; },
                   [&](const Unary& n) {
                     const Unary* m = as<Unary>(b);
                     return n.op == m->op && structural_equal(n.a, m->a);
                   },
                   [&](const Binary& n) {
                     const Binary* m = as<Binary>(b);
                     return n.op == m->op && structural_equal(n.a, m->a) && structural_equal(n.b, m->b);
                   },
                   [&](const Select& n) {
                     const Select* m = as<Select>(b);
                     return structural_equal(n.condition, m->condition) && structural_equal(n.a, m->a) &&
                            structural_equal(n.b, m->b);
                   },
                   [&](const Cast& n) { return structural_equal(n.a, as<Cast>(b)->a); },
                   [&](const Call& n) {
                     return n.intrinsic == as<Call>(b)->intrinsic && equal_lists(n.args, as<Call>(b)->args);
                   },
                   [&](const Load& n) {
                     return n.buffer == as<Load>(b)->buffer && equal_lists(n.indices, as<Load>(b)->indices);
                   },
               },
               a);
}

}  // namespace tensorsmith::ir
