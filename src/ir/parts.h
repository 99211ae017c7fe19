// The parts of nodes: the operands of expressions, and the statements and expressions inside statements.
// Functions that rewrite parts return the same node if all parts stay the same.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "ir/stmt.h"

namespace tensorsmith::ir {

// Calls fn(operand) for each operand, in the order in which the text of the expression has them.
template <class Fn>
void for_each_part(const Expr& e, const Fn& fn) {
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

// Calls fn(part) for each statement directly inside s: the body of a loop or an allocation, the branches of a
// condition, or the members of a sequence. fn is never called with null.
template <class Fn>
void for_each_part(const Stmt& s, const Fn& fn) {
  visit(overloaded{
            [&](const For& n) {
              if (n.body) fn(n.body);
            },
            [&](const Store&) {},
            [&](const IfThenElse& n) {
              if (n.then_body) fn(n.then_body);
              if (n.else_body) fn(n.else_body);
            },
            [&](const Seq& n) {
              for (const Stmt& part : n.stmts)
                if (part) fn(part);
            },
            [&](const Allocate& n) {
              if (n.body) fn(n.body);
            },
        },
        s);
}

// Calls fn(e) for each expression of s itself: the extent of a loop, the condition of branches, or the value
// and the indices of a store.
template <class Fn>
void for_each_own_expr(const Stmt& s, const Fn& fn) {
  visit(overloaded{
            [&](const For& n) { fn(n.extent); },
            [&](const Store& n) {
              fn(n.value);
              for (const Expr& index : n.indices) fn(index);
            },
            [&](const IfThenElse& n) { fn(n.condition); },
            [&](const Seq&) {},
            [&](const Allocate&) {},
        },
        s);
}

// Appends fn(item) to `out` for each item of a list; returns whether an item changed.
template <class Fn>
bool map_list(const std::vector<Expr>& list, const Fn& fn, std::vector<Expr>& out) {
  bool changed = false;
  out.reserve(list.size());
  for (const Expr& item : list) {
    out.push_back(fn(item));
    changed |= !out.back().same_as(item);
  }
  return changed;
}

// Replaces each operand by fn(operand).
template <class Fn>
Expr map_parts(const Expr& e, const Fn& fn) {
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
                     return map_list(n.args, fn, args) ? call(n.intrinsic, std::move(args)) : e;
                   },
                   [&](const Load& n) {
                     std::vector<Expr> indices;
                     return map_list(n.indices, fn, indices) ? load(n.buffer, std::move(indices)) : e;
                   },
               },
               e);
}

// Replaces each statement directly inside s, as for_each_part() lists them, by fn(part).
Stmt map_parts(const Stmt& s, const std::function<Stmt(const Stmt&)>& fn);

}  // namespace tensorsmith::ir
