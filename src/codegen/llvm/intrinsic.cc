// Dispatch of intrinsics; rounding and fmod.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <limits>

#include "codegen/llvm/math.h"

namespace tensorsmith::codegen {

using V = llvm::Value*;
using ir::Intrinsic;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}

V MathEmitter::intrinsic(Intrinsic intrinsic, V x, V y) {
  const auto in_double = [&](const auto& function) {
    return is_f32(x) ? narrow(function(widen(x)), x) : function(x);
  };
  switch (intrinsic) {
    case Intrinsic::kAbs:
      return abs(x);
    case Intrinsic::kSign:
      return sign(x);
    case Intrinsic::kSqrt:
      return sqrt(x);
    case Intrinsic::kExp:
      return exp(x);
    case Intrinsic::kLog:
      return log(x);
    case Intrinsic::kSin:
      return sin_cos(x, false);
    case Intrinsic::kCos:
      return sin_cos(x, true);
    case Intrinsic::kTan:
      return in_double([&](V d) { return b_.CreateFDiv(sin_cos(d, false), sin_cos(d, true)); });
    case Intrinsic::kAsin:
      return in_double([&](V d) {
        V one = f(d, 1);
        V cosine = sqrt(b_.CreateFMul(b_.CreateFSub(one, d), b_.CreateFAdd(one, d)));
        return atan_f64(b_.CreateFDiv(d, cosine));
      });
    case Intrinsic::kAcos:
      return in_double([&](V d) {
        V one = f(d, 1);
        V half = atan_f64(sqrt(b_.CreateFDiv(b_.CreateFSub(one, d), b_.CreateFAdd(one, d))));
        return b_.CreateFAdd(half, half);
      });
    case Intrinsic::kAtan:
      return in_double([&](V d) { return atan_f64(d); });
    case Intrinsic::kSinh:
      return in_double([&](V d) { return sinh_f64(d, false); });
    case Intrinsic::kCosh:
      return in_double([&](V d) { return sinh_f64(d, true); });
    case Intrinsic::kTanh:
      return tanh(x);
    case Intrinsic::kAsinh:
      return in_double([&](V d) { return asinh_f64(d); });
    case Intrinsic::kAcosh:
      return in_double([&](V d) { return acosh_f64(d); });
    case Intrinsic::kAtanh:
      return in_double([&](V d) { return atanh_f64(d); });
    case Intrinsic::kErf:
      return erf(x);
    case Intrinsic::kFloor:
      return unary(llvm::Intrinsic::floor, x);
    case Intrinsic::kCeil:
      return unary(llvm::Intrinsic::ceil, x);
    case Intrinsic::kRound:
      return unary(llvm::Intrinsic::roundeven, x);
    case Intrinsic::kTrunc:
      return unary(llvm::Intrinsic::trunc, x);
    case Intrinsic::kIsNan:
      return b_.CreateFCmpUNO(x, x);
    case Intrinsic::kIsInf:
      return b_.CreateFCmpOEQ(abs(x), f(x, kInfinity));
    case Intrinsic::kPow:
      if (is_f32(x)) return narrow(pow_f64(widen(x), widen(y)), x);
      return pow_f64(x, y);
    case Intrinsic::kFmod:
      if (is_f32(x)) return narrow(fmod(widen(x), widen(y)), x);
      return fmod(x, y);
    case Intrinsic::kRoundTf32:
      return round_tf32(x);
    case Intrinsic::kDot4:
    case Intrinsic::kDot2:
    case Intrinsic::kPair:
    case Intrinsic::kDot2I16:
    case Intrinsic::kDot4Narrow:
      break;  // dot products of packed elements: see dot.cc
  }
  throw_internal_error(__FILE__, __LINE__, "unknown intrinsic");
}

// The sign of NaN is NaN, that of a zero is the zero itself.
V MathEmitter::sign(V x) {
  V unit = copysign(f(x, 1), x);
  return b_.CreateSelect(b_.CreateFCmpONE(x, f(x, 0)), unit, x);
}

