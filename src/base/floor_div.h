// Integer division that rounds towards minus infinity, and the corresponding remainder.
#pragma once

#include <cstdint>

namespace tensorsmith {

// b > 0
inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
// Returns a / b rounded up; a >= 0, b > 0.
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Returns the smallest multiple of `unit` that is not less than `value`; value >= 0, unit > 0.
inline int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
// b > 0; the result is in [0, b).
inline int64_t floor_mod(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r < 0 ? r + b : r;
}

}  // namespace tensorsmith
