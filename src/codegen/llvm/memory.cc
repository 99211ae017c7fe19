// Loads and stores: contiguous vectors, strides, gathers; masks and guards.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/llvm/emitter.h"

namespace tensorsmith::codegen {

using ir::Buffer;
using ir::Expr;
using llvm::Value;

namespace {

// LLVM 19's x86 back end miscompiles masked accesses of vectors with an odd number of lanes (seen: stores of
// <5 x float> for AVX-512). They are made with the next power of two, the lanes beyond masked off.
int64_t masked_lanes(int64_t lanes) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(lanes, 1))));
}

// Lanes 0 .. lanes - 1, then `rest` up to `wide`.
llvm::SmallVector<int, 64> first_lanes(int64_t lanes, int64_t wide, int rest) {
  llvm::SmallVector<int, 64> order(static_cast<size_t>(wide), rest);
  std::iota(order.begin(), order.begin() + lanes, 0);
  return order;
}

// The vector with `wide` lanes, those beyond its own as in rest (null: anything).
Value* fill_up(llvm::IRBuilder<>& builder, Value* vector, int64_t wide, llvm::Constant* rest = nullptr) {
  const auto lanes =
      static_cast<int64_t>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  if (lanes == wide) return vector;
  if (rest == nullptr) return builder.CreateShuffleVector(vector, first_lanes(lanes, wide, -1));
  return builder.CreateShuffleVector(vector, rest, first_lanes(lanes, wide, static_cast<int>(lanes)));
}

// A mask of `wide` lanes, those beyond its own off.
Value* fill_up_mask(llvm::IRBuilder<>& builder, Value* mask, int64_t wide) {
  return fill_up(builder, mask, wide, llvm::Constant::getNullValue(mask->getType()));
}

}  // namespace

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

template llvm::LoadInst* Emitter::annotate(llvm::LoadInst*, const BufferInfo&, bool);

