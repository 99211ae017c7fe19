// Types, storage formats and casts.
#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "codegen/llvm/value_emitter.h"

namespace tensorsmith::codegen {

using ir::DType;
using llvm::Type;
using llvm::Value;

Type* ValueEmitter::machine_type(DType dtype) const {
  const DTypeRow& row = row_of(dtype);
  if (row.kind != DTypeKind::kFloat) return b_.getIntNTy(row.bits);
  return row.bits == 64 ? b_.getDoubleTy() : b_.getFloatTy();
}

Type* ValueEmitter::compute_type(DType dtype) const { return machine_type(row_of(dtype).computed); }
Type* ValueEmitter::memory_type(DType dtype) const { return machine_type(row_of(dtype).stored); }

Type* ValueEmitter::with_lanes(Type* scalar) const {
  return llvm::FixedVectorType::get(scalar, context_.lanes);
}

Type* ValueEmitter::like(Type* scalar, Type* shape) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape))
    return llvm::FixedVectorType::get(scalar, vector->getNumElements());
  return scalar;
}

Value* ValueEmitter::to_memory(DType dtype, Value* v) {
  if (dtype == DType::kBool) return b_.CreateZExt(v, like(b_.getInt8Ty(), v->getType()));
  if (dtype == DType::kF16) return f32_to_f16_bits(v);
  if (dtype == DType::kBF16) {
    // The value was already rounded where it was computed.
    Value* bits = b_.CreateBitCast(v, like(b_.getInt32Ty(), v->getType()));
    return b_.CreateTrunc(b_.CreateLShr(bits, 16), like(b_.getInt16Ty(), v->getType()));
  }
  return v;
}

Value* ValueEmitter::from_memory(DType dtype, Value* v) {
  if (dtype == DType::kBool) return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (dtype == DType::kF16) return f16_bits_to_f32(v);
  if (dtype == DType::kBF16) {
    Type* i32 = like(b_.getInt32Ty(), v->getType());
    return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(v, i32), 16), like(b_.getFloatTy(), v->getType()));
  }
  return v;
}

Value* ValueEmitter::round_to(DType dtype, Value* v) {
  if (!ir::is_short_float(dtype)) return v;
  return from_memory(dtype, dtype == DType::kF16 ? f32_to_f16_bits(v) : f32_to_bf16_bits(v));
}

Value* ValueEmitter::f16_bits_to_f32(Value* v) {
  Type* f32 = like(b_.getFloatTy(), v->getType());
  if (context_.traits.half_convert)
    return b_.CreateFPExt(b_.CreateBitCast(v, like(b_.getHalfTy(), v->getType())), f32);
  Type* i32 = like(b_.getInt32Ty(), v->getType());
  const auto c = [&](uint32_t x) { return llvm::ConstantInt::get(i32, x); };
  Value* bits = b_.CreateZExt(v, i32);
  Value* sign = b_.CreateShl(b_.CreateAnd(bits, c(0x8000)), 16);
  Value* magnitude = b_.CreateShl(b_.CreateAnd(bits, c(0x7fff)), 13);
  Value* exponent = b_.CreateAnd(magnitude, c(0x0f800000));
  Value* normal = b_.CreateAdd(magnitude, c(112u << 23));
  // Infinities and NaN get exponent 255; subnormals are mantissa * 2^-24.
  Value* special = b_.CreateAdd(normal, c(112u << 23));
  Value* mantissa = b_.CreateUIToFP(b_.CreateAnd(bits, c(0x3ff)), f32);
  Value* subnormal = b_.CreateBitCast(b_.CreateFMul(mantissa, llvm::ConstantFP::get(f32, 0x1p-24)), i32);
  Value* result = b_.CreateSelect(b_.CreateICmpEQ(exponent, c(0x0f800000)), special, normal);
  result = b_.CreateSelect(b_.CreateICmpEQ(exponent, c(0)), subnormal, result);
  return b_.CreateBitCast(b_.CreateOr(result, sign), f32);
}

