// Exponential, logarithm, tanh, erf, sine and cosine in float; helpers for all functions.
// Polynomials: exp, log, tanh, sin, cos after the Cephes library (S. Moshier); erf fitted on two intervals.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/math.h"

namespace tensorsmith::codegen {

using V = llvm::Value*;

V MathEmitter::f(V like, double value) { return llvm::ConstantFP::get(like->getType(), value); }

llvm::Type* MathEmitter::ints(V like) {
  llvm::Type* scalar = b_.getIntNTy(like->getType()->getScalarSizeInBits());
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType()))
    return llvm::FixedVectorType::get(scalar, vector->getNumElements());
  return scalar;
}

V MathEmitter::i(V like, uint64_t value) { return llvm::ConstantInt::get(ints(like), value); }

V MathEmitter::mul_add(V a, V b, V c) {
  if (fma_) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  return b_.CreateFAdd(b_.CreateFMul(a, b), c);
}

V MathEmitter::polynomial(V x, std::initializer_list<double> coefficients) {
  V sum = nullptr;
  for (const double c : coefficients) sum = sum == nullptr ? f(x, c) : mul_add(sum, x, f(x, c));
  return sum;
}

V MathEmitter::unary(unsigned id, V x) {
  return b_.CreateUnaryIntrinsic(static_cast<llvm::Intrinsic::ID>(id), x);
}
V MathEmitter::abs(V x) { return unary(llvm::Intrinsic::fabs, x); }
V MathEmitter::sqrt(V x) { return unary(llvm::Intrinsic::sqrt, x); }
V MathEmitter::copysign(V magnitude, V sign) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

V MathEmitter::widen(V x) {
  llvm::Type* type = b_.getDoubleTy();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  return b_.CreateFPExt(x, type);
}
V MathEmitter::narrow(V x, V like) { return b_.CreateFPTrunc(x, like->getType()); }

// Scales in two steps, because n may exceed the exponent range although p * 2^n does not (subnormal
// results).
V MathEmitter::scale(V p, V n) {
  const uint64_t mantissa = is_f32(p) ? 23 : 52;
  const uint64_t bias = is_f32(p) ? 127 : 1023;
  V half = b_.CreateAShr(n, 1);
  V rest = b_.CreateSub(n, half);
  const auto power = [&](V k) { return from_bits(b_.CreateShl(b_.CreateAdd(k, i(p, bias)), mantissa), p); };
  return b_.CreateFMul(b_.CreateFMul(p, power(half)), power(rest));
}

V MathEmitter::round_magic(V x, V& integer) {
  const double magic = is_f32(x) ? 0x1.8p23 : 0x1.8p52;
  V shifted = b_.CreateFAdd(x, f(x, magic));
  integer = b_.CreateSub(to_bits(shifted), to_bits(f(x, magic)));
  return b_.CreateFSub(shifted, f(x, magic));
}

V MathEmitter::exp(V x) { return is_f32(x) ? exp_f32(x) : exp_f64(x); }
V MathEmitter::log(V x) { return is_f32(x) ? log_f32(x) : log_f64(x); }
V MathEmitter::tanh(V x) { return is_f32(x) ? tanh_f32(x) : tanh_f64(x); }
V MathEmitter::erf(V x) { return is_f32(x) ? erf_f32(x) : erf_f64(x); }

// 1 + r + r^2 * p(r) for |r| <= ln2 / 2, where x = n * ln2 + r.
V MathEmitter::exp_of_rest(V x, V n) {
  V r = mul_add(n, f(x, -0.693359375), x);
  r = mul_add(n, f(x, 2.12194440e-4), r);
  V p = polynomial(r, {1.9875691500E-4, 1.3981999507E-3, 8.3334519073E-3, 4.1665795894E-2, 1.6666665459E-1,
                       5.0000001201E-1});
  return b_.CreateFAdd(mul_add(p, b_.CreateFMul(r, r), r), f(x, 1));
}

