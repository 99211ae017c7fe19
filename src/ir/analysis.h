// Helpers over expressions and statements: substitution, traversal, buffers read.
#pragma once

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
// Returns the same node when nothing changed.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn);
// Applies fn (on whole expressions) to every expression of the statement.
Stmt rewrite_exprs(const Stmt& s, const std::function<Expr(const Expr&)>& fn);

// Pre-order visit of every sub-expression.
void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& fn);
// Pre-order visit of every statement.
void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& fn);

bool uses_var(const Expr& e, const Var& var);
// Every load in the expression, in pre-order (duplicates included).
std::vector<const Load*> loads_of(const Expr& e);

}  // namespace tensorsmith::ir