// Both rounding routines follow ir::f32_to_f16 and ir::f32_to_bf16 step by step. vcvtneps2bf16
// flushes subnormals to zero, which ir allows.
Value* ValueEmitter::f32_to_f16_bits(Value* v) {
  Type* i16 = like(b_.getInt16Ty(), v->getType());
  if (context_.traits.half_convert)
    return b_.CreateBitCast(b_.CreateFPTrunc(v, like(b_.getHalfTy(), v->getType())), i16);
  Type* i32 = like(b_.getInt32Ty(), v->getType());
  Type* f32 = v->getType();
  const auto c = [&](uint32_t x) { return llvm::ConstantInt::get(i32, x); };
  Value* bits = b_.CreateBitCast(v, i32);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, 16), c(0x8000));
  Value* magnitude = b_.CreateAnd(bits, c(0x7fffffff));
  Value* nan = b_.CreateOr(b_.CreateAnd(b_.CreateLShr(magnitude, 13), c(0x1ff)), c(0x7e00));
  Value* shifted = b_.CreateFAdd(b_.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, 0.5));
  Value* subnormal = b_.CreateSub(b_.CreateBitCast(shifted, i32), c(0x3f000000));
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, 13), c(1));
  Value* normal = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(magnitude, c(0xfffu - 0x38000000u)), odd), 13);
  Value* result = b_.CreateSelect(b_.CreateICmpULT(magnitude, c(0x38800000)), subnormal, normal);
  result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, c(0x477ff000)), c(0x7c00), result);
  result = b_.CreateSelect(b_.CreateICmpUGT(magnitude, c(0x7f800000)), nan, result);
  return b_.CreateTrunc(b_.CreateOr(result, sign), i16);
}

Value* ValueEmitter::f32_to_bf16_bits(Value* v) {
  if (context_.traits.dot2) {
    Value* rounded = b_.CreateFPTrunc(v, like(b_.getBFloatTy(), v->getType()));
    return b_.CreateBitCast(rounded, like(b_.getInt16Ty(), v->getType()));
  }
  Type* i32 = like(b_.getInt32Ty(), v->getType());
  const auto c = [&](uint32_t x) { return llvm::ConstantInt::get(i32, x); };
  Value* bits = b_.CreateBitCast(v, i32);
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, 16), c(1));
  Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, c(0x7fff)), odd);
  Value* quiet = b_.CreateOr(bits, c(0x400000));
  Value* result = b_.CreateSelect(b_.CreateFCmpUNO(v, v), quiet, rounded);
  return b_.CreateTrunc(b_.CreateLShr(result, 16), like(b_.getInt16Ty(), v->getType()));
}

Value* ValueEmitter::convert(DType from, DType to, Value* v) {
  if (from == to) return v;
  Type* type = like(compute_type(to), v->getType());
  if (to == DType::kBool) {
    if (ir::is_float(from)) return b_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
    return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  }
  if (ir::is_float(from)) {
    if (!ir::is_float(to)) {
      const int bits = ir::bits_of(to);
      if (bits < 32) {
        // LLVM's saturating conversion of vectors works element by element on x86. The limits of
        // small integers are representable as floats, so the value can be clamped before the
        // conversion; NaN becomes 0.
        const double low = ir::is_signed_int(to) ? -std::ldexp(1.0, bits - 1) : 0;
        const double high = low + std::ldexp(1.0, bits) - 1;
        const auto c = [&](double x) { return llvm::ConstantFP::get(v->getType(), x); };
        Value* x = b_.CreateSelect(b_.CreateFCmpUNO(v, v), c(0), v);
        x = b_.CreateSelect(b_.CreateFCmpOGT(x, c(low)), x, c(low));
        x = b_.CreateSelect(b_.CreateFCmpOLT(x, c(high)), x, c(high));
        return b_.CreateTrunc(b_.CreateFPToSI(x, like(b_.getInt32Ty(), v->getType())), type);
      }
      const auto id = ir::is_signed_int(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
      return b_.CreateIntrinsic(id, {type, v->getType()}, {v});
    }
    if (from == DType::kF64) return round_to(to, b_.CreateFPTrunc(v, type));
    if (to == DType::kF64) return b_.CreateFPExt(v, type);
    return round_to(to, v);
  }
  if (ir::is_float(to)) {
    const bool is_signed = ir::is_signed_int(from);
    return round_to(to, is_signed ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type));
  }
  return ir::is_signed_int(from) ? b_.CreateSExtOrTrunc(v, type) : b_.CreateZExtOrTrunc(v, type);
}

}  // namespace tensorsmith::codegen
