// Which accesses of a vectorized loop are one access of a vector.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/bounds.h"
#include "ir/expr.h"

namespace tensorsmith::codegen {

// The widest vector that a thread loads or stores at once.
inline constexpr int64_t kMaxVectorBytes = 16;

// The elements for lane = 0 .. lanes - 1 lie beside each other, from a multiple of their number of bytes on, and are at
// most kMaxVectorBytes.
bool is_vector(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, const ir::Var& lane,
               int64_t lanes, const ir::VarBounds& bounds);

// The loads that the expression evaluates whatever its values are: none under a select.
std::vector<ir::Expr> certain_loads(const ir::Expr& e);

}  // namespace tensorsmith::codegen
