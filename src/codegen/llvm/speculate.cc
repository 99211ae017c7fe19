// Minima and maxima over windows and rows. The processor's instruction forgets a NaN: max(NaN, x) = x. The exact
// maximum takes three instructions, which triples the work of a pool. So parts of a kernel that reduce are emitted
// twice (extremum_regions.h). The first copy uses the plain instruction. Only if there is a NaN among the values,
// the second, exact copy does everything, with the same results elsewhere.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/llvm/emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

namespace {

// Vectors of a region in one iteration of the loop that looks at it.
constexpr int64_t kVectorsAtOnce = 8;
// Regions of fewer vectors are looked at without loops.
constexpr int64_t kVectorsUnrolled = 32;

}  // namespace

bool Emitter::is_forgetful(const ir::Store& store) const {
  return speculation_ != nullptr && is_float_extremum_update(store);
}

void Emitter::emit_exact_if_nan(const SpeculativePart* part, const std::function<void()>& emit_part) {
  if (part == nullptr || speculation_ != nullptr || compact_ || lanes_ > 1) return emit_part();
  Speculation speculation;
  speculation.part = part;
  // Something to put initial values before.
  llvm::BasicBlock* start = new_block("plain");
  speculation.begin = b_.CreateBr(start);
  b_.SetInsertPoint(start);
  speculation_ = &speculation;
  const bool before = !part->regions.empty();
  const auto plain = [&] {
    loaded_ = {};
    emit_part();
  };
  const auto exact = [&] {
    speculation_ = nullptr;
    compact_ = true;
    loaded_ = {};
    emit_part();
    compact_ = false;
  };
  if (before) {
    for (const Region& region : part->regions) look_at(region);
  } else {
    plain();
  }
  if (Value* any = seen_nan()) {
    llvm::BasicBlock* exactly = new_block("exact");
    llvm::BasicBlock* otherwise = before ? new_block("numbers") : nullptr;
    llvm::BasicBlock* join = new_block("exact.end");
    b_.CreateCondBr(any, exactly, before ? otherwise : join,
                    llvm::MDBuilder(context_).createUnlikelyBranchWeights());
    if (before) {
      b_.SetInsertPoint(otherwise);
      plain();
      b_.CreateBr(join);
    }
    b_.SetInsertPoint(exactly);
    exact();
    b_.CreateBr(join);
    b_.SetInsertPoint(join);
  } else if (before) {
    plain();
  }
  speculation_ = nullptr;
  loaded_ = {};
}

void Emitter::update_extremum(const ir::Store& s) {
  const auto& update = *ir::as<ir::Binary>(s.value);
  const Val next = plain_extremum(update.op, update.b);
  store(s.buffer, s.indices, plain_extremum(update.op, eval(update.a), next));
}

// Of values that are looked at, here or before.
Val Emitter::plain_extremum(ir::BinaryOp op, const ir::Expr& e) {
  const auto* inner = ir::as<ir::Binary>(e);
  if (inner != nullptr && inner->op == op) {
    const Val a = plain_extremum(op, inner->a);
    return plain_extremum(op, a, plain_extremum(op, inner->b));
  }
  const Val v = eval(e);
  const auto* load = ir::as<ir::Load>(e);
  const bool known = load != nullptr && speculation_->part->numbers.contains(load->buffer.get());
  if (!known && speculation_->part->regions.empty()) look_for_nan(v.value);
  return v;
}

Val Emitter::plain_extremum(ir::BinaryOp op, Val a, Val b) {
  const bool vectors = unify(a, b);
  Value* chosen =
      op == ir::BinaryOp::kMin ? b_.CreateFCmpOLT(a.value, b.value) : b_.CreateFCmpOGT(a.value, b.value);
  return {b_.CreateSelect(chosen, a.value, b.value), !vectors};
}

