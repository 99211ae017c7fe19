// Loads and stores: contiguous, strided and gathered accesses and words, under masks and guards.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/llvm/memory_emitter.h"

namespace tensorsmith::codegen {

using ir::Buffer;
using ir::Expr;
using llvm::Value;

namespace {

// LLVM 19's x86 back end miscompiles masked accesses of vectors with an odd number of lanes (seen: stores of
// <5 x float> for AVX-512). They are made with the next power of two, the lanes beyond masked off.
int64_t masked_lanes(int64_t lanes) {
  return std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(lanes, 1)));
}

// Returns lanes 0 .. lanes - 1, then `rest` up to `wide` lanes.
llvm::SmallVector<int, 64> first_lanes(int64_t lanes, int64_t wide, int rest) {
  llvm::SmallVector<int, 64> order(wide, rest);
  std::iota(order.begin(), order.begin() + lanes, 0);
  return order;
}

// Extends the vector to `wide` lanes; the additional lanes are those of `rest` (null: undefined).
Value* fill_up(llvm::IRBuilder<>& builder, Value* vector, int64_t wide, llvm::Constant* rest = nullptr) {
  const auto lanes =
      static_cast<int64_t>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  if (lanes == wide) return vector;
  if (rest == nullptr) return builder.CreateShuffleVector(vector, first_lanes(lanes, wide, -1));
  return builder.CreateShuffleVector(vector, rest, first_lanes(lanes, wide, static_cast<int>(lanes)));
}

// Extends the mask to `wide` lanes; the additional lanes are off.
Value* fill_up_mask(llvm::IRBuilder<>& builder, Value* mask, int64_t wide) {
  return fill_up(builder, mask, wide, llvm::Constant::getNullValue(mask->getType()));
}

// Returns whether a lane of a mask may be true.
bool may_be_active(Value* mask, int lane) {
  if (auto* known = llvm::dyn_cast<llvm::Constant>(mask)) {
    const llvm::Constant* value = known->getAggregateElement(lane);
    return value == nullptr || !value->isNullValue();
  }
  if (auto* both = llvm::dyn_cast<llvm::BinaryOperator>(mask);
      both != nullptr && both->getOpcode() == llvm::Instruction::And)
    return may_be_active(both->getOperand(0), lane) && may_be_active(both->getOperand(1), lane);
  if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(mask)) {
    Value* first = shuffle->getOperand(0);
    const auto lanes =
        static_cast<int>(llvm::cast<llvm::FixedVectorType>(first->getType())->getNumElements());
    const int from = shuffle->getMaskValue(lane);
    if (from < 0) return false;
    return from < lanes ? may_be_active(first, from) : may_be_active(shuffle->getOperand(1), from - lanes);
  }
  return true;
}

}  // namespace

// Loaded values are cached, because unrolled code reads the same elements repeatedly, for example
// in a register tile.
Val MemoryEmitter::load(const Buffer& buffer, const std::vector<Expr>& indices, ZeroRequest* zero) {
  const Address at = address_of(buffer, indices);
  if (at.info->in_registers && loaded_.block == b_.GetInsertBlock()) {
    const auto [first, count] = constant_place(at);
    const auto known = loaded_.constants.find({at.info->instance, first});
    if (known != loaded_.constants.end() && known->second.first == count) return known->second.second;
  }
  if (at.info->in_registers || at.element.vector != nullptr) return load_from(at, zero);
  if (loaded_.block != b_.GetInsertBlock()) loaded_ = {b_.GetInsertBlock(), {}, {}};
  std::vector<int64_t> key{at.info->id,
                           at.info->instance,
                           context_.lanes,
                           reinterpret_cast<intptr_t>(context_.mask),
                           reinterpret_cast<intptr_t>(context_.guard),
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
    known.value = load_from(at, zero);
    known.zeros = zero != nullptr && zero->granted;
  }
  if (zero != nullptr) zero->granted = known.zeros;
  return known.value;
}

// Stored values may have changed what was loaded from the buffer.
void MemoryEmitter::forget(const BufferInfo& info) {
  const auto begin = loaded_.values.lower_bound({info.id});
  const auto end = loaded_.values.lower_bound({info.id + 1});
  loaded_.values.erase(begin, end);
}

