// dot4 and dot2: the products of a word's four bytes or two bf16 elements, added to each 32-bit lane.
//
// VNNI has one instruction for dot4; SSE2 to AVX-512 multiply pairs of 16-bit halves and add them (pmaddwd),
// which is exact where the byte instruction (pmaddubsw) saturates. AVX-512 BF16 has one for dot2; elsewhere
// the halves become floats, by a shift and a mask, and are multiplied and added one after the other.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "codegen/llvm/emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

namespace {

// Lanes [begin, begin + count) of a vector; those beyond its end are undefined.
Value* slice(llvm::IRBuilder<>& b, Value* v, int begin, int count) {
  const auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
  if (begin == 0 && count == lanes) return v;
  llvm::SmallVector<int, 64> mask;
  for (int i = begin; i < begin + count; ++i) mask.push_back(i < lanes ? i : -1);
  return b.CreateShuffleVector(v, mask);
}

// A byte of a word: i32(u8(load)) << shift.
struct WordPart {
  const ir::Load* load = nullptr;
  int64_t shift = 0;
};

// The terms of a | b | c | d, if all are bytes of a word.
bool collect_bytes(const ir::Expr& e, llvm::SmallVectorImpl<WordPart>& out) {
  if (e.dtype() != ir::DType::kI32) return false;
  WordPart part;
  const ir::Expr* byte = &e;
  if (const auto* op = ir::as<ir::Binary>(e)) {
    if (op->op == ir::BinaryOp::kBitOr) return collect_bytes(op->a, out) && collect_bytes(op->b, out);
    const auto shift = ir::as_int(op->b);
    if (op->op != ir::BinaryOp::kShl || !shift) return false;
    part.shift = *shift;
    byte = &op->a;
  }
  const auto* widened = ir::as<ir::Cast>(*byte);
  if (widened == nullptr || widened->a.dtype() != ir::DType::kU8) return false;
  const auto* renamed = ir::as<ir::Cast>(widened->a);
  const ir::Expr& value = renamed != nullptr ? renamed->a : widened->a;
  part.load = ir::as<ir::Load>(value);
  if (part.load == nullptr || ir::bytes_of(value.dtype()) != 1 || value.dtype() == ir::DType::kBool)
    return false;
  out.push_back(part);
  return out.size() <= 4;
}

}  // namespace

// Elements that stand one after the other and are made a word, lowest first, are a word in memory.
bool Emitter::load_word(llvm::ArrayRef<const ir::Load*> parts, Val& out) {
  const auto count = static_cast<int64_t>(parts.size());
  const ir::Buffer& buffer = parts[0]->buffer;
  const Address first = address_of(buffer, parts[0]->indices);
  if (first.info->lanes > 1 || first.info->in_registers || first.element.vector != nullptr) return false;
  if (first.element.lane != 0 && first.element.lane != count) return false;
  bool in_range = first.in_range;
  for (int64_t j = 1; j < count; ++j) {
    const ir::Load& part = *parts[static_cast<size_t>(j)];
    if (part.buffer != buffer) return false;
    const Address at = address_of(buffer, part.indices);
    if (at.element.constant != first.element.constant + j || at.element.lane != first.element.lane ||
        at.element.terms != first.element.terms || at.element.vector != nullptr)
      return false;
    in_range = in_range && at.in_range;
  }
  if (!in_range && (mask_ != nullptr || guard_ != nullptr)) return false;
  Affine start = first.element;
  start.lane = 0;
  llvm::Type* type = first.element.lane == 0 ? b_.getInt32Ty() : with_lanes(b_.getInt32Ty());
  auto* word = b_.CreateAlignedLoad(type, pointer_to(buffer, *first.info, start), alignment_of(first));
  out = {annotate(word, *first.info, true), first.element.lane == 0};
  return true;
}

bool Emitter::try_word(const ir::Binary& op, Val& out) {
  if (op.op != ir::BinaryOp::kBitOr) return false;
  llvm::SmallVector<WordPart, 4> parts;
  if (!collect_bytes(op.a, parts) || !collect_bytes(op.b, parts) || parts.size() != 4) return false;
  std::sort(parts.begin(), parts.end(),
            [](const WordPart& x, const WordPart& y) { return x.shift < y.shift; });
  const ir::Load* loads[4];
  for (size_t j = 0; j < 4; ++j) {
    if (parts[j].shift != static_cast<int64_t>(8 * j)) return false;
    loads[j] = parts[j].load;
  }
  return load_word(loads, out);
}

// Floats that are bf16 elements already: their upper halves.
Val Emitter::pair(const ir::Call& call) {
  const ir::Load* loads[] = {ir::as<ir::Load>(call.args[0]), ir::as<ir::Load>(call.args[1])};
  Val out;
  if (loads[0] != nullptr && loads[1] != nullptr && load_word(loads, out)) return out;
  Val low = eval(call.args[0]);
  Val high = eval(call.args[1]);
  const bool vectors = unify(low, high);
  llvm::Type* i32 = like(b_.getInt32Ty(), low.value->getType());
  const auto bits = [&](const Val& v) { return b_.CreateBitCast(v.value, i32); };
  Value* upper = b_.CreateAnd(bits(high), llvm::ConstantInt::get(i32, 0xffff0000U));
  return {b_.CreateOr(b_.CreateLShr(bits(low), 16), upper), !vectors};
}

