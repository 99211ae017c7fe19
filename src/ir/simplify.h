// Simplification under variable ranges. Idempotent; never changes the value for any assignment in range.
#pragma once

#include "ir/bounds.h"
#include "ir/stmt.h"

namespace tensorsmith::ir {

// Canonical linear sums for integers ((i*4 + j) with floordiv/floormod by constants resolved where ranges
// allow), constant folding, comparisons decided by bounds, selects with known conditions. Floats: only exact
// rewrites (constant folding in the dtype; no reassociation).
Expr simplify(const Expr& e, const VarBounds& vars = {});

// Simplifies every expression with the enclosing loops' ranges; drops loops of extent 1 (substituting 0) and
// of extent 0, decided branches, empty sequences. Keeps loops of kind kThread. May return null for a program
// without effect.
Stmt simplify(const Stmt& s, const VarBounds& vars = {});

// True only if the condition holds for every assignment in range.
bool can_prove(const Expr& condition, const VarBounds& vars);

}  // namespace tensorsmith::ir
