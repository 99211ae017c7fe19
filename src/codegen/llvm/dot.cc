// dot4: four products of bytes, added to each 32-bit lane. VNNI has one instruction for it; SSE2 to AVX-512
// multiply pairs of 16-bit halves and add them (pmaddwd), which is exact where the byte instruction
// (pmaddubsw) saturates.
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

// Four bytes that stand one after the other and are made a word, lowest first, are a word in memory.
bool Emitter::try_word(const ir::Binary& op, Val& out) {
  if (op.op != ir::BinaryOp::kBitOr) return false;
  llvm::SmallVector<WordPart, 4> parts;
  if (!collect_bytes(op.a, parts) || !collect_bytes(op.b, parts) || parts.size() != 4) return false;
  std::sort(parts.begin(), parts.end(),
            [](const WordPart& x, const WordPart& y) { return x.shift < y.shift; });
  const ir::Buffer& buffer = parts[0].load->buffer;
  const Address first = address_of(buffer, parts[0].load->indices);
  if (first.info->lanes > 1 || first.info->in_registers || first.element.vector != nullptr) return false;
  if (first.element.lane != 0 && first.element.lane != 4) return false;
  bool in_range = first.in_range;
  for (int64_t j = 1; j < 4; ++j) {
    const WordPart& part = parts[static_cast<size_t>(j)];
    if (part.shift != 8 * j || part.load->buffer != buffer) return false;
    const Address at = address_of(buffer, part.load->indices);
    if (at.element.constant != first.element.constant + j || at.element.lane != first.element.lane ||
        at.element.terms != first.element.terms || at.element.vector != nullptr)
      return false;
    in_range = in_range && at.in_range;
  }
  if (parts[0].shift != 0 || (!in_range && (mask_ != nullptr || guard_ != nullptr))) return false;
  Affine start = first.element;
  start.lane = 0;
  llvm::Type* type = first.element.lane == 0 ? b_.getInt32Ty() : with_lanes(b_.getInt32Ty());
  auto* word = b_.CreateAlignedLoad(type, pointer_to(buffer, *first.info, start), alignment_of(first));
  out = {annotate(word, *first.info, true), first.element.lane == 0};
  return true;
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

// sum (null: 0) + dot4 of the call's arguments, in pieces that are registers.
Val Emitter::dot4(const ir::Call& call, const Val* sum) {
  Val a = eval(call.args[0]);
  Val b = eval(call.args[1]);
  const bool uniform = a.uniform && b.uniform && (sum == nullptr || sum->uniform);
  llvm::Type* i32 = b_.getInt32Ty();
  if (uniform) {
    auto* type = llvm::FixedVectorType::get(i32, 4);
    const auto vector = [&](Value* v) {
      return b_.CreateInsertElement(llvm::Constant::getNullValue(type), v, uint64_t{0});
    };
    Value* start = sum == nullptr ? llvm::Constant::getNullValue(type) : vector(sum->value);
    return {b_.CreateExtractElement(dot4_chunk(start, vector(a.value), vector(b.value)), uint64_t{0}), true};
  }
  Value* x = broadcast(a);
  Value* y = broadcast(b);
  Value* start = sum == nullptr ? llvm::Constant::getNullValue(x->getType()) : broadcast(*sum);
  const int widest = std::max(4, traits_.vector_bytes / 4);
  Value* result = nullptr;
  for (int begin = 0; begin < lanes_;) {
    int count = widest;
    while (count > 4 && count / 2 >= lanes_ - begin) count /= 2;
    Value* piece =
        dot4_chunk(slice(b_, start, begin, count), slice(b_, x, begin, count), slice(b_, y, begin, count));
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

// a + dot4(x, y) and dot4(x, y) + a.
bool Emitter::try_dot4(const ir::Binary& op, Val& out) {
  if (op.op != ir::BinaryOp::kAdd) return false;
  const auto call = [](const ir::Expr& e) -> const ir::Call* {
    const auto* c = ir::as<ir::Call>(e);
    return c != nullptr && c->intrinsic == ir::Intrinsic::kDot4 ? c : nullptr;
  };
  const ir::Call* right = call(op.b);
  const ir::Call* product = right != nullptr ? right : call(op.a);
  if (product == nullptr) return false;
  const Val sum = eval(right != nullptr ? op.a : op.b);
  out = dot4(*product, &sum);
  return true;
}

}  // namespace tensorsmith::codegen
