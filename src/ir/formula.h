// A formula of numbers that a user writes, for example "latency * (1 + memory / 1e6)". Its syntax is that of
// expressions in the text form.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"

namespace tensorsmith::ir {

// All values are f64; numbers need no suffix. Functions of the text form may be called: min, max, sqrt, ...
class Formula {
 public:
  // `names`: the variables. Errors (kInvalidArgument) have "line:column" as their place.
  static Result<Formula> parse(std::string_view text, std::span<const std::string_view> names);

  // Returns whether the formula has variable `index` of the names.
  bool uses(size_t index) const;
  // `values`: by variable.
  double value(std::span<const double> values) const;

 private:
  Formula() = default;

  Expr expression_;
  std::vector<Var> variables_;
};

}  // namespace tensorsmith::ir