Emitter::Address Emitter::address_of(const Buffer& buffer, const std::vector<Expr>& indices) {
  Address at;
  at.info = &info_of(buffer);
  at.dtype = buffer->dtype;
  ir::Interval column = ir::Interval::everything();
  for (size_t d = 0; d < indices.size(); ++d) {
    const Affine i = index(indices[d]);
    if (d + 1 == indices.size() && at.info->strides[d] == 1) column = range_of(i);
    at.element = sum(at.element, i, at.info->strides[d]);
  }
  const ir::Interval range = range_of(at.element);
  at.in_range = range.bounded() && range.min >= 0 && range.max < at.info->elements;
  if (at.info->lanes > 1) {
    Affine lane;
    lane.lane = 1;
    at.element = sum(lane, at.element, at.info->lanes);
    return at;
  }
  if (at.in_range) {
    at.room_before = range.min;
    at.room_behind = at.info->elements - 1 - range.max;
  }
  if (column.bounded()) {
    // The rest of the row.
    at.room_before = std::max({at.room_before, column.min, int64_t{0}});
    at.room_behind = std::max({at.room_behind, buffer->shape.back() - 1 - column.max, int64_t{0}});
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

// Unrolled code reads the same elements again and again, as the register tile of a product does.
Val Emitter::load(const Buffer& buffer, const std::vector<Expr>& indices, ZeroRequest* zero) {
  const Address at = address_of(buffer, indices);
  if (at.info->in_registers && loaded_.block == b_.GetInsertBlock()) {
    const auto [first, count] = constant_place(at);
    const auto known = loaded_.constants.find({at.info->instance, first});
    if (known != loaded_.constants.end() && known->second.first == count) return known->second.second;
  }
  if (at.info->in_registers || at.element.vector != nullptr) return load_from(buffer, at, zero);
  if (loaded_.block != b_.GetInsertBlock()) loaded_ = {b_.GetInsertBlock(), {}, {}};
  std::vector<int64_t> key{reinterpret_cast<intptr_t>(buffer.get()),
                           at.info->instance,
                           lanes_,
                           reinterpret_cast<intptr_t>(mask_),
                           reinterpret_cast<intptr_t>(guard_),
                           zero == nullptr ? 0
                           : zero->lanes   ? 1
                                           : 2,
                           at.element.constant,
                           at.element.lane};
  for (const auto& [atom, coefficient] : at.element.terms) {
    key.push_back(atom->id);
    key.push_back(coefficient);
  }
  const auto [it, is_new] = loaded_.values.try_emplace(std::move(key));
  Loaded& known = it->second;
  if (is_new) {
    known.value = load_from(buffer, at, zero);
    known.zeros = zero != nullptr && zero->granted;
  }
  if (zero != nullptr) zero->granted = known.zeros;
  return known.value;
}

// What was loaded of the buffer may be another value from here on.
void Emitter::forget_loads(const Buffer& buffer) {
  const auto begin = loaded_.values.lower_bound({reinterpret_cast<intptr_t>(buffer.get())});
  const auto end = loaded_.values.lower_bound({reinterpret_cast<intptr_t>(buffer.get()) + 1});
  loaded_.values.erase(begin, end);
}

std::pair<int64_t, int64_t> Emitter::constant_place(const Address& at) const {
  const bool plain = at.element.terms.empty() && at.element.vector == nullptr && at.element.lane <= 1;
  return {at.element.constant, !plain || at.element.lane < 0 ? 0 : at.element.lane == 0 ? 1 : lanes_};
}

// Initial values of accumulators: with what they are known to be, the first update is none.
void Emitter::remember_constant(const Address& at, const Val& value) {
  if (loaded_.block != b_.GetInsertBlock()) loaded_ = {b_.GetInsertBlock(), {}, {}};
  const auto [first, count] = constant_place(at);
  std::erase_if(loaded_.constants, [&](const auto& known) {
    const int64_t other = known.first.second;
    return known.first.first == at.info->instance &&
           (count == 0 || (other < first + count && first < other + known.second.first));
  });
  const bool kept = at.dtype == ir::DType::kF32 || at.dtype == ir::DType::kF64;
  if (count > 0 && mask_ == nullptr && kept && value.uniform && llvm::isa<llvm::ConstantFP>(value.value))
    loaded_.constants[{at.info->instance, first}] = {count, value};
}

Val Emitter::load_from(const Buffer& buffer, const Address& at, ZeroRequest* zero) {
  // In range for all lanes: neither mask nor guard is needed for safety. A mask may still be the cheapest way
  // to zeros.
  const bool contiguous = at.element.vector == nullptr && at.element.lane == 1;
  const bool zeros =
      zero != nullptr && zero->lanes && traits_.masked_memory && (guard_ == nullptr || contiguous);
  Value* mask = at.in_range && !(zeros && !at.element.uniform()) ? nullptr : mask_;
  Value* guard = at.in_range ? nullptr : guard_;
  if (at.element.uniform()) {
    // Lanes that are all inactive may leave a wild address.
    Value* condition = guard;
    if (mask != nullptr) {
      Value* any = any_lane(mask);
      condition = condition == nullptr ? any : b_.CreateAnd(condition, any);
    }
    Value* pointer = guarded_pointer(buffer, at, condition, ir::bytes_of(buffer->dtype));
    if (zero != nullptr) zero->granted = guard != nullptr && !zero->lanes;
    auto* v =
        annotate(b_.CreateAlignedLoad(memory_type(buffer->dtype), pointer, alignment_of(at)), *at.info, true);
    return {from_memory(buffer->dtype, v), true};
  }
  const bool both = zeros && mask != nullptr && guard_ != nullptr;
  if (both) mask = b_.CreateAnd(mask, broadcast({guard_, true}));
  if (zero != nullptr)
    zero->granted = (both || guard != nullptr || guard_ == nullptr) && (mask != nullptr || !zero->lanes);
  Value* v = nullptr;
  const int64_t stride = at.element.lane;
  if (contiguous) {
    v = load_vector(buffer, at, lanes_, guard, mask, alignment_of(at));
  } else if (at.element.vector == nullptr && (mask == nullptr || loads_in_blocks(stride))) {
    v = load_strided(buffer, at, guard, mask);
  } else {
    if (guard != nullptr) {
      Value* all = broadcast({guard, true});
      mask = mask == nullptr ? all : b_.CreateAnd(mask, all);
    }
    v = load_gather(buffer, at, mask);
  }
  return {from_memory(buffer->dtype, v), false};
}

// Consecutive elements from the first lane's on. Vectors that are no power of two long would be loaded in
// pieces: where masks are cheap they are loaded as the next one.
Value* Emitter::load_vector(const Buffer& buffer, const Address& at, int64_t lanes, Value* guard, Value* mask,
                            llvm::Align align) {
  llvm::Type* element = memory_type(buffer->dtype);
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  const int64_t wide = masked_lanes(lanes);
  const bool fill = wide != lanes && traits_.masked_memory && !at.info->in_registers;
  const int64_t length = mask != nullptr || fill ? wide : lanes;
  Value* pointer = guarded_pointer(buffer, at, guard, ir::bytes_of(buffer->dtype) * length);
  if (mask == nullptr && !fill) return annotate(b_.CreateAlignedLoad(vector, pointer, align), *at.info, true);
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(vector->getWithNewType(b_.getInt1Ty()));
  auto* wide_type = llvm::FixedVectorType::get(element, static_cast<unsigned>(wide));
  Value* loaded = annotate(b_.CreateMaskedLoad(wide_type, pointer, align, fill_up_mask(b_, mask, wide),
                                               llvm::Constant::getNullValue(wide_type)),
                           *at.info, false);
  return wide == lanes ? loaded : b_.CreateShuffleVector(loaded, first_lanes(lanes, lanes, 0));
}

// Whether a strided access is taken apart into contiguous vectors; else lane by lane.
bool Emitter::loads_in_blocks(int64_t stride) const {
  return stride == -1 || (stride >= 2 && stride <= 4 && lanes_ >= 4);
}

// Lanes at a constant stride.
Value* Emitter::load_strided(const Buffer& buffer, const Address& at, Value* guard, Value* mask) {
  llvm::Type* type = memory_type(buffer->dtype);
  const int64_t stride = at.element.lane;
  Address first = at;
  first.element.lane = 0;
  const llvm::Align element_align(static_cast<uint64_t>(ir::bytes_of(buffer->dtype)));
  const auto at_offset = [&](int64_t offset) {
    Address start = first;
    start.element.constant += offset;
    return start;
  };
  if (stride == -1) {
    Value* reversed = mask == nullptr ? nullptr : b_.CreateVectorReverse(mask);
    return b_.CreateVectorReverse(
        load_vector(buffer, at_offset(1 - lanes_), lanes_, guard, reversed, element_align));
  }
  if (loads_in_blocks(stride)) {
    // Contiguous blocks that cover all lanes, the last one ending with the window so that nothing behind it
    // is read; then shuffles. The window is that of the lanes, or, where the elements are there, whole
    // strides: neighbours (the columns of a convolution's kernel) share the loads then. A mask is spread to
    // the elements of each block.
    int64_t begin = 0, end = (lanes_ - 1) * stride + 1;
    const int64_t phase = ((first.element.constant % stride) + stride) % stride;
    if (mask == nullptr && at.room_before >= phase && at.room_behind >= stride - 1 - phase) {
      begin = -phase;
      end = begin + lanes_ * stride;
    }
    int64_t block =
        std::min(end - begin, std::max<int64_t>(lanes_, traits_.vector_bytes / ir::bytes_of(buffer->dtype)));
    // Where masks are dear a block is a whole vector.
    if (!traits_.masked_memory && masked_lanes(block) != block) block = lanes_;
    const auto lanes = static_cast<size_t>(lanes_);
    Value* result = nullptr;
    Value* waiting = nullptr;  // the first block
    llvm::SmallVector<int, 64> picked(lanes, -1);
    int64_t done = 0;  // lanes in blocks so far
    for (int64_t start = begin; start < end; start += block) {
      const int64_t offset = std::min(start, end - block);
      llvm::SmallVector<int, 64> pick(lanes, -1);
      // Lane lanes_ of the mask's shuffle is false.
      llvm::SmallVector<int, 64> spread(static_cast<size_t>(block), lanes_);
      const int64_t before = done;
      for (; done < lanes_ && done * stride < offset + block; ++done) {
        pick[static_cast<size_t>(done)] = static_cast<int>(done * stride - offset);
        spread[static_cast<size_t>(done * stride - offset)] = static_cast<int>(done);
      }
      Value* block_mask = nullptr;
      if (mask != nullptr)
        block_mask = b_.CreateShuffleVector(mask, llvm::Constant::getNullValue(mask->getType()), spread);
      Value* v = load_vector(buffer, at_offset(offset), block, guard, block_mask, element_align);
      if (waiting == nullptr) {
        waiting = v;
        picked = pick;
      } else if (result == nullptr) {
        for (auto lane = static_cast<size_t>(before); lane < static_cast<size_t>(done); ++lane)
          picked[lane] = pick[lane] + static_cast<int>(block);
        result = b_.CreateShuffleVector(waiting, v, picked);
      } else {
        llvm::SmallVector<int, 64> merge(lanes, -1);
        std::iota(merge.begin(), merge.begin() + before, 0);
        for (int64_t lane = before; lane < done; ++lane)
          merge[static_cast<size_t>(lane)] = static_cast<int>(lane + lanes_);
        result = b_.CreateShuffleVector(result, b_.CreateShuffleVector(v, pick), merge);
      }
    }
    return result == nullptr ? b_.CreateShuffleVector(waiting, picked) : result;
  }
  TS_CHECK(mask == nullptr, "lanes one by one under a mask");
  Value* result = llvm::PoisonValue::get(with_lanes(type));
  for (int lane = 0; lane < lanes_; ++lane) {
    const Address element = at_offset(lane * stride);
    Value* pointer = guarded_pointer(buffer, element, guard, ir::bytes_of(buffer->dtype));
    auto* v = annotate(b_.CreateAlignedLoad(type, pointer, element_align), *at.info, true);
    result = b_.CreateInsertElement(result, v, static_cast<uint64_t>(lane));
  }
  return result;
}

Value* Emitter::vector_of_pointers(const Buffer& buffer, const Address& at, int64_t lanes) {
  Affine uniform = at.element;
  uniform.lane = 0;
  uniform.vector = nullptr;
  Affine offsets;
  offsets.lane = at.element.lane;
  offsets.vector = at.element.vector;
  Value* offset = offsets.uniform() ? llvm::Constant::getNullValue(with_lanes(b_.getInt64Ty()))
                                    : materialize(offsets).value;
  if (lanes != lanes_) offset = b_.CreateShuffleVector(offset, first_lanes(lanes_, lanes, 0));
  return b_.CreateGEP(memory_type(buffer->dtype), pointer_to(buffer, *at.info, uniform), offset);
}

// LLVM fills gathers up to a power of two with undefined offsets; where a whole instruction has no others, their
// register may be the mask's, which x86 refuses as an invalid instruction. So they are filled up here, with the
// first lane's.
Value* Emitter::load_gather(const Buffer& buffer, const Address& at, Value* mask) {
  const auto wide = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(lanes_)));
  auto* vector = llvm::FixedVectorType::get(memory_type(buffer->dtype), static_cast<unsigned>(wide));
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(with_lanes(b_.getInt1Ty()));
  const llvm::Align align(static_cast<uint64_t>(ir::bytes_of(buffer->dtype)));
  Value* loaded =
      annotate(b_.CreateMaskedGather(vector, vector_of_pointers(buffer, at, wide), align,
                                     fill_up_mask(b_, mask, wide), llvm::Constant::getNullValue(vector)),
               *at.info, false);
  return wide == lanes_ ? loaded : b_.CreateShuffleVector(loaded, first_lanes(lanes_, lanes_, 0));
}

void Emitter::store(const Buffer& buffer, const std::vector<Expr>& indices, Val value) {
  const Address at = address_of(buffer, indices);
  forget_loads(buffer);
  if (at.info->in_registers) remember_constant(at, value);
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
    const int64_t wide = masked_lanes(lanes_);
    const bool fill = wide != lanes_ && traits_.masked_memory && !at.info->in_registers;
    if (mask_ == nullptr && !fill) {
      annotate(b_.CreateAlignedStore(v, pointer, alignment_of(at)), *at.info, false);
      return;
    }
    Value* mask = mask_ != nullptr ? mask_ : llvm::Constant::getAllOnesValue(with_lanes(b_.getInt1Ty()));
    annotate(
        b_.CreateMaskedStore(fill_up(b_, v, wide), pointer, alignment_of(at), fill_up_mask(b_, mask, wide)),
        *at.info, false);
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
  annotate(b_.CreateMaskedScatter(value, vector_of_pointers(buffer, at, lanes_), align, mask), *at.info,
           false);
}

template llvm::StoreInst* Emitter::annotate(llvm::StoreInst*, const BufferInfo&, bool);

}  // namespace tensorsmith::codegen
