// Double precision functions. Coefficients: fdlibm (Sun Microsystems) for exp's and log's constants, log,
// erf, pi/2; Cephes (S. Moshier) for tanh and atan.
#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "codegen/llvm/math.h"

namespace tensorsmith::codegen {

using V = llvm::Value*;

namespace {
constexpr double kInfinityF64 = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0.693147180559945309417;
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
}  // namespace

// Taylor's series to r^13 / 13!: the rest is below 5e-18 for |r| <= ln2 / 2.
V MathEmitter::exp_f64(V x) {
  V none = b_.CreateFCmpOLT(x, f(x, -746));  // as in exp_f32
  x = b_.CreateSelect(none, f(x, 0), x);
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, f(x, 710)), f(x, 710), x);
  V n_bits = nullptr;
  V n = round_magic(b_.CreateFMul(x, f(x, 1.44269504088896338700)), n_bits);
  V r = mul_add(n, f(x, -kLn2High), x);
  r = mul_add(n, f(x, -kLn2Low), r);
  V p = polynomial(r, {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                       1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5});
  p = b_.CreateFAdd(mul_add(p, b_.CreateFMul(r, r), r), f(x, 1));
  return b_.CreateSelect(none, f(x, 0), scale(p, n_bits));
}

V MathEmitter::log_f64(V x) {
  V small = b_.CreateFCmpOLT(x, f(x, 0x1p-1022));
  V normal = b_.CreateSelect(small, b_.CreateFMul(x, f(x, 0x1p54)), x);
  V bits = to_bits(normal);
  V e = b_.CreateSub(b_.CreateAnd(b_.CreateLShr(bits, 52), i(x, 2047)), i(x, 1022));
  e = b_.CreateSelect(small, b_.CreateSub(e, i(x, 54)), e);
  V m = from_bits(b_.CreateOr(b_.CreateAnd(bits, i(x, 0xfffffffffffffULL)), i(x, 0x3fe0000000000000ULL)), x);
  V low = b_.CreateFCmpOLT(m, f(x, 0.70710678118654752440));
  e = b_.CreateSelect(low, b_.CreateSub(e, i(x, 1)), e);
  m = b_.CreateSelect(low, b_.CreateFAdd(m, m), m);
  // The exponent is small, so it is converted through 32 bits, for which all machines have
  // conversions.
  llvm::Type* i32 = b_.getInt32Ty();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    i32 = llvm::FixedVectorType::get(i32, vector->getNumElements());
  V k = b_.CreateSIToFP(b_.CreateTrunc(e, i32), x->getType());
  V g = b_.CreateFSub(m, f(x, 1));
  V s = b_.CreateFDiv(g, b_.CreateFAdd(f(x, 2), g));
  V z = b_.CreateFMul(s, s);
  V r = b_.CreateFMul(
      z, polynomial(z, {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                        2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                        6.666666666666735130e-01}));
  V half_square = b_.CreateFMul(f(x, 0.5), b_.CreateFMul(g, g));
  V inner = mul_add(s, b_.CreateFAdd(half_square, r), b_.CreateFMul(k, f(x, kLn2Low)));
  V result = mul_add(k, f(x, kLn2High), b_.CreateFSub(g, b_.CreateFSub(half_square, inner)));
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, f(x, kInfinityF64)), x, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, f(x, 0)), f(x, -kInfinityF64), result);
  return b_.CreateSelect(b_.CreateFCmpULT(x, f(x, 0)), f(x, kNan), result);
}

V MathEmitter::tanh_f64(V x) {
  V a = abs(x);
  V z = b_.CreateFMul(x, x);
  V p = polynomial(z, {-9.64399179425052238628E-1, -9.92877231001918586564E1, -1.61468768441708447952E3});
  V q = polynomial(z, {1, 1.12811678491632931402E2, 2.23548839060100448583E3, 4.84406305325125486048E3});
  V small = mul_add(b_.CreateFMul(a, z), b_.CreateFDiv(p, q), a);
  V e = exp_f64(b_.CreateFAdd(a, a));
  V large = b_.CreateFSub(f(x, 1), b_.CreateFDiv(f(x, 2), b_.CreateFAdd(e, f(x, 1))));
  return copysign(b_.CreateSelect(b_.CreateFCmpOLT(a, f(x, 0.625)), small, large), x);
}

