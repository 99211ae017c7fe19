#include "lower/rewriter.h"

#include <optional>
#include <utility>

#include "ir/affine_visitor.h"
#include "ir/analysis.h"
#include "ir/linear.h"
#include "ir/parts.h"

namespace tensorsmith::lower {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;

namespace {

// Larger constants are data and not indices; they are kept out of sums, so that these do not
// overflow.
constexpr int64_t kLargestFactor = int64_t{1} << 31;
constexpr int64_t kLargestConstant = int64_t{1} << 40;

}  // namespace

class Rewriter::Reader : public ir::AffineVisitor<Reader, Index> {
 public:
  explicit Reader(Rewriter& rewriter) : rewriter_(rewriter) {}

  IndexArena& algebra() { return rewriter_.arena_; }
  static bool left_first(BinaryOp op) { return op == BinaryOp::kMul; }
  Index operand(const Expr& e) { return rewriter_.index(e); }
  Index variable(const ir::VarRef& n, const Expr&) {
    for (const auto& [var, value] : rewriter_.bindings_) {
      if (var == n.var.get()) return value;
    }
    TS_CHECK(false, "variable '" + n.var.name() + "' has no value here");
  }
  static std::optional<int64_t> factor(const Index& a) { return constant_below(a, kLargestFactor); }
  static std::optional<int64_t> divisor(const Index& a) {
    return a.constant > 0 ? constant_below(a, kLargestConstant) : std::nullopt;
  }
  bool never_negative(const Index& a) const { return rewriter_.arena_.range(a).min >= 0; }
  Index literal(int64_t value, const Expr& e) {
    return value < kLargestConstant && value > -kLargestConstant ? Index(value) : other(e);
  }
  Index unary(const ir::Unary&, const Expr& e) { return other(e); }
  Index select(const ir::Select& n, const Expr&) {
    const Expr condition = rewriter_.value(n.condition);
    if (const auto known = ir::as_int(condition)) return operand(*known != 0 ? n.a : n.b);
    const Index a = operand(n.a);
    const Index b = operand(n.b);
    if (a == b) return a;
    const IndexArena& arena = rewriter_.arena_;
    return algebra().opaque(ir::select(condition, arena.to_expr(a), arena.to_expr(b)),
                            ir::unite(arena.range(a), arena.range(b)));
  }
  Index other(const Expr& e) { return algebra().opaque(rewriter_.rebuild(e)); }

 private:
  static std::optional<int64_t> constant_below(const Index& a, int64_t limit) {
    if (!a.is_constant() || a.constant >= limit || a.constant <= -limit) return std::nullopt;
    return a.constant;
  }