V MathEmitter::clamp(V x, double low, double high) {
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, f(x, high)), f(x, high), x);
  return b_.CreateSelect(b_.CreateFCmpOLT(x, f(x, low)), f(x, low), x);
}

// e^x = 2^n * e^r. Results below the smallest number are set to 0 by a comparison: a processor
// takes a hundred cycles and more to round a product to 0, and the softmax of a masked attention
// has many such results. NaN propagates.
V MathEmitter::exp_f32(V x) {
  V none = b_.CreateFCmpOLT(x, f(x, -104));
  x = b_.CreateSelect(none, f(x, 0), x);
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, f(x, 89)), f(x, 89), x);
  V n_bits = nullptr;
  V n = round_magic(b_.CreateFMul(x, f(x, 1.44269504088896341)), n_bits);
  return b_.CreateSelect(none, f(x, 0), scale(exp_of_rest(x, n), n_bits));
}

// The rounded n is in the low bits of a float, with the exponent's bias added, so that one shift
// turns it into 2^n.
V MathEmitter::exp_without_ends(V x) {
  constexpr double kMagic = 0x1.8p23 + 127;
  x = clamp(x, -87.3, 89);
  V shifted = mul_add(x, f(x, 1.44269504088896341), f(x, kMagic));
  V power = from_bits(b_.CreateShl(to_bits(shifted), 23), x);
  return b_.CreateFMul(exp_of_rest(x, b_.CreateFSub(shifted, f(x, kMagic))), power);
}

// 2^(n - 1) is a normal number, and doubling it may exceed the largest power of two.
V MathEmitter::exp_from(V x) {
  constexpr double kMagic = 0x1.8p23 + 126;
  x = clamp(x, kExpFrom, 89);
  V shifted = mul_add(x, f(x, 1.44269504088896341), f(x, kMagic));
  V power = from_bits(b_.CreateShl(to_bits(shifted), 23), x);
  V half = b_.CreateFMul(exp_of_rest(x, b_.CreateFSub(shifted, f(x, kMagic))), power);
  return b_.CreateFAdd(half, half);
}

// x = 2^e * m, sqrt(1/2) <= m < sqrt(2).
V MathEmitter::log_f32(V x) {
  V small = b_.CreateFCmpOLT(x, f(x, 0x1p-126));
  V normal = b_.CreateSelect(small, b_.CreateFMul(x, f(x, 0x1p25)), x);
  V bits = to_bits(normal);
  V e = b_.CreateSub(b_.CreateAnd(b_.CreateLShr(bits, 23), i(x, 255)), i(x, 126));
  e = b_.CreateSelect(small, b_.CreateSub(e, i(x, 25)), e);
  V m = from_bits(b_.CreateOr(b_.CreateAnd(bits, i(x, 0x7fffff)), i(x, 0x3f000000)), x);
  V low = b_.CreateFCmpOLT(m, f(x, 0.707106781186547524));
  e = b_.CreateSelect(low, b_.CreateSub(e, i(x, 1)), e);
  m = b_.CreateFSub(b_.CreateSelect(low, b_.CreateFAdd(m, m), m), f(x, 1));
  V exponent = b_.CreateSIToFP(e, x->getType());
  V z = b_.CreateFMul(m, m);
  V p = polynomial(m, {7.0376836292E-2, -1.1514610310E-1, 1.1676998740E-1, -1.2420140846E-1, 1.4249322787E-1,
                       -1.6668057665E-1, 2.0000714765E-1, -2.4999993993E-1, 3.3333331174E-1});
  V y = b_.CreateFMul(b_.CreateFMul(p, m), z);
  y = mul_add(exponent, f(x, -2.12194440e-4), y);
  y = mul_add(z, f(x, -0.5), y);
  V r = mul_add(exponent, f(x, 0.693359375), b_.CreateFAdd(m, y));
  const double infinity = std::numeric_limits<double>::infinity();
  r = b_.CreateSelect(b_.CreateFCmpOEQ(x, f(x, infinity)), x, r);
  r = b_.CreateSelect(b_.CreateFCmpOEQ(x, f(x, 0)), f(x, -infinity), r);
  return b_.CreateSelect(b_.CreateFCmpULT(x, f(x, 0)), f(x, std::numeric_limits<double>::quiet_NaN()), r);
}

