// Simplification under variable ranges. It is idempotent and never changes the value for any
// assignment within the ranges.
#pragma once

#include "ir/bounds.h"
#include "ir/stmt.h"

namespace tensorsmith::ir {

// Uses canonical linear sums for integers ((i*4 + j), with floordiv/floormod by constants resolved
// if the ranges allow), constant folding, comparisons decided by bounds, and selects with known
// conditions. Floats are only rewritten exactly (constant folding in the dtype; no reassociation).
Expr simplify(const Expr& e, const VarBounds& vars = {});

// Simplifies every expression within the ranges of the enclosing loops. Removes loops of extent 1
// (substituting 0) and of extent 0, decided branches, and empty sequences. Keeps loops of kind
// kThread. May return null for a program without effect.
Stmt simplify(const Stmt& s, const VarBounds& vars = {});

// True only if the condition holds for every assignment in range.
bool can_prove(const Expr& condition, const VarBounds& vars);

}  // namespace tensorsmith::ir