// sum + dot4(a, b) for vectors of 4, 8 or 16 lanes.
Value* Emitter::dot4_chunk(Value* sum, Value* a, Value* b) {
  auto* type = llvm::cast<llvm::FixedVectorType>(sum->getType());
  const unsigned lanes = type->getNumElements();
  if (traits_.dot4) {
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                 : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
    return b_.CreateIntrinsic(id, {}, {sum, a, b});
  }
  if (traits_.multiply_add) {
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                 : llvm::Intrinsic::x86_sse2_pmadd_wd;
    auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes * 2);
    const auto count = [&](uint64_t n) { return llvm::ConstantInt::get(halves, n); };
    Value* a16 = b_.CreateBitCast(a, halves);
    Value* b16 = b_.CreateBitCast(b, halves);
    Value* even = b_.CreateIntrinsic(
        id, {}, {b_.CreateAnd(a16, count(255)), b_.CreateAShr(b_.CreateShl(b16, count(8)), count(8))});
    Value* odd = b_.CreateIntrinsic(id, {}, {b_.CreateLShr(a16, count(8)), b_.CreateAShr(b16, count(8))});
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

// sum + dot2(a, b) for vectors of 4, 8 or 16 lanes.
Value* Emitter::dot2_chunk(Value* sum, Value* a, Value* b) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(sum->getType())->getNumElements();
  if (traits_.dot2) {
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
    sum = traits_.fma ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {x, y, sum})
                      : b_.CreateFAdd(sum, b_.CreateFMul(x, y));
  }
  return sum;
}

// sum (null: 0) + the product of the call's arguments, in pieces that are registers.
Val Emitter::dot(const ir::Call& call, const Val* sum) {
  const bool bytes = call.intrinsic == ir::Intrinsic::kDot4;
  const auto chunk = [&](Value* s, Value* x, Value* y) {
    return bytes ? dot4_chunk(s, x, y) : dot2_chunk(s, x, y);
  };
  Val a = eval(call.args[0]);
  Val b = eval(call.args[1]);
  const bool uniform = a.uniform && b.uniform && (sum == nullptr || sum->uniform);
  llvm::Type* result_type = bytes ? b_.getInt32Ty() : b_.getFloatTy();
  if (uniform) {
    const auto vector = [&](Value* v) {
      auto* type = llvm::FixedVectorType::get(v->getType(), 4);
      return b_.CreateInsertElement(llvm::Constant::getNullValue(type), v, uint64_t{0});
    };
    Value* start = sum == nullptr ? llvm::Constant::getNullValue(result_type) : sum->value;
    Value* v = chunk(vector(start), vector(a.value), vector(b.value));
    return {b_.CreateExtractElement(v, uint64_t{0}), true};
  }
  Value* x = broadcast(a);
  Value* y = broadcast(b);
  Value* start = sum == nullptr ? llvm::Constant::getNullValue(with_lanes(result_type)) : broadcast(*sum);
  const int widest = std::max(4, traits_.vector_bytes / 4);
  Value* result = nullptr;
  for (int begin = 0; begin < lanes_;) {
    int count = widest;
    while (count > 4 && count / 2 >= lanes_ - begin) count /= 2;
    Value* piece =
        chunk(slice(b_, start, begin, count), slice(b_, x, begin, count), slice(b_, y, begin, count));
    const int end = std::min(lanes_, begin + count);
    if (begin == 0 && end == lanes_) {
      result = slice(b_, piece, 0, lanes_);
    } else {
      // The result so far with this piece's lanes in their place.
      llvm::SmallVector<int, 64> mask(static_cast<size_t>(lanes_));
      for (int i = 0; i < lanes_; ++i)
        mask[static_cast<size_t>(i)] = i < begin ? i : i < end ? lanes_ + i - begin : -1;
      Value* wide = slice(b_, piece, 0, lanes_);
      result = result == nullptr ? wide : b_.CreateShuffleVector(result, wide, mask);
    }
    begin = end;
  }
  return {result, false};
}

// a + dot(x, y) and dot(x, y) + a.
bool Emitter::try_dot(const ir::Binary& op, Val& out) {
  if (op.op != ir::BinaryOp::kAdd) return false;
  const auto call = [](const ir::Expr& e) -> const ir::Call* {
    const auto* c = ir::as<ir::Call>(e);
    return c != nullptr && (c->intrinsic == ir::Intrinsic::kDot4 || c->intrinsic == ir::Intrinsic::kDot2)
               ? c
               : nullptr;
  };
  const ir::Call* right = call(op.b);
  const ir::Call* product = right != nullptr ? right : call(op.a);
  if (product == nullptr) return false;
  const Val sum = eval(right != nullptr ? op.a : op.b);
  out = dot(*product, &sum);
  return true;
}

}  // namespace tensorsmith::codegen