std::pair<int64_t, int64_t> MemoryEmitter::constant_place(const Address& at) const {
  const bool plain = at.element.terms.empty() && at.element.vector == nullptr && at.element.lane <= 1;
  return {at.element.constant, !plain || at.element.lane < 0 ? 0 : at.element.lane == 0 ? 1 : context_.lanes};
}

// Remembers initial values of accumulators: if they are known constants, the first update can be
// folded.
void MemoryEmitter::remember_constant(const Address& at, const Val& value) {
  if (loaded_.block != b_.GetInsertBlock()) loaded_ = {b_.GetInsertBlock(), {}, {}};
  const auto [first, count] = constant_place(at);
  std::erase_if(loaded_.constants, [&](const auto& known) {
    const int64_t other = known.first.second;
    return known.first.first == at.info->instance &&
           (count == 0 || (other < first + count && first < other + known.second.first));
  });
  const bool kept = at.info->dtype == ir::DType::kF32 || at.info->dtype == ir::DType::kF64;
  if (count > 0 && context_.mask == nullptr && kept && value.uniform &&
      llvm::isa<llvm::ConstantFP>(value.value))
    loaded_.constants[{at.info->instance, first}] = {count, value};
}

Val MemoryEmitter::load_from(const Address& at, ZeroRequest* zero) {
  if (at.info->read_only) note_read(at);
  // An access in range for all lanes needs neither mask nor guard for safety. A mask may still be
  // the cheapest way to get zeros.
  const bool contiguous = at.element.vector == nullptr && at.element.lane == 1;
  const bool zeros = zero != nullptr && zero->lanes && context_.traits.masked_memory &&
                     (context_.guard == nullptr || contiguous);
  Value* mask = at.in_range && !(zeros && !at.element.uniform()) ? nullptr : context_.mask;
  Value* guard = at.in_range ? nullptr : context_.guard;
  if (at.element.uniform()) {
    // If all lanes are inactive, the address may be invalid.
    Value* condition = guard;
    if (mask != nullptr) {
      Value* any = b_.CreateOrReduce(mask);
      condition = condition == nullptr ? any : b_.CreateAnd(condition, any);
    }
    Value* pointer = guarded_pointer(at, condition, ir::bytes_of(at.info->dtype));
    if (zero != nullptr) zero->granted = guard != nullptr && !zero->lanes;
    auto* v = annotate(b_.CreateAlignedLoad(type_of(at), pointer, alignment_of(at)), *at.info, true);
    return {values_.from_memory(at.info->dtype, v), true};
  }
  const bool both = zeros && mask != nullptr && context_.guard != nullptr;
  if (both) mask = b_.CreateAnd(mask, values_.broadcast({context_.guard, true}));
  if (zero != nullptr)
    zero->granted =
        (both || guard != nullptr || context_.guard == nullptr) && (mask != nullptr || !zero->lanes);
  Value* v = nullptr;
  const int64_t stride = at.element.lane;
  if (contiguous) {
    v = load_vector(at, context_.lanes, guard, mask, alignment_of(at));
  } else if (at.element.vector == nullptr && (mask == nullptr || loads_in_blocks(stride))) {
    v = load_strided(at, guard, mask);
  } else {
    if (guard != nullptr) {
      Value* all = values_.broadcast({guard, true});
      mask = mask == nullptr ? all : b_.CreateAnd(mask, all);
    }
    v = load_gather(at, mask);
  }
  return {values_.from_memory(at.info->dtype, v), false};
}

