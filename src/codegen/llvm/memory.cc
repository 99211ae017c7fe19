// Loads and stores: contiguous vectors, strides, gathers; masks and guards.
#include <llvm/IR/Intrinsics.h>

#include <numeric>

#include "codegen/llvm/emitter.h"

namespace tensorsmith::codegen {

using ir::Buffer;
using ir::Expr;
using llvm::Value;

// Attaches what is known about aliases: distinct buffers never overlap, and inputs are not written.
template <typename Instruction>
Instruction* Emitter::annotate(Instruction* access, const BufferInfo& info, bool invariant) {
  const auto& [scope, others] = alias_metadata_[static_cast<size_t>(info.id)];
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, scope);
  if (others != nullptr) access->setMetadata(llvm::LLVMContext::MD_noalias, others);
  if (invariant && info.read_only)
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return access;
}

Emitter::Address Emitter::address_of(const Buffer& buffer, const std::vector<Expr>& indices) {
  Address at;
  at.info = &info_of(buffer);
  at.dtype = buffer->dtype;
  for (size_t d = 0; d < indices.size(); ++d)
    at.element = sum(at.element, index(indices[d]), at.info->strides[d]);
  const ir::Interval range = range_of(at.element);
  at.in_range = range.bounded() && range.min >= 0 && range.max < at.info->elements;
  if (at.info->lanes > 1) {
    Affine lane;
    lane.lane = 1;
    at.element = sum(lane, at.element, at.info->lanes);
  }
  return at;
}

// Buffers are 64-byte aligned; coefficients tell what survives of it.
llvm::Align Emitter::alignment_of(const Address& at) const {
  const int64_t bytes = ir::bytes_of(at.dtype);
  int64_t known = std::gcd(int64_t{64}, at.element.constant * bytes);
  for (const auto& [atom, coefficient] : at.element.terms)
    known = std::gcd(known, (coefficient & 63) * bytes);
  return llvm::Align(static_cast<uint64_t>(std::max(known, bytes)));
}

// Zeros that a load may read instead of an address that is not valid.
Value* Emitter::zero_block(int64_t bytes) {
  if (bytes > zero_block_bytes_) {
    auto* type = llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes));
    auto* larger = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                            llvm::ConstantAggregateZero::get(type), "zeros");
    larger->setAlignment(llvm::Align(64));
    if (zero_block_ != nullptr) {
      zero_block_->replaceAllUsesWith(larger);
      zero_block_->eraseFromParent();
    }
    zero_block_ = larger;
    zero_block_bytes_ = bytes;
  }
  return zero_block_;
}

Value* Emitter::any_lane(Value* mask) { return b_.CreateOrReduce(mask); }

// The address of the first lane where the condition holds, else that of zeros. Loads whose offsets differ by
// little, as in unrolled code, share the choice: it is made for the start of a window.
Value* Emitter::guarded_pointer(const Buffer& buffer, const Address& at, Value* condition, int64_t size) {
  constexpr int64_t kWindow = 1024;  // bytes
  Affine first = at.element;
  first.lane = 0;
  if (condition == nullptr) return pointer_to(buffer, *at.info, first);
  const int64_t elements = kWindow / ir::bytes_of(buffer->dtype);
  const int64_t offset = ((first.constant % elements) + elements) % elements;
  first.constant -= offset;
  Value* start = b_.CreateSelect(condition, pointer_to(buffer, *at.info, first), zero_block(kWindow + size));
  if (offset == 0) return start;
  return b_.CreateGEP(memory_type(buffer->dtype), start, b_.getInt64(static_cast<uint64_t>(offset)));
}

