#include "ir/analysis.h"

#include <unordered_set>
#include <utility>

#include "ir/expr_memo.h"
#include "ir/map_parts.h"

namespace tensorsmith::ir {

namespace {

// Rebuilds a node with its children mapped by fn; returns the same node if all children stay the
// same.
template <class Fn>
Expr map_children(const Expr& e, const Fn& fn) {
  const auto map_list = [&](const std::vector<Expr>& list, std::vector<Expr>& out) {
    bool changed = false;
    out.reserve(list.size());
    for (const Expr& item : list) {
      out.push_back(fn(item));
      changed |= !out.back().same_as(item);
    }
    return changed;
  };
  return visit(overloaded{
                   [&](const IntImm&) { return e; },
                   [&](const FloatImm&) { return e; },
                   [&](const VarRef&) { return e; },
                   [&](const Unary& n) {
                     Expr a = fn(n.a);
                     return a.same_as(n.a) ? e : unary(n.op, std::move(a));
                   },
                   [&](const Binary& n) {
                     Expr a = fn(n.a);
                     Expr b = fn(n.b);
                     return a.same_as(n.a) && b.same_as(n.b) ? e : binary(n.op, std::move(a), std::move(b));
                   },
                   [&](const Select& n) {
                     Expr c = fn(n.condition);
                     Expr a = fn(n.a);
                     Expr b = fn(n.b);
                     if (c.same_as(n.condition) && a.same_as(n.a) && b.same_as(n.b)) return e;
                     return select(std::move(c), std::move(a), std::move(b));
                   },
                   [&](const Cast& n) {
                     Expr a = fn(n.a);
                     return a.same_as(n.a) ? e : cast(e.dtype(), std::move(a));
                   },
                   [&](const Call& n) {
                     std::vector<Expr> args;
                     return map_list(n.args, args) ? call(n.intrinsic, std::move(args)) : e;
                   },
                   [&](const Load& n) {
                     std::vector<Expr> indices;
                     return map_list(n.indices, indices) ? load(n.buffer, std::move(indices)) : e;
                   },
               },
               e);
}

template <class Fn>
void visit_children(const Expr& e, const Fn& fn) {
  visit(overloaded{
            [&](const IntImm&) {},
            [&](const FloatImm&) {},
            [&](const VarRef&) {},
            [&](const Unary& n) { fn(n.a); },
            [&](const Binary& n) {
              fn(n.a);
              fn(n.b);
            },
            [&](const Select& n) {
              fn(n.condition);
              fn(n.a);
              fn(n.b);
            },
            [&](const Cast& n) { fn(n.a); },
            [&](const Call& n) {
              for (const Expr& arg : n.args) fn(arg);
            },
            [&](const Load& n) {
              for (const Expr& index : n.indices) fn(index);
            },
        },
        e);
}

Expr substitute(const Expr& e, const VarMap& map, ExprMemo<Expr>& memo) {
  if (const VarRef* ref = as<VarRef>(e)) {
    const auto it = map.find(ref->var.get());
    return it == map.end() ? e : it->second;
  }
  if (const Expr* known = memo.find(e)) return *known;
  Expr out = map_children(e, [&](const Expr& child) { return substitute(child, map, memo); });
  memo.remember(e, out);
  return out;
}

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn, ExprMemo<Expr>& memo) {
  if (const Expr* known = memo.find(e)) return *known;
  Expr out = fn(map_children(e, [&](const Expr& child) { return rewrite(child, fn, memo); }));
  memo.remember(e, out);
  return out;
}

using Visited = std::unordered_set<const ExprNode*>;

void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& fn, Visited& visited) {
  if (worth_remembering(e) && !visited.insert(e.get()).second) return;
  fn(e);
  visit_children(e, [&](const Expr& child) { for_each_expr(child, fn, visited); });
}

bool uses_var(const Expr& e, const Var& var, Visited& visited) {
  if (const VarRef* ref = as<VarRef>(e)) return ref->var == var;
  if (worth_remembering(e) && !visited.insert(e.get()).second) return false;
  bool found = false;
  visit_children(e, [&](const Expr& child) { found = found || uses_var(child, var, visited); });
  return found;
}

using LoadSize = std::function<int64_t(const Load&)>;

int64_t written_size(const Expr& e, const LoadSize& extra, ExprMemo<int64_t>& memo) {
  if (const int64_t* known = memo.find(e)) return *known;
  int64_t size = 1;
  const auto add = [&](int64_t more) {
    if (__builtin_add_overflow(size, more, &size)) size = INT64_MAX;
  };
  visit_children(e, [&](const Expr& child) { add(written_size(child, extra, memo)); });
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
            bool changed = false;
            std::vector<Expr> indices;
            indices.reserve(n.indices.size());
            for (const Expr& index : n.indices) {
              indices.push_back(fn(index));
              changed |= !indices.back().same_as(index);
            }
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
  visit(overloaded{
            [&](const For& n) { for_each_stmt(n.body, fn); },
            [&](const Store&) {},
            [&](const IfThenElse& n) {
              for_each_stmt(n.then_body, fn);
              for_each_stmt(n.else_body, fn);
            },
            [&](const Seq& n) {
              for (const Stmt& child : n.stmts) for_each_stmt(child, fn);
            },
            [&](const Allocate& n) { for_each_stmt(n.body, fn); },
        },
        s);
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