// LLVM 19 splits masked loads that are longer than a register. If it knows that all lanes of a part are
// inactive and nobody uses them, it loads this part without a mask, also where there is no memory. So the
// parts are loaded one by one here, without those.
Value* MemoryEmitter::load_active_parts(const Address& at, int64_t lanes, Value* guard, Value* mask,
                                        llvm::Align align) {
  const int64_t part = context_.traits.vector_bytes / ir::bytes_of(at.info->dtype);
  auto* vector = llvm::FixedVectorType::get(type_of(at), lanes);
  Value* result = llvm::Constant::getNullValue(vector);
  for (int64_t begin = 0; begin < lanes; begin += part) {
    const int64_t length = std::min(part, lanes - begin);
    bool active = false;
    for (int64_t lane = begin; lane < begin + length; ++lane)
      active = active || may_be_active(mask, static_cast<int>(lane));
    if (!active) continue;
    Address start = at;
    start.element.constant += begin;
    llvm::SmallVector<int, 64> own(length), whole(lanes, -1), merge(lanes);
    std::iota(own.begin(), own.end(), static_cast<int>(begin));
    std::iota(whole.begin(), whole.begin() + length, 0);
    std::iota(merge.begin(), merge.end(), 0);
    std::iota(merge.begin() + begin, merge.begin() + begin + length, static_cast<int>(lanes));
    Value* loaded = load_vector(start, length, guard, b_.CreateShuffleVector(mask, own),
                                begin == 0 ? align : element_alignment(at));
    result = b_.CreateShuffleVector(result, b_.CreateShuffleVector(loaded, whole), merge);
  }
  return result;
}

// Loads consecutive elements, beginning with the first lane's. LLVM would load a vector that is not
// a power of two long in pieces; where masks are cheap, it is loaded as the next power of two.
Value* MemoryEmitter::load_vector(const Address& at, int64_t lanes, Value* guard, Value* mask,
                                  llvm::Align align) {
  if (mask != nullptr && lanes > context_.traits.vector_bytes / ir::bytes_of(at.info->dtype))
    for (int64_t lane = 0; lane < lanes; ++lane)
      if (!may_be_active(mask, static_cast<int>(lane)))
        return load_active_parts(at, lanes, guard, mask, align);
  llvm::Type* element = type_of(at);
  auto* vector = llvm::FixedVectorType::get(element, lanes);
  const int64_t wide = masked_lanes(lanes);
  const bool fill = wide != lanes && context_.traits.masked_memory && !at.info->in_registers;
  const int64_t length = mask != nullptr || fill ? wide : lanes;
  Value* pointer = guarded_pointer(at, guard, ir::bytes_of(at.info->dtype) * length);
  if (mask == nullptr && !fill) return annotate(b_.CreateAlignedLoad(vector, pointer, align), *at.info, true);
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(vector->getWithNewType(b_.getInt1Ty()));
  auto* wide_type = llvm::FixedVectorType::get(element, wide);
  Value* loaded = annotate(b_.CreateMaskedLoad(wide_type, pointer, align, fill_up_mask(b_, mask, wide),
                                               llvm::Constant::getNullValue(wide_type)),
                           *at.info, false);
  return wide == lanes ? loaded : b_.CreateShuffleVector(loaded, first_lanes(lanes, lanes, 0));
}

// Returns whether a strided access is assembled from contiguous vectors; otherwise it is done lane
// by lane.
bool MemoryEmitter::loads_in_blocks(int64_t stride) const {
  return stride == -1 || (stride >= 2 && stride <= 4 && context_.lanes >= 4);
}