// Looks at all elements of a region, row by row: dimensions that are taken as a whole join the one before them.
void Emitter::look_at(const Region& region) {
  const ir::Buffer& buffer = region.buffer;
  Address at;
  at.info = &info_of(buffer);
  at.dtype = buffer->dtype;
  at.in_range = true;
  std::vector<int64_t> extents, strides;  // of loops, the innermost first
  int64_t row = 1;                        // elements next to each other
  for (size_t d = buffer->shape.size(); d-- > 0;) {
    const int64_t extent = std::min(region.extent[d], buffer->shape[d]);
    const int64_t stride = at.info->strides[d];
    // Moved into the buffer: elements outside are not read.
    const EvaluationScope scope(evaluated_);
    const ir::Expr begin = ir::max(ir::min(ir::to_expr(region.begin[d]), ir::Expr(buffer->shape[d] - extent)),
                                   ir::Expr(int64_t{0}));
    at.element = sum(at.element, index(begin), stride);
    if (extents.empty() && stride == row) {
      row *= extent;
    } else if (extent > 1) {
      extents.push_back(extent);
      strides.push_back(stride);
    }
  }
  const int64_t element_bytes = std::max<int64_t>(ir::bytes_of(buffer->dtype), 4);  // in a register
  const int64_t lanes = traits_.vector_bytes / element_bytes;
  int64_t vectors = (row + lanes - 1) / lanes;
  for (const int64_t extent : extents) vectors *= extent;
  const auto rows = [&](const auto& self, size_t level, const Address& start) -> void {
    if (level == 0) return look_at_row(buffer, start, row, lanes, vectors <= kVectorsUnrolled);
    const int64_t extent = extents[level - 1];
    const auto step = [&](const Affine& i) {
      Address next = start;
      next.element = sum(start.element, i, strides[level - 1]);
      self(self, level - 1, next);
    };
    if (vectors <= kVectorsUnrolled) {
      for (int64_t i = 0; i < extent; ++i) {
        Affine constant;
        constant.constant = i;
        step(constant);
      }
    } else {
      emit_loop(ir::Var("row"), b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(extent)), {0, extent - 1},
                true, step);
    }
  };
  rows(rows, extents.size(), at);
}

void Emitter::look_at_row(const ir::Buffer& buffer, const Address& at, int64_t elements, int64_t lanes,
                          bool unrolled) {
  const auto look = [&](const Affine& offset, int64_t count) {
    Address from = at;
    from.element = sum(at.element, offset, 1);
    const bool vector = count > 1;
    from.element.lane = vector ? 1 : 0;
    lanes_ = static_cast<int>(count);
    Value* v =
        vector
            ? load_vector(buffer, from, count, nullptr, nullptr, alignment_of(from))
            : annotate(b_.CreateAlignedLoad(memory_type(buffer->dtype),
                                            pointer_to(buffer, *from.info, from.element), alignment_of(from)),
                       *from.info, true);
    look_for_nan(from_memory(buffer->dtype, v));
    lanes_ = 1;
  };
  const auto look_at_offset = [&](int64_t offset, int64_t count) {
    Affine constant;
    constant.constant = offset;
    look(constant, count);
  };
  while (lanes > elements) lanes /= 2;
  const int64_t at_once = kVectorsAtOnce * lanes;
  int64_t done = 0;
  if (!unrolled && elements >= 2 * at_once) {
    const int64_t times = elements / at_once;
    emit_loop(ir::Var("look"), b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(times)), {0, times - 1},
              true, [&](const Affine& i) {
                for (int64_t k = 0; k < kVectorsAtOnce; ++k) {
                  Affine offset = sum(Affine(), i, at_once);
                  offset.constant = k * lanes;
                  look(offset, lanes);
                }
              });
    done = times * at_once;
  }
  // The last vector ends with the row.
  for (; done < elements; done += lanes) look_at_offset(std::min(done, elements - lanes), lanes);
}

Emitter::Seen Emitter::seen(llvm::Type* type, size_t number) {
  for (const Seen& known : speculation_->seen)
    if (known.type == type && known.number == number) return known;
  Seen made{type, number, type, nullptr};
  llvm::Constant* nothing = llvm::ConstantFP::get(type, 1.0);  // not 0: small squares would be subnormal
  if (type->isVectorTy()) {
    made.content =
        like(traits_.mask_registers ? b_.getInt1Ty() : b_.getIntNTy(type->getScalarSizeInBits()), type);
    nothing = traits_.mask_registers ? llvm::Constant::getAllOnesValue(made.content)
                                     : llvm::Constant::getNullValue(made.content);
  }
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(f_.alloca_point);
  made.place = b_.CreateAlloca(made.content, nullptr, "seen");
  b_.SetInsertPoint(speculation_->begin);
  b_.CreateStore(nothing, made.place);
  speculation_->seen.push_back(made);
  return made;
}