V MathEmitter::tanh_f32(V x) {
  V a = abs(x);
  V z = b_.CreateFMul(x, x);
  V p = polynomial(
      z, {-5.70498872745E-3, 2.06390887954E-2, -5.37397155531E-2, 1.33314422036E-1, -3.33332819422E-1});
  V small = mul_add(b_.CreateFMul(p, z), a, a);
  V e = exp_without_ends(b_.CreateFAdd(a, a));
  V large = b_.CreateFSub(f(x, 1), b_.CreateFDiv(f(x, 2), b_.CreateFAdd(e, f(x, 1))));
  return copysign(b_.CreateSelect(b_.CreateFCmpOLT(a, f(x, 0.625)), small, large), x);
}

// Odd polynomial near zero; elsewhere 1 - exp(polynomial).
V MathEmitter::erf_f32(V x) {
  V t = abs(x);
  V s = b_.CreateFMul(x, x);
  V p = polynomial(
      s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  V small = mul_add(p, x, x);
  // Beyond 4 the result rounds to 1; the clamp keeps the argument in the polynomial's interval. NaN
  // propagates.
  V c = b_.CreateSelect(b_.CreateFCmpOGT(t, f(x, 4)), f(x, 4), t);
  V q = polynomial(c, {-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1,
                       -6.34846687e-1, -1.28717512e-1});
  q = mul_add(q, c, b_.CreateFNeg(c));
  V large = copysign(b_.CreateFSub(f(x, 1), exp_without_ends(q)), x);
  return b_.CreateSelect(b_.CreateFCmpOGT(t, f(x, 0.927734375)), large, small);
}

// The angle is reduced in double, so that a float near a multiple of pi keeps its relative
// accuracy.
V MathEmitter::sin_cos(V x, bool cosine) {
  const bool single = is_f32(x);
  V quadrant = nullptr;
  V r = reduce_angle(single ? widen(x) : x, quadrant);
  if (cosine) quadrant = b_.CreateAdd(quadrant, i(r, 1));
  V q1 = b_.CreateAnd(quadrant, i(r, 1));
  V q2 = b_.CreateAnd(quadrant, i(r, 2));
  V odd = b_.CreateICmpNE(q1, i(r, 0));
  V negative = b_.CreateICmpNE(q2, i(r, 0));
  if (single) r = narrow(r, x);
  V z = b_.CreateFMul(r, r);
  V sine = nullptr;
  V cos = nullptr;
  if (single) {
    sine = polynomial(z, {-1.9515295891E-4, 8.3321608736E-3, -1.6666654611E-1});
    cos = polynomial(z, {2.443315711809948E-005, -1.388731625493765E-003, 4.166664568298827E-002});
  } else {
    sine =
        polynomial(z, {1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                       -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01});
    cos =
        polynomial(z, {-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                       2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02});
  }
  sine = mul_add(b_.CreateFMul(sine, z), r, r);
  cos = b_.CreateFAdd(mul_add(z, f(r, -0.5), b_.CreateFMul(b_.CreateFMul(cos, z), z)), f(r, 1));
  V result = b_.CreateSelect(odd, cos, sine);
  result = b_.CreateSelect(negative, b_.CreateFNeg(result), result);
  // The polynomial loses the sign of -0.
  return cosine ? result : b_.CreateSelect(b_.CreateFCmpOEQ(x, f(x, 0)), x, result);
}

}  // namespace tensorsmith::codegen