Val Emitter::load(const Buffer& buffer, const std::vector<Expr>& indices, bool* zero_if_off) {
  const Address at = address_of(buffer, indices);
  llvm::Type* type = memory_type(buffer->dtype);
  const int64_t bytes = ir::bytes_of(buffer->dtype);
  // In range for all lanes: neither mask nor guard is needed for safety.
  Value* mask = at.in_range ? nullptr : mask_;
  Value* guard = at.in_range ? nullptr : guard_;
  if (at.element.uniform()) {
    // Lanes that are all inactive may leave a wild address.
    Value* condition = guard;
    if (mask != nullptr) {
      Value* any = any_lane(mask);
      condition = condition == nullptr ? any : b_.CreateAnd(condition, any);
    }
    Value* pointer = guarded_pointer(buffer, at, condition, bytes);
    // With a mask the condition is narrower than the guard, but then a zero for it is still right.
    if (zero_if_off != nullptr) *zero_if_off = guard != nullptr;
    auto* v = annotate(b_.CreateAlignedLoad(type, pointer, alignment_of(at)), *at.info, true);
    return {from_memory(buffer->dtype, v), true};
  }
  llvm::Type* vector = with_lanes(type);
  Value* v = nullptr;
  if (at.element.vector == nullptr && at.element.lane == 1) {
    Value* pointer = guarded_pointer(buffer, at, guard, bytes * lanes_);
    if (zero_if_off != nullptr) *zero_if_off = guard != nullptr;
    if (mask == nullptr) {
      v = annotate(b_.CreateAlignedLoad(vector, pointer, alignment_of(at)), *at.info, true);
    } else {
      v = annotate(
          b_.CreateMaskedLoad(vector, pointer, alignment_of(at), mask, llvm::Constant::getNullValue(vector)),
          *at.info, false);
    }
  } else {
    if (guard != nullptr) {
      Value* all = broadcast({guard, true});
      mask = mask == nullptr ? all : b_.CreateAnd(mask, all);
      if (zero_if_off != nullptr) *zero_if_off = true;
    }
    v = mask == nullptr && at.element.vector == nullptr ? load_strided(buffer, at)
                                                        : load_gather(buffer, at, mask);
  }
  return {from_memory(buffer->dtype, v), false};
}

// Lanes at a constant stride, all of them readable.
Value* Emitter::load_strided(const Buffer& buffer, const Address& at) {
  llvm::Type* type = memory_type(buffer->dtype);
  const int64_t stride = at.element.lane;
  Affine first = at.element;
  first.lane = 0;
  const llvm::Align element_align(static_cast<uint64_t>(ir::bytes_of(buffer->dtype)));
  const auto load_block = [&](int64_t offset) -> Value* {
    Affine start = first;
    start.constant += offset;
    return annotate(
        b_.CreateAlignedLoad(with_lanes(type), pointer_to(buffer, *at.info, start), element_align), *at.info,
        true);
  };
  if (stride == -1) {
    return b_.CreateVectorReverse(load_block(1 - lanes_));
  }
  if (stride >= 2 && stride <= 4 && lanes_ >= 4) {
    // Contiguous blocks that cover all lanes, the last one ending at the last lane so that nothing behind it
    // is read; then one two-input shuffle a block.
    const int64_t last = (lanes_ - 1) * stride;
    Value* result = nullptr;
    int64_t done = 0;  // lanes in result
    for (int64_t block = 0; block < stride; ++block) {
      const int64_t offset = block + 1 < stride ? block * lanes_ : last + 1 - lanes_;
      Value* v = load_block(offset);
      llvm::SmallVector<int, 64> pick(static_cast<size_t>(lanes_), -1);
      int64_t lane = 0;
      for (; lane < done; ++lane) pick[static_cast<size_t>(lane)] = static_cast<int>(lane);
      for (; lane < lanes_ && lane * stride < offset + lanes_; ++lane)
        pick[static_cast<size_t>(lane)] =
            static_cast<int>(lane * stride - offset + (result == nullptr ? 0 : lanes_));
      done = lane;
      result = result == nullptr ? b_.CreateShuffleVector(v, pick) : b_.CreateShuffleVector(result, v, pick);
    }
    return result;
  }
  Value* result = llvm::PoisonValue::get(with_lanes(type));
  for (int lane = 0; lane < lanes_; ++lane) {
    Affine element = first;
    element.constant += lane * stride;
    auto* v = annotate(b_.CreateAlignedLoad(type, pointer_to(buffer, *at.info, element), element_align),
                       *at.info, true);
    result = b_.CreateInsertElement(result, v, static_cast<uint64_t>(lane));
  }
  return result;
}

