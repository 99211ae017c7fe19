// VNNI has one instruction each for dot4 and dot2i16. SSE2 to AVX-512 multiply pairs of 16-bit
// elements and add them (pmaddwd), which is exact; the byte instruction (pmaddubsw) saturates,
// except for the operands of dot4narrow. AVX-512 BF16 has one instruction for dot2; without it, the
// two halves are converted to float, by a shift and a mask, and are multiplied and added one after
// the other.
#include "codegen/llvm/dot.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

namespace tensorsmith::codegen {

using llvm::Value;

namespace {

// Returns lanes [begin, begin + count) of a vector; lanes beyond its end are undefined.
Value* slice(llvm::IRBuilder<>& b, Value* v, int begin, int count) {
  const int lanes = llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
  if (begin == 0 && count == lanes) return v;
  llvm::SmallVector<int, 64> mask;
  for (int i = begin; i < begin + count; ++i) mask.push_back(i < lanes ? i : -1);
  return b.CreateShuffleVector(v, mask);
}

}  // namespace

// Emits pmaddwd for vectors of 8, 16 or 32 16-bit elements.
Value* DotEmitter::multiply_add(Value* a, Value* b) {
  const unsigned halves = llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements();
  const auto id = halves == 32   ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                  : halves == 16 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                 : llvm::Intrinsic::x86_sse2_pmadd_wd;
  return b_.CreateIntrinsic(id, {}, {a, b});
}

// Returns sum + dot2i16(a, b) for vectors of 4, 8 or 16 lanes.
Value* DotEmitter::dot2_i16_chunk(Value* sum, Value* a, Value* b) {
  auto* type = llvm::cast<llvm::FixedVectorType>(sum->getType());
  const unsigned lanes = type->getNumElements();
  if (context_.traits.dot4) {
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpwssd_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpwssd_256
                                 : llvm::Intrinsic::x86_avx512_vpdpwssd_128;
    return b_.CreateIntrinsic(id, {}, {sum, a, b});
  }
  if (context_.traits.multiply_add_bytes > 0) {
    auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes * 2);
    return b_.CreateAdd(sum, multiply_add(b_.CreateBitCast(a, halves), b_.CreateBitCast(b, halves)));
  }
  for (const bool upper : {false, true}) {
    const auto half = [&](Value* words) {
      return b_.CreateAShr(upper ? words : b_.CreateShl(words, 16), 16);
    };
    sum = b_.CreateAdd(sum, b_.CreateMul(half(a), half(b)));
  }
  return sum;
}

// Returns sum + dot4(a, b) for vectors of 4, 8 or 16 lanes.
Value* DotEmitter::dot4_chunk(Value* sum, Value* a, Value* b) {
  auto* type = llvm::cast<llvm::FixedVectorType>(sum->getType());
  const unsigned lanes = type->getNumElements();
  if (context_.traits.dot4) {
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                 : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    return b_.CreateIntrinsic(id, {}, {sum, a, b});
  }
  if (context_.traits.multiply_add_bytes > 0) {
    auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes * 2);
    const auto count = [&](uint64_t n) { return llvm::ConstantInt::get(halves, n); };
    Value* a16 = b_.CreateBitCast(a, halves);
    Value* b16 = b_.CreateBitCast(b, halves);
    Value* even =
        multiply_add(b_.CreateAnd(a16, count(255)), b_.CreateAShr(b_.CreateShl(b16, count(8)), count(8)));
    Value* odd = multiply_add(b_.CreateLShr(a16, count(8)), b_.CreateAShr(b16, count(8)));
    return b_.CreateAdd(sum, b_.CreateAdd(even, odd));
  }
  for (uint64_t byte = 0; byte < 4; ++byte) {
    const auto count = [&](uint64_t n) { return llvm::ConstantInt::get(type, n); };
    Value* x = b_.CreateAnd(b_.CreateLShr(a, count(8 * byte)), count(255));
    Value* y = b_.CreateAShr(b_.CreateShl(b, count(24 - 8 * byte)), count(24));
    sum = b_.CreateAdd(sum, b_.CreateMul(x, y));
  }
  return sum;
}

