// Helpers for expressions and statements: substitution, traversal, and the loads of an expression.
// A shared node is processed once, so the helpers take time linear in the number of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "ir/stmt.h"
#include "ir/workload.h"

namespace tensorsmith::ir {

using VarMap = std::unordered_map<const VarNode*, Expr>;

// Replaces variables; returns the same node when nothing changed.
Expr substitute(const Expr& e, const VarMap& map);
Stmt substitute(const Stmt& s, const VarMap& map);

// Rewrites bottom-up: children first, then fn on the rebuilt node; fn returns its argument to keep it.
// Returns the same node if nothing changed. Nodes that are shared in e are shared in the result.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn);
// Applies fn (on whole expressions) to every expression of the statement.
Stmt rewrite_exprs(const Stmt& s, const std::function<Expr(const Expr&)>& fn);

// Visits every node in pre-order; a shared node is visited only at its first occurrence.
void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& fn);
// Visits every statement in pre-order.
void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& fn);

bool uses_var(const Expr& e, const Var& var);
// Returns every load in the expression, in pre-order; equal loads that are separate nodes are all
// included.
std::vector<const Load*> loads_of(const Expr& e);

// Returns whether the value is a loaded element or a constant, with no computation on elements.
bool only_moves(const Expr& e);
// Returns the load that e converts to this type, or null.
const Load* converted_load(const Expr& e, DType dtype);

// Returns the number of nodes of the expression as it is printed, where a shared node counts once
// per use, plus extra(load) for each load; saturates at INT64_MAX.
int64_t written_size(const Expr& e, const std::function<int64_t(const Load&)>& extra = nullptr);

}  // namespace tensorsmith::ir