V MathEmitter::erf_f64(V x) {
  V a = abs(x);
  V z = b_.CreateFMul(x, x);
  V p = polynomial(z, {-2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02,
                       -3.25042107247001499370e-01, 1.28379167095512558561e-01});
  V q = polynomial(z, {-3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03,
                       6.50222499887672944485e-02, 3.97917223959155352819e-01, 1});
  V near_zero = mul_add(x, b_.CreateFDiv(p, q), x);

  V s = b_.CreateFSub(a, f(x, 1));
  V pa = polynomial(s, {-2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01,
                        3.18346619901161753674e-01, -3.72207876035701323847e-01, 4.14856118683748331666e-01,
                        -2.36211856075265944077e-03});
  V qa =
      polynomial(s, {1.19844998467991074170e-02, 1.36370839120290507362e-02, 1.26171219808761642112e-01,
                     7.18286544141962662868e-02, 5.40397917702171048937e-01, 1.06420880400844228286e-01, 1});
  V near_one = b_.CreateFAdd(f(x, 8.45062911510467529297e-01), b_.CreateFDiv(pa, qa));

  // Beyond 6 the result rounds to 1.
  V c = b_.CreateSelect(b_.CreateFCmpOGT(a, f(x, 6)), f(x, 6), a);
  V square = b_.CreateFMul(c, c);
  V t = b_.CreateFDiv(f(x, 1), square);
  V ra = polynomial(t, {-9.81432934416914548592e+00, -8.12874355063065934246e+01, -1.84605092906711035994e+02,
                        -1.62396669462573470355e+02, -6.23753324503260060396e+01, -1.05586262253232909814e+01,
                        -6.93858572707181764372e-01, -9.86494403484714822705e-03});
  V sa = polynomial(t, {-6.04244152148580987438e-02, 6.57024977031928170135e+00, 1.08635005541779435134e+02,
                        4.29008140027567833386e+02, 6.45387271733267880336e+02, 4.34565877475229228821e+02,
                        1.37657754143519042600e+02, 1.96512716674392571292e+01, 1});
  V rb = polynomial(t, {-4.83519191608651397019e+02, -1.02509513161107724954e+03, -6.37566443368389627722e+02,
                        -1.60636384855821916062e+02, -1.77579549177547519889e+01, -7.99283237680523006574e-01,
                        -9.86494292470009928597e-03});
  V sb = polynomial(t, {-2.24409524465858183362e+01, 4.74528541206955367215e+02, 2.55305040643316442583e+03,
                        3.19985821950859553908e+03, 1.53672958608443695994e+03, 3.25792512996573918826e+02,
                        3.03380607434824582924e+01, 1});
  V nearer = b_.CreateFCmpOLT(c, f(x, 1 / 0.35));
  V ratio = b_.CreateFDiv(b_.CreateSelect(nearer, ra, rb), b_.CreateSelect(nearer, sa, sb));
  V tail = exp_f64(b_.CreateFSub(b_.CreateFSub(ratio, f(x, 0.5625)), square));
  V far = b_.CreateFSub(f(x, 1), b_.CreateFDiv(tail, c));

  V large = copysign(b_.CreateSelect(b_.CreateFCmpOLT(a, f(x, 1.25)), near_one, far), x);
  return b_.CreateSelect(b_.CreateFCmpOLT(a, f(x, 0.84375)), near_zero, large);
}

V MathEmitter::atan_f64(V x) {
  V a = abs(x);
  V big = b_.CreateFCmpOGT(a, f(x, 2.41421356237309504880));
  V middle = b_.CreateFCmpOGT(a, f(x, 0.66));
  V numerator = b_.CreateSelect(big, f(x, -1), b_.CreateSelect(middle, b_.CreateFSub(a, f(x, 1)), a));
  V denominator = b_.CreateSelect(big, a, b_.CreateSelect(middle, b_.CreateFAdd(a, f(x, 1)), f(x, 1)));
  V offset = b_.CreateSelect(big, f(x, 1.57079632679489661923),
                             b_.CreateSelect(middle, f(x, 7.85398163397448309616E-1), f(x, 0)));
  V low = b_.CreateSelect(big, f(x, 6.123233995736765886130E-17),
                          b_.CreateSelect(middle, f(x, 3.061616997868382943065E-17), f(x, 0)));
  V t = b_.CreateFDiv(numerator, denominator);
  V z = b_.CreateFMul(t, t);
  V p = polynomial(z, {-8.750608600031904122785E-1, -1.615753718733365076637E1, -7.500855792314704667340E1,
                       -1.228866684490136173410E2, -6.485021904942025371773E1});
  V q = polynomial(z, {1, 2.485846490142306297962E1, 1.650270098316988542046E2, 4.328810604912902668951E2,
                       4.853903996359136964868E2, 1.945506571482613964425E2});
  V r = mul_add(b_.CreateFMul(z, b_.CreateFDiv(p, q)), t, t);
  return copysign(b_.CreateFAdd(offset, b_.CreateFAdd(r, low)), x);
}

// log(1 + x) = log(u) * x / (u - 1) with u = 1 + x rounded: the rounding errors cancel (W. Kahan).
V MathEmitter::log1p_f64(V x) {
  V u = b_.CreateFAdd(x, f(x, 1));
  V d = b_.CreateFSub(u, f(x, 1));
  V ratio = b_.CreateFDiv(b_.CreateFMul(log_f64(u), x), d);
  V tiny = b_.CreateFCmpOEQ(d, f(x, 0));
  V r = b_.CreateSelect(tiny, x, ratio);
  V edge = b_.CreateFCmpOLE(u, f(x, 0));
  r = b_.CreateSelect(b_.CreateOr(edge, b_.CreateFCmpOEQ(u, f(x, kInfinityF64))), log_f64(u), r);
  return r;
}

