// Helpers over expressions and statements: substitution, traversal, buffers read. A node that an expression
// shares is handled once, so that all of this is linear in the number of nodes.
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
// Returns the same node when nothing changed. What is shared in e is shared in the result.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn);
// Applies fn (on whole expressions) to every expression of the statement.
Stmt rewrite_exprs(const Stmt& s, const std::function<Expr(const Expr&)>& fn);

// Pre-order visit of every node; one that is shared is visited where it comes first.
void for_each_expr(const Expr& e, const std::function<void(const Expr&)>& fn);
// Pre-order visit of every statement.
void for_each_stmt(const Stmt& s, const std::function<void(const Stmt&)>& fn);

bool uses_var(const Expr& e, const Var& var);
// Every load in the expression, in pre-order; equal ones that are nodes of their own are all there.
std::vector<const Load*> loads_of(const Expr& e);

// Whether the value is an element as it was loaded, or a constant: nothing is computed of elements.
bool only_moves(const Expr& e);
// The load that e converts to this type, or null.
const Load* converted_load(const Expr& e, DType dtype);

// Nodes of the expression as it is written out, where what is shared stands once for each use, and
// extra(load) more for each load; saturates at INT64_MAX.
int64_t written_size(const Expr& e, const std::function<int64_t(const Load&)>& extra = nullptr);

}  // namespace tensorsmith::ir