Value* Emitter::vector_of_pointers(const Buffer& buffer, const Address& at) {
  Affine uniform = at.element;
  uniform.lane = 0;
  uniform.vector = nullptr;
  Affine lanes;
  lanes.lane = at.element.lane;
  lanes.vector = at.element.vector;
  return b_.CreateGEP(memory_type(buffer->dtype), pointer_to(buffer, *at.info, uniform),
                      lanes.uniform()
                          ? static_cast<Value*>(llvm::Constant::getNullValue(with_lanes(b_.getInt64Ty())))
                          : materialize(lanes).value);
}

Value* Emitter::load_gather(const Buffer& buffer, const Address& at, Value* mask) {
  llvm::Type* vector = with_lanes(memory_type(buffer->dtype));
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(with_lanes(b_.getInt1Ty()));
  const llvm::Align align(static_cast<uint64_t>(ir::bytes_of(buffer->dtype)));
  return annotate(b_.CreateMaskedGather(vector, vector_of_pointers(buffer, at), align, mask,
                                        llvm::Constant::getNullValue(vector)),
                  *at.info, false);
}

void Emitter::store(const Buffer& buffer, const std::vector<Expr>& indices, Val value) {
  const Address at = address_of(buffer, indices);
  const bool contiguous = at.element.uniform() || (at.element.lane == 1 && at.element.vector == nullptr);
  emitted_steps_ += contiguous ? 1 : lanes_;
  if (at.element.uniform() && value.uniform && mask_ == nullptr) {
    annotate(b_.CreateAlignedStore(to_memory(buffer->dtype, value.value),
                                   pointer_to(buffer, *at.info, at.element), alignment_of(at)),
             *at.info, false);
    return;
  }
  Value* v = to_memory(buffer->dtype, broadcast(value));
  if (at.element.vector == nullptr && at.element.lane == 1) {
    Affine first = at.element;
    first.lane = 0;
    Value* pointer = pointer_to(buffer, *at.info, first);
    // Each lane of an expanded buffer is private: writing it in an inactive lane harms nobody, unless the
    // lane is switched on later.
    if (mask_ == nullptr) {
      annotate(b_.CreateAlignedStore(v, pointer, alignment_of(at)), *at.info, false);
    } else {
      annotate(b_.CreateMaskedStore(v, pointer, alignment_of(at), mask_), *at.info, false);
    }
    return;
  }
  store_scatter(buffer, at, v);
}

void Emitter::store_scatter(const Buffer& buffer, const Address& at, Value* value) {
  const llvm::Align align(static_cast<uint64_t>(ir::bytes_of(buffer->dtype)));
  if (mask_ == nullptr && at.element.vector == nullptr) {
    // Ascending lanes: where two meet, the last wins as in serial execution.
    for (int lane = 0; lane < lanes_; ++lane) {
      Affine element = at.element;
      element.lane = 0;
      element.constant += lane * at.element.lane;
      annotate(b_.CreateAlignedStore(b_.CreateExtractElement(value, static_cast<uint64_t>(lane)),
                                     pointer_to(buffer, *at.info, element), align),
               *at.info, false);
    }
    return;
  }
  Value* mask = mask_ != nullptr ? mask_ : llvm::Constant::getAllOnesValue(with_lanes(b_.getInt1Ty()));
  annotate(b_.CreateMaskedScatter(value, vector_of_pointers(buffer, at), align, mask), *at.info, false);
}

}  // namespace tensorsmith::codegen