// Computes e^(x/2) and squares it, which overflows only if the result does.
V MathEmitter::sinh_f64(V x, bool cosine) {
  V a = abs(x);
  V root = exp_f64(b_.CreateFMul(a, f(x, 0.5)));
  V half = b_.CreateFMul(root, f(x, 0.5));
  V grow = b_.CreateFMul(half, root);
  V shrink = b_.CreateFDiv(b_.CreateFDiv(f(x, 0.5), root), root);
  if (cosine) return b_.CreateFAdd(grow, shrink);
  V z = b_.CreateFMul(x, x);
  V series = polynomial(z, {1.0 / 355687428096000.0, 1.0 / 1307674368000.0, 1.0 / 6227020800.0,
                            1.0 / 39916800.0, 1.0 / 362880.0, 1.0 / 5040.0, 1.0 / 120.0, 1.0 / 6.0});
  V small = mul_add(b_.CreateFMul(series, z), x, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(a, f(x, 1)), small, copysign(b_.CreateFSub(grow, shrink), x));
}

V MathEmitter::asinh_f64(V x) {
  V a = abs(x);
  V z = b_.CreateFMul(a, a);
  V root = sqrt(b_.CreateFAdd(z, f(x, 1)));
  V near = log1p_f64(b_.CreateFAdd(a, b_.CreateFDiv(z, b_.CreateFAdd(root, f(x, 1)))));
  V far = b_.CreateFAdd(log_f64(a), f(x, kLn2));
  return copysign(b_.CreateSelect(b_.CreateFCmpOGT(a, f(x, 0x1p28)), far, near), x);
}

V MathEmitter::acosh_f64(V x) {
  V t = b_.CreateFSub(x, f(x, 1));
  V near = log1p_f64(b_.CreateFAdd(t, sqrt(b_.CreateFMul(t, b_.CreateFAdd(x, f(x, 1))))));
  V far = b_.CreateFAdd(log_f64(x), f(x, kLn2));
  V r = b_.CreateSelect(b_.CreateFCmpOGT(x, f(x, 0x1p28)), far, near);
  return b_.CreateSelect(b_.CreateFCmpULT(x, f(x, 1)), f(x, kNan), r);
}

V MathEmitter::atanh_f64(V x) {
  V a = abs(x);
  V inner = b_.CreateFDiv(b_.CreateFAdd(a, a), b_.CreateFSub(f(x, 1), a));
  V r = b_.CreateFMul(f(x, 0.5), log1p_f64(inner));
  r = b_.CreateSelect(b_.CreateFCmpOEQ(a, f(x, 1)), f(x, kInfinityF64), r);
  r = b_.CreateSelect(b_.CreateFCmpOGT(a, f(x, 1)), f(x, kNan), r);
  return copysign(r, x);
}

// |x|^y = e^(y log|x|), followed by the sign and the special cases of C's pow.
V MathEmitter::pow_f64(V x, V y) {
  V a = abs(x);
  V one = f(x, 1);
  V zero = f(x, 0);
  V product = b_.CreateFMul(y, log_f64(a));
  // 0 * infinity occurs only if y = 0 or a = 1, and those results are set below.
  V r = exp_f64(product);
  V is_integer = b_.CreateFCmpOEQ(unary(llvm::Intrinsic::trunc, y), y);
  V halved = b_.CreateFMul(y, f(x, 0.5));
  V odd = b_.CreateAnd(is_integer, b_.CreateFCmpONE(unary(llvm::Intrinsic::trunc, halved), halved));
  V negative = b_.CreateICmpSLT(to_bits(x), i(x, 0));
  V finite_negative = b_.CreateAnd(b_.CreateFCmpOLT(x, zero), b_.CreateFCmpONE(x, f(x, -kInfinityF64)));
  r = b_.CreateSelect(b_.CreateAnd(negative, odd), b_.CreateFNeg(r), r);
  r = b_.CreateSelect(b_.CreateAnd(finite_negative, b_.CreateNot(is_integer)), f(x, kNan), r);
  r = b_.CreateSelect(b_.CreateFCmpUNO(x, y), f(x, kNan), r);
  r = b_.CreateSelect(b_.CreateAnd(b_.CreateFCmpOEQ(a, one), b_.CreateFCmpOEQ(abs(y), f(x, kInfinityF64))),
                      one, r);
  return b_.CreateSelect(b_.CreateOr(b_.CreateFCmpOEQ(y, zero), b_.CreateFCmpOEQ(x, one)), one, r);
}

}  // namespace tensorsmith::codegen