// Loads lanes at a constant stride.
Value* MemoryEmitter::load_strided(const Address& at, Value* guard, Value* mask) {
  llvm::Type* type = type_of(at);
  const int64_t stride = at.element.lane;
  Address first = at;
  first.element.lane = 0;
  const llvm::Align element_align = element_alignment(at);
  const auto at_offset = [&](int64_t offset) {
    Address start = first;
    start.element.constant += offset;
    return start;
  };
  if (stride == -1) {
    Value* reversed = mask == nullptr ? nullptr : b_.CreateVectorReverse(mask);
    return b_.CreateVectorReverse(
        load_vector(at_offset(1 - context_.lanes), context_.lanes, guard, reversed, element_align));
  }
  if (loads_in_blocks(stride)) {
    // Loads contiguous blocks that cover all lanes, then shuffles them. The last block ends with
    // the window, so that nothing behind the window is read. The window covers the lanes or, if the
    // elements around them exist, whole strides, so that adjacent accesses (the columns of a
    // convolution's kernel) share the loads. A mask is spread to the elements of each block.
    int64_t begin = 0, end = (context_.lanes - 1) * stride + 1;
    const int64_t phase = ((first.element.constant % stride) + stride) % stride;
    if (mask == nullptr && at.room_before >= phase && at.room_behind >= stride - 1 - phase) {
      begin = -phase;
      end = begin + context_.lanes * stride;
    }
    int64_t block = std::min(
        end - begin,
        std::max<int64_t>(context_.lanes, context_.traits.vector_bytes / ir::bytes_of(at.info->dtype)));
    // Where masked accesses are expensive, a block is a whole vector.
    if (!context_.traits.masked_memory && masked_lanes(block) != block) block = context_.lanes;
    const size_t lanes = context_.lanes;
    Value* result = nullptr;
    Value* waiting = nullptr;  // the first block, until the second one is loaded
    llvm::SmallVector<int, 64> picked(lanes, -1);
    int64_t done = 0;  // lanes found in the blocks so far
    for (int64_t start = begin; start < end; start += block) {
      const int64_t offset = std::min(start, end - block);
      llvm::SmallVector<int, 64> pick(lanes, -1);
      // Lane context_.lanes of the mask's shuffle is false.
      llvm::SmallVector<int, 64> spread(block, context_.lanes);
      const int64_t before = done;
      for (; done < context_.lanes && done * stride < offset + block; ++done) {
        pick[done] = done * stride - offset;
        spread[done * stride - offset] = done;
      }
      Value* block_mask = nullptr;
      if (mask != nullptr)
        block_mask = b_.CreateShuffleVector(mask, llvm::Constant::getNullValue(mask->getType()), spread);
      Value* v = load_vector(at_offset(offset), block, guard, block_mask, element_align);
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
        for (int64_t lane = before; lane < done; ++lane) merge[lane] = lane + context_.lanes;
        result = b_.CreateShuffleVector(result, b_.CreateShuffleVector(v, pick), merge);
      }
    }
    return result == nullptr ? b_.CreateShuffleVector(waiting, picked) : result;
  }
  TS_CHECK(mask == nullptr, "masked lanes cannot be loaded one by one");
  Value* result = llvm::PoisonValue::get(values_.with_lanes(type));
  for (int lane = 0; lane < context_.lanes; ++lane) {
    const Address element = at_offset(lane * stride);
    Value* pointer = guarded_pointer(element, guard, ir::bytes_of(at.info->dtype));
    auto* v = annotate(b_.CreateAlignedLoad(type, pointer, element_align), *at.info, true);
    result = b_.CreateInsertElement(result, v, lane);
  }
  return result;
}

Value* MemoryEmitter::vector_of_pointers(const Address& at, int64_t lanes) {
  Affine uniform = at.element;
  uniform.lane = 0;
  uniform.vector = nullptr;
  Affine offsets;
  offsets.lane = at.element.lane;
  offsets.vector = at.element.vector;
  Value* offset = offsets.uniform() ? llvm::Constant::getNullValue(values_.with_lanes(b_.getInt64Ty()))
                                    : indices_.materialize(offsets).value;
  if (lanes != context_.lanes) offset = b_.CreateShuffleVector(offset, first_lanes(context_.lanes, lanes, 0));
  return b_.CreateGEP(type_of(at), pointer_to(*at.info, uniform), offset);
}

// LLVM extends gathers to a power of two of lanes with undefined offsets. If an instruction has
// only such lanes, its index register may be the same as the mask's, which is an invalid
// instruction on x86. So the lanes are filled here, with the first lane's address.
Value* MemoryEmitter::load_gather(const Address& at, Value* mask) {
  const int64_t wide = std::bit_ceil(static_cast<uint64_t>(context_.lanes));
  auto* vector = llvm::FixedVectorType::get(type_of(at), wide);
  if (mask == nullptr) mask = llvm::Constant::getAllOnesValue(values_.with_lanes(b_.getInt1Ty()));
  const llvm::Align align = element_alignment(at);
  Value* loaded =
      annotate(b_.CreateMaskedGather(vector, vector_of_pointers(at, wide), align,
                                     fill_up_mask(b_, mask, wide), llvm::Constant::getNullValue(vector)),
               *at.info, false);
  return wide == context_.lanes
             ? loaded
             : b_.CreateShuffleVector(loaded, first_lanes(context_.lanes, context_.lanes, 0));
}

