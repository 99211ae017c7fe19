// Integer interval analysis and affine forms of index expressions.
#pragma once

#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace tensorsmith::ir {

// Closed interval of int64; kNegInf / kPosInf stand for "unknown".
struct Interval {
  static constexpr int64_t kNegInf = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();
  int64_t min = kNegInf;
  int64_t max = kPosInf;
  bool bounded() const { return min != kNegInf && max != kPosInf; }
  static Interval everything() { return {}; }
  static Interval point(int64_t v) { return {v, v}; }
  friend bool operator==(const Interval&, const Interval&) = default;
};
using VarBounds = std::unordered_map<const VarNode*, Interval>;

// Returns a sound enclosure of the values of an integer or bool expression, for variables in the
// given ranges (a missing variable's range is unknown).
Interval bounds_of(const Expr& e, const VarBounds& vars);

}  // namespace tensorsmith::ir
