#include "support/simplify_stmt.h"

#include <utility>

#include "ir/simplifier.h"

namespace tensorsmith::test {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

class StmtSimplifier {
 public:
  Stmt run(const Stmt& s) {
    if (s == nullptr) return s;
    return visit(overloaded{
                     [&](const For& n) { return simplify_for(s, n); },
                     [&](const Store& n) { return simplify_store(s, n); },
                     [&](const IfThenElse& n) { return simplify_if(s, n); },
                     [&](const Seq& n) { return simplify_seq(s, n); },
                     [&](const Allocate& n) -> Stmt {
                       Stmt body = run(n.body);
                       if (body == nullptr || body == n.body) return body == nullptr ? nullptr : s;
                       return make_allocate(n.buffer, std::move(body));
                     },
                 },
                 s);
  }

 private:
  Stmt simplify_for(const Stmt& s, const For& n) {
    Expr extent = simplifier_.simplify(n.extent);
    const Interval count = simplifier_.bounds(extent);
    if (count.max <= 0) return nullptr;
    const Simplifier::Mark before = simplifier_.mark();
    // A variable with a range of one value is replaced by that value.
    simplifier_.bind(n.var, {0, count.max == Interval::kPosInf ? count.max : count.max - 1});
    // Inside the loop, variable < extent holds.
    if (as<IntImm>(extent) == nullptr)
      simplifier_.assume_during(n.body, binary(BinaryOp::kLt, n.var, extent), true);
    Stmt body = run(n.body);
    simplifier_.rollback(before);
    if (body == nullptr) return nullptr;
    if (is_int_value(extent, 1) && n.kind != ForKind::kThread) return body;
    if (body == n.body && extent.same_as(n.extent)) return s;
    For loop = n;
    loop.extent = std::move(extent);
    loop.body = std::move(body);
    return make_for(std::move(loop));
  }

  Stmt simplify_store(const Stmt& s, const Store& n) {
    bool changed = false;
    std::vector<Expr> indices;
    indices.reserve(n.indices.size());
    for (const Expr& index : n.indices) {
      indices.push_back(simplifier_.simplify(index));
      changed |= !indices.back().same_as(index);
    }
    Expr value = simplifier_.simplify(n.value);
    changed |= !value.same_as(n.value);
    return changed ? make_store(n.buffer, std::move(indices), std::move(value)) : s;
  }

  Stmt simplify_if(const Stmt& s, const IfThenElse& n) {
    Expr condition = simplifier_.simplify(n.condition);
    if (const IntImm* imm = as<IntImm>(condition)) return run(imm->value != 0 ? n.then_body : n.else_body);
    const Simplifier::Mark before = simplifier_.mark();
    simplifier_.assume_during(n.then_body, condition, true);
    Stmt then_body = run(n.then_body);
    simplifier_.rollback(before);
    simplifier_.assume_during(n.else_body, condition, false);
    Stmt else_body = run(n.else_body);
    simplifier_.rollback(before);
    if (then_body == nullptr && else_body == nullptr) return nullptr;
    if (then_body == nullptr) return make_if(simplifier_.simplify(!condition), std::move(else_body));
    if (condition.same_as(n.condition) && then_body == n.then_body && else_body == n.else_body) return s;
    return make_if(std::move(condition), std::move(then_body), std::move(else_body));
  }

  Stmt simplify_seq(const Stmt& s, const Seq& n) {
    bool changed = false;
    std::vector<Stmt> stmts;
    stmts.reserve(n.stmts.size());
    for (const Stmt& child : n.stmts) {
      Stmt simple = run(child);
      changed |= simple != child;
      if (simple != nullptr) stmts.push_back(std::move(simple));
    }
    if (stmts.empty()) return nullptr;
    return changed || stmts.size() == 1 ? make_seq(std::move(stmts)) : s;
  }

  const VarBounds none_;
  Simplifier simplifier_{none_};
};

}  // namespace

Stmt simplify(const Stmt& s) { return StmtSimplifier().run(s); }

}  // namespace tensorsmith::test
