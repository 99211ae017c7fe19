// The arithmetic of ir/expr.h on single values, used by constant folding and by the interpreter.
#pragma once

#include <cstdint>

#include "ir/expr.h"

namespace tensorsmith::ir {

// A value of any dtype: `i` holds integers and bool (kU64 as bit pattern), `f` holds floats
// (already rounded to the dtype).
struct Scalar {
  DType dtype = DType::kI64;
  int64_t i = 0;
  double f = 0;
};

// IEEE 754-2019's minimum and maximum, which propagate NaN.
template <typename T>
T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}
template <typename T>
T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
// Returns whether a candidate replaces the best value so far of an arg-max or arg-min, apart from
// ties: a NaN beats all other values.
template <typename T>
bool beats(bool is_max, T candidate, T best) {
  return (is_max ? candidate > best : candidate < best) || (candidate != candidate && best == best);
}

Scalar scalar_int(DType dtype, int64_t value);   // wraps to the dtype's width
Scalar scalar_float(DType dtype, double value);  // rounds to the dtype
Scalar eval_unary(UnaryOp op, Scalar a);
Scalar eval_binary(BinaryOp op, Scalar a, Scalar b);
Scalar eval_cast(DType dtype, Scalar a);
Scalar eval_call(Intrinsic intrinsic, Scalar a, Scalar b = {});

// IEEE half and bfloat16 <-> float, rounding to nearest even.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

// One element in memory.
Scalar load_scalar(DType dtype, const void* element);
void store_scalar(Scalar value, void* element);

}  // namespace tensorsmith::ir
