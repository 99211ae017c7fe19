// Places in memory that are a sum: how far the value of one loop's variable moves them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/bounds.h"
#include "ir/linear.h"

namespace tensorsmith::codegen {

// A sum of functions of one variable each, and of a rest that has none of them.
class Separable {
 public:
  // None: a part of the sum has several of the variables, one beside others, or loads.
  static std::optional<Separable> of(const ir::Expr& e, const ir::VarBounds& bounds,
                                     const std::vector<ir::Var>& vars);

  // What the value of this variable adds, beside what 0 adds.
  std::optional<int64_t> moved(const ir::Var& var, int64_t value) const;
  // Whether something depends on none of the variables, beside a constant.
  bool has_rest() const { return has_rest_; }

 private:
  ir::LinearSum sum_;
  std::vector<size_t> owners_;  // by term: which variable, or kNobody
  std::vector<ir::Var> vars_;
  bool has_rest_ = false;
};

}  // namespace tensorsmith::codegen
