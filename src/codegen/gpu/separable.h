// Indices that are sums of functions of one variable each: how far the value of a loop's variable
// moves them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/bounds.h"
#include "ir/linear.h"

namespace tensorsmith::codegen {

// A sum of functions of one variable each, and of a rest that depends on none of the variables.
class Separable {
 public:
  // Returns nothing if a term of the sum depends on several of the variables or contains loads.
  static std::optional<Separable> of(const ir::Expr& e, const ir::VarBounds& bounds,
                                     const std::vector<ir::Var>& vars);

  // Returns how much more the variable adds at `value` than at 0.
  std::optional<int64_t> moved(const ir::Var& var, int64_t value) const;
  // Returns whether some term, other than a constant, depends on none of the variables.
  bool has_rest() const { return has_rest_; }

 private:
  ir::LinearSum sum_;
  std::vector<size_t> owners_;  // for each term, the index of its variable, or kNobody
  std::vector<ir::Var> vars_;
  bool has_rest_ = false;
};

}  // namespace tensorsmith::codegen
