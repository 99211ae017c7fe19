// Structural equality and hashing: equal up to the names of variables, buffers and operations
// (alpha-equivalence), and sensitive to everything else (dtypes, shapes, order, annotations). Hashes are
// stable across runs and machines.
#pragma once

#include <string>
#include <vector>

#include "ir/stmt.h"
#include "ir/workload.h"

namespace tensorsmith::ir {

bool structural_equal(const Expr& a, const Expr& b);  // free variables and buffers must be identical
bool structural_equal(const std::vector<Expr>& a, const std::vector<Expr>& b);
bool structural_equal(const Program& a, const Program& b);
bool structural_equal(const Workload& a, const Workload& b);

// Returns 32 hex digits, the key of a task in the record database.
std::string structural_key(const Workload& workload);
std::string structural_key(const Program& program);

}  // namespace tensorsmith::ir
