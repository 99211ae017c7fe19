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

}  // namespace tensorsmith::ir
