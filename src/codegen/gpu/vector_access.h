// Determines which accesses of a vectorized loop are a single access of a vector.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/bounds.h"
#include "ir/expr.h"

namespace tensorsmith::codegen {

// The widest vector that a thread loads or stores at once.
inline constexpr int64_t kMaxVectorBytes = 16;

// Returns whether the elements for lane = 0 .. lanes - 1 are adjacent, aligned to their total size,
// and at most kMaxVectorBytes long.
bool is_vector(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, const ir::Var& lane,
               int64_t lanes, const ir::VarBounds& bounds);

// Returns the loads that are evaluated in any case: none that are under a select.
std::vector<ir::Expr> certain_loads(const ir::Expr& e);

}  // namespace tensorsmith::codegen