// Two values are compared at once, and what is found is added to what was found before. Where comparisons give masks,
// that is whether all were numbers: the next comparison is made under that mask, without an instruction more, and
// two of them in turn, for they wait for each other. Elsewhere it is whether some were not. Of scalars sums of
// squares, which are NaN only if one of them is; four in turn.
void Emitter::look_for_nan(Value* x) {
  if (is_number(x)) return;
  if (llvm::isa<llvm::Constant>(x)) x = b_.CreateFreeze(x);  // NaN as an instruction like others
  Speculation& now = *speculation_;
  if (now.block != b_.GetInsertBlock()) {
    now.block = b_.GetInsertBlock();
    now.looked_at.clear();
    now.unpaired.clear();
  }
  if (!now.looked_at.insert(x).second) return;
  llvm::Type* type = x->getType();
  if (!type->isVectorTy()) {
    const Seen slot = seen(type, now.comparisons++ % 4);
    Value* known = b_.CreateLoad(type, slot.place);
    Value* sum = traits_.fma ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, x, known})
                             : b_.CreateFAdd(b_.CreateFMul(x, x), known);
    b_.CreateStore(sum, slot.place);
    return;
  }
  const auto pair = now.unpaired.find(type);
  Value* other = x;
  if (pair != now.unpaired.end()) {
    // What was emitted for the value before stands ahead of this one: it is emitted again for both.
    other = pair->second.value;
    for (llvm::Instruction* made : pair->second.made) made->eraseFromParent();
    now.unpaired.erase(pair);
  }
  const Seen slot = seen(type, traits_.mask_registers ? now.comparisons++ / 2 % 2 : 0);
  Value* known = b_.CreateLoad(slot.content, slot.place);
  Value* compared = traits_.mask_registers ? b_.CreateFCmpORD(other, x) : b_.CreateFCmpUNO(other, x);
  Value* wide = traits_.mask_registers ? compared : b_.CreateSExt(compared, slot.content);
  Value* all = traits_.mask_registers ? b_.CreateAnd(known, wide) : b_.CreateOr(known, wide);
  Value* written = b_.CreateStore(all, slot.place);
  if (other != x) return;
  Unpaired& left = now.unpaired[type];
  left.value = x;
  for (Value* made : {written, all, wide, compared, known}) {
    auto* instruction = llvm::cast<llvm::Instruction>(made);
    if (std::find(left.made.begin(), left.made.end(), instruction) == left.made.end())
      left.made.push_back(instruction);
  }
}

// Whether there was a NaN among the values looked at; null if none of them can be one.
Value* Emitter::seen_nan() {
  const bool masks = traits_.mask_registers;
  Value* any = nullptr;
  std::vector<Seen>& all = speculation_->seen;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].content == nullptr) continue;
    Value* seen = b_.CreateLoad(all[i].content, all[i].place);
    if (!all[i].content->isVectorTy()) {
      seen = b_.CreateFCmpUNO(seen, seen);
    } else {
      for (size_t k = i + 1; k < all.size(); ++k) {
        if (all[k].content != all[i].content) continue;
        Value* other = b_.CreateLoad(all[k].content, all[k].place);
        seen = masks ? b_.CreateAnd(seen, other) : b_.CreateOr(seen, other);
        all[k].content = nullptr;
      }
      seen = masks ? b_.CreateNot(b_.CreateAndReduce(seen))
                   : b_.CreateOrReduce(b_.CreateICmpNE(seen, llvm::Constant::getNullValue(all[i].content)));
    }
    any = any == nullptr ? seen : b_.CreateOr(any, seen);
  }
  return any;
}

}  // namespace tensorsmith::codegen