// Returns sum + dot4narrow(a, b) for vectors of 4, 8 or 16 lanes.
Value* DotEmitter::dot4_narrow_chunk(Value* sum, Value* a, Value* b) {
  if (context_.traits.dot4 || context_.traits.multiply_add_bytes == 0 || !context_.traits.multiply_add_u8)
    return dot4_chunk(sum, a, b);
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  auto* bytes = llvm::FixedVectorType::get(b_.getInt8Ty(), lanes * 4);
  const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddubs_w_512
                  : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_ub_sw
                               : llvm::Intrinsic::x86_ssse3_pmadd_ub_sw_128;
  Value* pairs = b_.CreateIntrinsic(id, {}, {b_.CreateBitCast(a, bytes), b_.CreateBitCast(b, bytes)});
  return b_.CreateAdd(sum, multiply_add(pairs, llvm::ConstantInt::get(pairs->getType(), 1)));
}

// Returns sum + dot2(a, b) for vectors of 4, 8 or 16 lanes.
Value* DotEmitter::dot2_chunk(Value* sum, Value* a, Value* b) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  if (context_.traits.dot2) {
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                                 : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
    auto* elements = llvm::FixedVectorType::get(b_.getBFloatTy(), lanes * 2);
    return b_.CreateIntrinsic(id, {}, {sum, b_.CreateBitCast(a, elements), b_.CreateBitCast(b, elements)});
  }
  for (const bool upper : {false, true}) {
    const auto half = [&](Value* words) {
      Value* bits = upper ? b_.CreateAnd(words, llvm::ConstantInt::get(words->getType(), 0xffff0000U))
                          : b_.CreateShl(words, 16);
      return b_.CreateBitCast(bits, sum->getType());
    };
    Value* x = half(a);
    Value* y = half(b);
    sum = context_.traits.fma ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {x, y, sum})
                              : b_.CreateFAdd(sum, b_.CreateFMul(x, y));
  }
  return sum;
}

Value* DotEmitter::chunk(ir::Intrinsic kind, Value* sum, Value* a, Value* b) {
  if (kind == ir::Intrinsic::kDot2I16) return dot2_i16_chunk(sum, a, b);
  if (kind == ir::Intrinsic::kDot4Narrow) return dot4_narrow_chunk(sum, a, b);
  return kind == ir::Intrinsic::kDot4 ? dot4_chunk(sum, a, b) : dot2_chunk(sum, a, b);
}

Val DotEmitter::dot(ir::Intrinsic kind, const Val& a, const Val& b, const Val* sum) {
  const bool uniform = a.uniform && b.uniform && (sum == nullptr || sum->uniform);
  llvm::Type* result_type = kind == ir::Intrinsic::kDot2 ? b_.getFloatTy() : b_.getInt32Ty();
  if (uniform) {
    const auto vector = [&](Value* v) {
      auto* type = llvm::FixedVectorType::get(v->getType(), 4);
      return b_.CreateInsertElement(llvm::Constant::getNullValue(type), v, uint64_t{0});
    };
    Value* start = sum == nullptr ? llvm::Constant::getNullValue(result_type) : sum->value;
    Value* v = chunk(kind, vector(start), vector(a.value), vector(b.value));
    return {b_.CreateExtractElement(v, uint64_t{0}), true};
  }
  Value* x = values_.broadcast(a);
  Value* y = values_.broadcast(b);
  Value* start = sum == nullptr ? llvm::Constant::getNullValue(values_.with_lanes(result_type))
                                : values_.broadcast(*sum);
  const bool multiply_add =
      kind != ir::Intrinsic::kDot2 && !context_.traits.dot4 && context_.traits.multiply_add_bytes > 0;
  const int widest =
      std::max(4, (multiply_add ? context_.traits.multiply_add_bytes : context_.traits.vector_bytes) / 4);
  Value* result = nullptr;
  for (int begin = 0; begin < context_.lanes;) {
    int count = widest;
    while (count > 4 && count / 2 >= context_.lanes - begin) count /= 2;
    Value* piece =
        chunk(kind, slice(b_, start, begin, count), slice(b_, x, begin, count), slice(b_, y, begin, count));
    const int end = std::min(context_.lanes, begin + count);
    if (begin == 0 && end == context_.lanes) {
      result = slice(b_, piece, 0, context_.lanes);
    } else {
      // Inserts this piece's lanes into the result so far.
      llvm::SmallVector<int, 64> mask(context_.lanes);
      for (int i = 0; i < context_.lanes; ++i)
        mask[i] = i < begin ? i : i < end ? context_.lanes + i - begin : -1;
      Value* wide = slice(b_, piece, 0, context_.lanes);
      result = result == nullptr ? wide : b_.CreateShuffleVector(result, wide, mask);
    }
    begin = end;
  }
  return {result, false};
}

}  // namespace tensorsmith::codegen
