#include "ir/analysis.h"

#include <unordered_set>
#include <utility>

#include "ir/expr_memo.h"
#include "ir/parts.h"

namespace tensorsmith::ir {

namespace {

Expr substitute(const Expr& e, const VarMap& map, ExprMemo<Expr>& memo) {
  if (const VarRef* ref = as<VarRef>(e)) {
    const auto it = map.find(ref->var.get());
    return it == map.end() ? e : it->second;
  }
  if (const Expr* known = memo.find(e)) return *known;
  Expr out = map_parts(e, [&](const Expr& child) { return substitute(child, map, memo); });
  memo.remember(e, out);
  return out;
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn, ExprMemo<Expr>& memo) {
  if (const Expr* known = memo.find(e)) return *known;
  Expr out = fn(map_parts(e, [&](const Expr& child) { return rewrite(child, fn, memo); }));
  memo.remember(e, out);
  return out;
}

using Visited = std::unordered_set<const ExprNode*>;

void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& fn, Visited& visited) {
  if (worth_remembering(e) && !visited.insert(e.get()).second) return;
  fn(e);
  for_each_part(e, [&](const Expr& child) { for_each_expr(child, fn, visited); });
}

bool uses_var(const Expr& e, const Var& var, Visited& visited) {
  if (const VarRef* ref = as<VarRef>(e)) return ref->var == var;
  if (worth_remembering(e) && !visited.insert(e.get()).second) return false;
  bool found = false;
  for_each_part(e, [&](const Expr& child) { found = found || uses_var(child, var, visited); });
  return found;
}

using LoadSize = std::function<int64_t(const Load&)>;

int64_t written_size(const Expr& e, const LoadSize& extra, ExprMemo<int64_t>& memo) {
  if (const int64_t* known = memo.find(e)) return *known;
  int64_t size = 1;
  const auto add = [&](int64_t more) {
    if (__builtin_add_overflow(size, more, &size)) size = INT64_MAX;
  };
  for_each_part(e, [&](const Expr& child) { add(written_size(child, extra, memo)); });
  if (const Load* l = as<Load>(e); l != nullptr && extra) add(extra(*l));
  memo.remember(e, size);
  return size;
}

}  // namespace

Expr substitute(const Expr& e, const VarMap& map) {
  if (map.empty()) return e;
  ExprMemo<Expr> memo;
  return substitute(e, map, memo);
}

Stmt substitute(const Stmt& s, const VarMap& map) {
  if (map.empty()) return s;
  return rewrite_exprs(s, [&](const Expr& e) { return substitute(e, map); });
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn) {
  ExprMemo<Expr> memo;
  return rewrite(e, fn, memo);
}

Stmt rewrite_exprs(const Stmt& s, const std::function<Expr(const Expr&)>& fn) {
  if (s == nullptr) return s;
  const auto in_part = [&](const Stmt& part) { return rewrite_exprs(part, fn); };
  return visit(
      overloaded{
          [&](const For& n) {
            Expr extent = fn(n.extent);
            Stmt body = rewrite_exprs(n.body, fn);
            if (extent.same_as(n.extent) && body == n.body) return s;
            For loop = n;
            loop.extent = std::move(extent);
            loop.body = std::move(body);
            return make_for(std::move(loop));
          },
          [&](const Store& n) {
            std::vector<Expr> indices;
            bool changed = map_list(n.indices, fn, indices);
            Expr value = fn(n.value);
            changed |= !value.same_as(n.value);
            return changed ? make_store(n.buffer, std::move(indices), std::move(value)) : s;
          },
          [&](const IfThenElse& n) {
            Expr condition = fn(n.condition);
            Stmt then_body = rewrite_exprs(n.then_body, fn);
            Stmt else_body = rewrite_exprs(n.else_body, fn);
            if (condition.same_as(n.condition) && then_body == n.then_body && else_body == n.else_body)
              return s;
            return make_if(std::move(condition), std::move(then_body), std::move(else_body));
          },
          [&](const Seq&) { return map_parts(s, in_part); },
          [&](const Allocate&) { return map_parts(s, in_part); },
      },
      s);
}

void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& fn) {
  Visited visited;
  for_each_expr(e, fn, visited);
}

void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& fn) {
  if (s == nullptr) return;
  fn(s);
  for_each_part(s, [&](const Stmt& part) { for_each_stmt(part, fn); });
}

bool uses_var(const Expr& e, const Var& var) {
  Visited visited;
  return uses_var(e, var, visited);
}

int64_t written_size(const Expr& e, const LoadSize& extra) {
  ExprMemo<int64_t> memo;
  return written_size(e, extra, memo);
}

bool only_moves(const Expr& e) {
  if (const Select* select = as<Select>(e)) return only_moves(select->a) && only_moves(select->b);
  return as<Load>(e) != nullptr || as<FloatImm>(e) != nullptr || as<IntImm>(e) != nullptr;
}

const Load* converted_load(const Expr& e, DType dtype) {
  const Cast* cast = as<Cast>(e);
  return cast != nullptr && e.dtype() == dtype ? as<Load>(cast->a) : nullptr;
}

std::vector<const Load*> loads_of(const Expr& e) {
  std::vector<const Load*> out;
  for_each_expr(e, [&](const Expr& sub) {
    if (const Load* l = as<Load>(sub)) out.push_back(l);
  });
  return out;
}

}  // namespace tensorsmith::ir
