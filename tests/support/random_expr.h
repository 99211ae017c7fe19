// Random expressions over variables with known ranges, and their evaluation by the scalar
// semantics.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "ir/bounds.h"
#include "ir/scalar.h"

namespace tensorsmith::test {

using Assignment = std::unordered_map<const ir::VarNode*, int64_t>;

// Returns the value of an expression without loads. *overflow is set if some kI64 operation left
// int64.
ir::Scalar evaluate_expr(const ir::Expr& e, const Assignment& values, bool* overflow = nullptr);

struct ExprGenerator {
  Rng rng;
  std::vector<ir::Var> vars;
  ir::VarBounds bounds;

  // Makes `count` variables with random ranges, most of them [0, n).
  ExprGenerator(uint64_t seed, int count);

  ir::Expr index(int depth);      // kI64
  ir::Expr condition(int depth);  // kBool
  ir::Expr value(ir::DType dtype, int depth);
  Assignment assignment();  // uniform in the ranges
};

}  // namespace tensorsmith::test