// Drops 13 of the 23 fraction bits. NaN and infinities stay.
V MathEmitter::round_tf32(V x) {
  V bits = to_bits(x);
  V rounded = b_.CreateAnd(b_.CreateAdd(bits, i(x, 0x1000)), i(x, 0xffffe000));
  V finite = b_.CreateFCmpOLT(abs(x), f(x, kInfinity));
  return b_.CreateSelect(finite, from_bits(rounded, x), x);
}

V MathEmitter::call_by_lane(llvm::Function* function, V x, V y) {
  const auto call = [&](V a, V b) {
    return b == nullptr ? b_.CreateCall(function, {a}) : b_.CreateCall(function, {a, b});
  };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr) return call(x, y);
  V result =
      llvm::PoisonValue::get(llvm::FixedVectorType::get(function->getReturnType(), vector->getNumElements()));
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    V r = call(b_.CreateExtractElement(x, lane), y == nullptr ? nullptr : b_.CreateExtractElement(y, lane));
    result = b_.CreateInsertElement(result, r, lane);
  }
  return result;
}

llvm::Function* MathEmitter::make_function(llvm::FunctionType* type, const char* name) {
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name,
                                          b_.GetInsertBlock()->getModule());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  return function;
}

// An exact remainder takes as many steps as the quotient has bits.
V MathEmitter::fmod(V x, V y) { return call_by_lane(fmod_function(), x, y); }

// While rest >= b, subtracts the largest b * 2^k that fits. All steps are exact.
llvm::Function* MathEmitter::fmod_function() {
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  if (llvm::Function* known = module->getFunction("fmod.f64")) return known;
  llvm::LLVMContext& context = module->getContext();
  llvm::Type* f64 = b_.getDoubleTy();
  llvm::Function* function = make_function(llvm::FunctionType::get(f64, {f64, f64}, false), "fmod.f64");
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  auto* entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* check = llvm::BasicBlock::Create(context, "check", function);
  auto* step = llvm::BasicBlock::Create(context, "step", function);
  auto* done = llvm::BasicBlock::Create(context, "done", function);
  auto* special = llvm::BasicBlock::Create(context, "special", function);
  V x = function->getArg(0);
  V y = function->getArg(1);
  b_.SetInsertPoint(entry);
  V a = abs(x);
  V b = abs(y);
  V regular = b_.CreateAnd(b_.CreateFCmpOLT(a, f(x, kInfinity)), b_.CreateFCmpOGT(b, f(x, 0)));
  b_.CreateCondBr(regular, check, special);

  b_.SetInsertPoint(check);
  llvm::PHINode* rest = b_.CreatePHI(f64, 2);
  rest->addIncoming(a, entry);
  b_.CreateCondBr(b_.CreateFCmpOGE(rest, b), step, done);

  b_.SetInsertPoint(step);
  // The exponent fields give the k of rest = b * 2^k * (1 .. 4); subnormals are normalized first.
  const auto normalized = [&](V v, V& shift) {
    V subnormal = b_.CreateFCmpOLT(v, f(x, 0x1p-1022));
    shift = b_.CreateSelect(subnormal, i(x, 54), i(x, 0));
    return b_.CreateSelect(subnormal, b_.CreateFMul(v, f(x, 0x1p54)), v);
  };
  const auto exponent_field = [&](V v) { return b_.CreateLShr(to_bits(v), 52); };
  V rest_shift = nullptr;
  V b_shift = nullptr;
  V normal_rest = normalized(rest, rest_shift);
  V normal_b = normalized(b, b_shift);
  V k = b_.CreateSub(b_.CreateSub(exponent_field(normal_rest), rest_shift), exponent_field(normal_b));
  V t = scale(normal_b, k);
  V fits = b_.CreateSelect(b_.CreateFCmpOLE(t, rest), t, b_.CreateFMul(t, f(x, 0.5)));
  rest->addIncoming(b_.CreateFSub(rest, fits), step);
  b_.CreateBr(check);

  b_.SetInsertPoint(done);
  b_.CreateRet(copysign(rest, x));
  b_.SetInsertPoint(special);
  b_.CreateRet(f(x, std::numeric_limits<double>::quiet_NaN()));
  return function;
}

}  // namespace tensorsmith::codegen