  Rewriter& rewriter_;
};

Index Rewriter::index(const Expr& e) {
  if (const Index* known = results_.indices.find(e)) return *known;
  Index out = Reader(*this).evaluate(e);
  results_.indices.remember(e, out);
  return out;
}

Expr Rewriter::value(const Expr& e) {
  if (const Expr* known = results_.values.find(e)) return *known;
  Expr out = value_node(e);
  results_.values.remember(e, out);
  return out;
}

Expr Rewriter::value_node(const Expr& e) {
  if (e.dtype() == DType::kI64) {
    if (ir::as<ir::IntImm>(e) != nullptr) return e;
    if (ir::as<ir::Load>(e) == nullptr && ir::as<ir::Call>(e) == nullptr) return arena_.to_expr(index(e));
  }
  return rebuild(e);
}

// Returns the node with its operands rewritten.
Expr Rewriter::rebuild(const Expr& e) {
  const auto operand = [this](const Expr& part) { return value(part); };
  return ir::visit(ir::overloaded{
                       [&](const ir::IntImm&) { return e; },
                       [&](const ir::FloatImm&) { return e; },
                       [&](const ir::VarRef&) { return arena_.to_expr(index(e)); },
                       [&](const ir::Unary& n) {
                         Expr a = value(n.a);
                         if (n.op == ir::UnaryOp::kNot) {
                           if (const auto known = ir::as_int(a)) return ir::bool_imm(*known == 0);
                         }
                         return a.same_as(n.a) ? e : ir::unary(n.op, std::move(a));
                       },
                       [&](const ir::Binary& n) { return rebuild_binary(e, n); },
                       [&](const ir::Select& n) { return rebuild_select(e, n); },
                       [&](const ir::Cast&) { return ir::map_parts(e, operand); },
                       [&](const ir::Call&) { return ir::map_parts(e, operand); },
                       [&](const ir::Load& n) {
                         std::vector<Index> indices;
                         indices.reserve(n.indices.size());
                         for (const Expr& i : n.indices) {
                           indices.push_back(i.dtype() == DType::kI64
                                                 ? index(i)
                                                 : arena_.opaque(ir::cast(DType::kI64, value(i))));
                         }
                         return load_(n, std::move(indices));
                       },
                   },
                   e);
}

Expr Rewriter::rebuild_select(const Expr& e, const ir::Select& n) {
  Expr condition = value(n.condition);
  if (const auto known = ir::as_int(condition)) return value(*known != 0 ? n.a : n.b);
  const IndexArena::Mark mark = arena_.mark();
  assume(n.condition);
  Expr a;
  if (arena_.mark().facts == mark.facts) {
    // The new atoms will be forgotten, and so must be the indices that contain them.
    const size_t known = results_.indices.mark();
    a = value(n.a);
    results_.indices.rollback(known);
  } else {
    // With additional facts, the same expressions may be simplified further.
    Results outside = std::exchange(results_, {});
    a = value(n.a);
    results_ = std::move(outside);
  }
  arena_.rollback(mark);
  Expr b = value(n.b);
  if (condition.same_as(n.condition) && a.same_as(n.a) && b.same_as(n.b)) return e;
  return ir::select(std::move(condition), std::move(a), std::move(b));
}

// Records the facts about indices that follow from a true condition.
void Rewriter::assume(const Expr& condition) {
  const auto* n = ir::as<ir::Binary>(condition);
  if (n == nullptr) return;
  if (n->op == BinaryOp::kAnd) {
    assume(n->a);
    assume(n->b);
    return;
  }
  if (!ir::is_comparison(n->op) || n->op == BinaryOp::kNe || n->a.dtype() != DType::kI64) return;
  const Index d = index(n->a) - index(n->b);
  if (n->op == BinaryOp::kLt) arena_.learn_not_positive(d + 1);
  if (n->op == BinaryOp::kLe || n->op == BinaryOp::kEq) arena_.learn_not_positive(d);
  if (n->op == BinaryOp::kGe || n->op == BinaryOp::kEq) arena_.learn_not_positive(d * -1);
  if (n->op == BinaryOp::kGt) arena_.learn_not_positive(d * -1 + 1);
}

// Returns whether e reads an element that may be near the limits of 64 bits.
bool Rewriter::is_unbounded_data(const Expr& e) {
  if (ir::as<ir::VarRef>(e) != nullptr || ir::loads_of(e).empty()) return false;
  const ir::Interval range = arena_.range(index(e));
  return !range.bounded();
}

Expr Rewriter::rebuild_binary(const Expr& e, const ir::Binary& n) {
  if (ir::is_comparison(n.op) && n.a.dtype() == DType::kI64) {
    const Index d = index(n.a) - index(n.b);
    // Loaded data may be any 64-bit number, so moving terms between the sides of the comparison
    // could overflow.
    if (d.is_constant() || !(is_unbounded_data(n.a) || is_unbounded_data(n.b)))
      return arena_.compare(n.op, d);
    return ir::binary(n.op, value(n.a), value(n.b));
  }
  Expr a = value(n.a);
  if (n.op == BinaryOp::kAnd || n.op == BinaryOp::kOr) {
    // Neither side has effects, so a decided side may replace the expression or be dropped.
    const bool neutral = n.op == BinaryOp::kAnd;
    if (const auto known = ir::as_int(a)) return (*known != 0) == neutral ? value(n.b) : a;
    Expr b = value(n.b);
    if (const auto known = ir::as_int(b)) return (*known != 0) == neutral ? a : b;
    return a.same_as(n.a) && b.same_as(n.b) ? e : ir::binary(n.op, std::move(a), std::move(b));
  }
  Expr b = value(n.b);
  return a.same_as(n.a) && b.same_as(n.b) ? e : ir::binary(n.op, std::move(a), std::move(b));
}

}  // namespace tensorsmith::lower
