// Math functions as inline code: kernels call no library. Values are float or double, scalars or vectors.
//
// Accuracy, tested against libm: float exp, log, tanh, erf, sin and cos are within about 2 ulp;
// other float functions are computed in double and rounded once; double functions are within 1e-13
// relative. Infinities, NaN, zeros and subnormals behave as in C's libm, including the signs of
// zeros.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <initializer_list>

#include "ir/expr.h"

namespace tensorsmith::codegen {

class MathEmitter {
 public:
  MathEmitter(llvm::IRBuilder<>& builder, bool fma) : b_(builder), fma_(fma) {}

  // y is used by functions of two arguments only. kIsNan and kIsInf give i1.
  llvm::Value* intrinsic(ir::Intrinsic intrinsic, llvm::Value* x, llvm::Value* y);
  // Exact power of integers, wrapped to their width.
  llvm::Value* integer_pow(llvm::Value* x, llvm::Value* y, bool is_signed);
  // e^x of floats in two thirds of the instructions, for callers that add a number near 1 to it and
  // divide by the sum. The result is 2^-126 where e^x is less, and infinite from x = 88.4 on (half
  // a power of two too early).
  llvm::Value* exp_without_ends(llvm::Value* x);
  // e^x of floats if x >= kExpFrom, otherwise e^kExpFrom. NaN propagates.
  llvm::Value* exp_from(llvm::Value* x);
  static constexpr double kExpFrom = -86.6;

 private:
  using V = llvm::Value*;

  // --- intrinsic.cc
  V sign(V x);
  V fmod(V x, V y);
  V round_tf32(V x);  // f32
  llvm::Function* fmod_function();
  // Calls a function of scalars once a lane.
  V call_by_lane(llvm::Function* function, V x, V y);
  // Creates an empty internal function without side effects, on doubles or integers.
  llvm::Function* make_function(llvm::FunctionType* type, const char* name);

  // --- math_core.cc: float and double
  V exp(V x);
  V log(V x);
  V tanh(V x);
  V erf(V x);
  V sin_cos(V x, bool cosine);
  V exp_f32(V x);
  V exp_of_rest(V x, V n);
  V log_f32(V x);
  V tanh_f32(V x);
  V erf_f32(V x);

  // --- math_angle.cc: double only
  // Finds x = quadrant * pi/2 + rest with |rest| <= pi/4; the quadrant is an integer of x's width.
  // Accepts any x; may end the current block.
  V reduce_angle(V x, V& quadrant);
  llvm::Function* reduce_function();

  // --- math_integer_pow.cc
  llvm::Function* integer_pow_function(llvm::Type* type, bool is_signed);

  // --- math_f64.cc: double only
  V exp_f64(V x);
  V log_f64(V x);
  V tanh_f64(V x);
  V erf_f64(V x);
  V atan_f64(V x);
  V log1p_f64(V x);
  V sinh_f64(V x, bool cosine);
  V asinh_f64(V x);
  V acosh_f64(V x);
  V atanh_f64(V x);
  V pow_f64(V x, V y);

  // --- helpers (math_core.cc)
  V f(V like, double value);                                      // constant of like's type
  V i(V like, uint64_t value);                                    // integer constant of like's width
  llvm::Type* ints(V like);                                       // integers of like's shape and width
  V mul_add(V a, V b, V c);                                       // fused if the machine can
  V polynomial(V x, std::initializer_list<double> coefficients);  // highest power first
  V clamp(V x, double low, double high);                          // NaN propagates
  V unary(unsigned id, V x);
  V abs(V x);
  V copysign(V magnitude, V sign);
  V sqrt(V x);
  V to_bits(V x) { return b_.CreateBitCast(x, ints(x)); }
  V from_bits(V bits, V like) { return b_.CreateBitCast(bits, like->getType()); }
  // p * 2^n for integers n (of p's width), in twice the exponent range.
  V scale(V p, V n);
  // Rounds to the nearest integer by adding a constant to the mantissa, and returns it also as
  // integer bits. |x| < 2^22 (float), 2^51 (double).
  V round_magic(V x, V& integer);
  bool is_f32(V x) { return x->getType()->getScalarType()->isFloatTy(); }
  V widen(V x);           // float -> double
  V narrow(V x, V like);  // double -> like's type

  llvm::IRBuilder<>& b_;
  const bool fma_;
};

}  // namespace tensorsmith::codegen
