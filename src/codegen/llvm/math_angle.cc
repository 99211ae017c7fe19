// Argument reduction for sine, cosine and tangent.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <limits>

#include "codegen/llvm/math.h"

namespace tensorsmith::codegen {

using V = llvm::Value*;

namespace {

// For larger angles, the products of the quadrant with the parts of pi/2 are not exact.
constexpr double kLargeAngle = 0x1p20;
constexpr double kLargeAngleFused = 0x1p28;

// 64 zeros, then the first 1280 bits of 2/pi.
constexpr uint64_t kTwoOverPi[] = {
    0x0000000000000000ULL, 0xa2f9836e4e441529ULL, 0xfc2757d1f534ddc0ULL, 0xdb6295993c439041ULL,
    0xfe5163abdebbc561ULL, 0xb7246e3a424dd2e0ULL, 0x06492eea09d1921cULL, 0xfe1deb1cb129a73eULL,
    0xe88235f52ebb4484ULL, 0xe99c7026b45f7e41ULL, 0x3991d639835339f4ULL, 0x9c845f8bbdf9283bULL,
    0x1ff897ffde05980fULL, 0xef2f118b5a0a6d1fULL, 0x6d367ecf27cb09b7ULL, 0x4f463f669e5fea2dULL,
    0x7527bac7ebe5f17bULL, 0x3d0739f78a5292eaULL, 0x6bfb5fb11f8d5d08ULL, 0x56033046fc7b6babULL,
    0xf0cfbc209af4361dULL,
};

}  // namespace

// Cody and Waite's reduction with pi/2 in three parts of 33 bits. Large angles take a separate
// branch, so that other angles do not pay for them.
V MathEmitter::reduce_angle(V x, V& quadrant) {
  V n = round_magic(b_.CreateFMul(x, f(x, 6.36619772367581382433e-01)), quadrant);
  V minus = b_.CreateFNeg(n);
  V r = mul_add(minus, f(x, 1.57079632673412561417e+00), x);
  r = mul_add(minus, f(x, 6.07710050630396597660e-11), r);
  r = mul_add(minus, f(x, 2.02226624879595063154e-21), r);

  V large = b_.CreateFCmpUGE(abs(x), f(x, fma_ ? kLargeAngleFused : kLargeAngle));
  V any = large->getType()->isVectorTy() ? b_.CreateOrReduce(large) : large;
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::Function* parent = before->getParent();
  auto* far = llvm::BasicBlock::Create(b_.getContext(), "angle.large", parent);
  auto* join = llvm::BasicBlock::Create(b_.getContext(), "angle.end", parent);
  b_.CreateCondBr(any, far, join);

  b_.SetInsertPoint(far);
  V bits = to_bits(call_by_lane(reduce_function(), x, nullptr));
  V far_r = b_.CreateSelect(large, from_bits(b_.CreateAnd(bits, i(x, ~uint64_t{3})), x), r);
  V far_quadrant = b_.CreateSelect(large, b_.CreateAnd(bits, i(x, 3)), quadrant);
  b_.CreateBr(join);

  b_.SetInsertPoint(join);
  const auto either = [&](V near_value, V far_value) {
    llvm::PHINode* phi = b_.CreatePHI(near_value->getType(), 2);
    phi->addIncoming(near_value, before);
    phi->addIncoming(far_value, far);
    return phi;
  };
  llvm::PHINode* reduced = either(r, far_r);
  quadrant = either(quadrant, far_quadrant);
  return reduced;
}

// Payne and Hanek's reduction. Let x = m * 2^k with an integer m. Of the product m * (2/pi * 2^k),
// only the bits of weight below 4 matter, so 192 bits of 2/pi are enough. Returns the rest, with
// the quadrant in the two lowest bits of its mantissa.
llvm::Function* MathEmitter::reduce_function() {
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  if (llvm::Function* known = module->getFunction("angle.f64")) return known;
  llvm::LLVMContext& context = module->getContext();
  llvm::Type* f64 = b_.getDoubleTy();
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::Type* i128 = b_.getInt128Ty();
  auto* words = llvm::ConstantDataArray::get(context, llvm::ArrayRef(kTwoOverPi));
  auto* table = new llvm::GlobalVariable(*module, words->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                         words, "two_over_pi");
  llvm::Function* function = make_function(llvm::FunctionType::get(f64, {f64}, false), "angle.f64");
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  const auto c = [&](uint64_t value) { return b_.getInt64(value); };

  V x = function->getArg(0);
  V bits = to_bits(abs(x));
  V mantissa = b_.CreateOr(b_.CreateAnd(bits, c(0xfffffffffffffULL)), c(0x10000000000000ULL));
  // The bit of weight 2 is at position k + 62 of the table; k is the exponent field less 1075.
  V place = b_.CreateSub(b_.CreateLShr(bits, 52), c(1075 - 62));
  place = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, place, c(0));
  V first = b_.CreateLShr(place, 6);
  V shift = b_.CreateAnd(place, c(63));
  const auto word = [&](uint64_t n) {
    const auto at = [&](uint64_t offset) {
      V address = b_.CreateInBoundsGEP(i64, table, b_.CreateAdd(first, c(n + offset)));
      return b_.CreateAlignedLoad(i64, address, llvm::Align(8));
    };
    return b_.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {at(0), at(1), shift});
  };
  const auto times = [&](V w, V carry) {
    V product = b_.CreateMul(b_.CreateZExt(w, i128), b_.CreateZExt(mantissa, i128));
    return carry == nullptr ? product : b_.CreateAdd(product, b_.CreateLShr(carry, 64));
  };
  V low = times(word(2), nullptr);
  V middle = times(word(1), low);
  V high = times(word(0), middle);
  const auto low_half = [&](V wide) { return b_.CreateTrunc(wide, i64); };
  V top = low_half(high);
  V quadrant = b_.CreateAdd(b_.CreateLShr(top, 62), b_.CreateAnd(b_.CreateLShr(top, 61), c(1)));
  // The fraction of a quarter turn, from -1/2 to 1/2, in units of 2^-128.
  const auto shifted = [&](V a, V b) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {a, b, c(2)});
  };
  V fraction = b_.CreateOr(b_.CreateShl(b_.CreateZExt(shifted(top, low_half(middle)), i128), 64),
                           b_.CreateZExt(shifted(low_half(middle), low_half(low)), i128));
  V below = b_.CreateICmpSLT(fraction, llvm::ConstantInt::get(i128, 0));
  V magnitude = b_.CreateSelect(below, b_.CreateNeg(fraction), fraction);
  V zeros = b_.CreateIntrinsic(llvm::Intrinsic::ctlz, {i128},
                               {b_.CreateOr(magnitude, llvm::ConstantInt::get(i128, 1)), b_.getFalse()});
  V leading = low_half(b_.CreateLShr(b_.CreateShl(magnitude, zeros), 64));
  V power = b_.CreateShl(b_.CreateSub(c(1023 - 64), low_half(zeros)), 52);
  V r = b_.CreateFMul(b_.CreateUIToFP(leading, f64), b_.CreateBitCast(power, f64));
  r = b_.CreateFMul(r, f(x, 1.57079632679489661923));
  V negative = b_.CreateFCmpOLT(x, f(x, 0));
  r = b_.CreateSelect(b_.CreateXor(below, negative), b_.CreateFNeg(r), r);
  quadrant = b_.CreateAnd(b_.CreateSelect(negative, b_.CreateNeg(quadrant), quadrant), c(3));
  V finite = b_.CreateFCmpOLT(abs(x), f(x, std::numeric_limits<double>::infinity()));
  r = b_.CreateSelect(finite, r, f(x, std::numeric_limits<double>::quiet_NaN()));
  b_.CreateRet(from_bits(b_.CreateOr(b_.CreateAnd(to_bits(r), c(~uint64_t{3})), quadrant), x));
  return function;
}

}  // namespace tensorsmith::codegen