std::optional<Val> MemoryEmitter::load_word(llvm::ArrayRef<const ir::Load*> parts) {
  const int64_t count = parts.size();
  const Buffer& buffer = parts[0]->buffer;
  const Address first = address_of(buffer, parts[0]->indices);
  if (first.info->lanes > 1 || first.info->in_registers || first.element.vector != nullptr) return {};
  if (first.element.lane != 0 && first.element.lane != count) return {};
  bool in_range = first.in_range;
  for (int64_t j = 1; j < count; ++j) {
    const ir::Load& part = *parts[j];
    if (part.buffer != buffer) return {};
    const Address at = address_of(buffer, part.indices);
    if (at.element.constant != first.element.constant + j || at.element.lane != first.element.lane ||
        at.element.terms != first.element.terms || at.element.vector != nullptr)
      return {};
    in_range = in_range && at.in_range;
  }
  if (!in_range && (context_.mask != nullptr || context_.guard != nullptr)) return {};
  Affine start = first.element;
  start.lane = 0;
  const bool uniform = first.element.lane == 0;
  llvm::Type* type = uniform ? b_.getInt32Ty() : values_.with_lanes(b_.getInt32Ty());
  auto* word = b_.CreateAlignedLoad(type, pointer_to(*first.info, start), alignment_of(first));
  return Val{annotate(word, *first.info, true), uniform};
}

void MemoryEmitter::store(const Buffer& buffer, const std::vector<Expr>& indices, Val value) {
  const Address at = address_of(buffer, indices);
  forget(*at.info);
  if (at.info->in_registers) remember_constant(at, value);
  const bool contiguous = at.element.uniform() || (at.element.lane == 1 && at.element.vector == nullptr);
  steps_ += contiguous ? 1 : context_.lanes;
  if (at.element.uniform() && value.uniform && context_.mask == nullptr) {
    annotate(b_.CreateAlignedStore(values_.to_memory(at.info->dtype, value.value), pointer_to(at),
                                   alignment_of(at)),
             *at.info, false);
    return;
  }
  Value* v = values_.to_memory(at.info->dtype, values_.broadcast(value));
  if (at.element.vector == nullptr && at.element.lane == 1) {
    Affine first = at.element;
    first.lane = 0;
    Value* pointer = pointer_to(*at.info, first);
    // Each lane of an expanded buffer is private, so writing it in an inactive lane is harmless
    // unless the lane becomes active later.
    const int64_t wide = masked_lanes(context_.lanes);
    const bool fill = wide != context_.lanes && context_.traits.masked_memory && !at.info->in_registers;
    if (context_.mask == nullptr && !fill) {
      annotate(b_.CreateAlignedStore(v, pointer, alignment_of(at)), *at.info, false);
      return;
    }
    Value* mask = context_.mask != nullptr
                      ? context_.mask
                      : llvm::Constant::getAllOnesValue(values_.with_lanes(b_.getInt1Ty()));
    annotate(
        b_.CreateMaskedStore(fill_up(b_, v, wide), pointer, alignment_of(at), fill_up_mask(b_, mask, wide)),
        *at.info, false);
    return;
  }
  store_scatter(at, v);
}

void MemoryEmitter::store_scatter(const Address& at, Value* value) {
  const llvm::Align align = element_alignment(at);
  if (context_.mask == nullptr && at.element.vector == nullptr) {
    // Stores lanes in ascending order: if two have the same address, the last one wins as in serial
    // execution.
    for (int lane = 0; lane < context_.lanes; ++lane) {
      Affine element = at.element;
      element.lane = 0;
      element.constant += lane * at.element.lane;
      annotate(
          b_.CreateAlignedStore(b_.CreateExtractElement(value, lane), pointer_to(*at.info, element), align),
          *at.info, false);
    }
    return;
  }
  Value* mask = context_.mask != nullptr
                    ? context_.mask
                    : llvm::Constant::getAllOnesValue(values_.with_lanes(b_.getInt1Ty()));
  annotate(b_.CreateMaskedScatter(value, vector_of_pointers(at, context_.lanes), align, mask), *at.info,
           false);
}

}  // namespace tensorsmith::codegen
