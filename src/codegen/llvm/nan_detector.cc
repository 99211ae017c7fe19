#include "codegen/llvm/nan_detector.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "codegen/llvm/value_emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

NanDetector::Seen NanDetector::place_for(llvm::Type* type, size_t number) {
  for (const Seen& known : seen_)
    if (known.type == type && known.number == number) return known;
  Seen made{type, number, type, nullptr};
  const bool masks = context_.traits.mask_registers;
  llvm::Constant* nothing = llvm::ConstantFP::get(type, 1.0);  // not 0: adding small squares would make
                                                               // subnormals
  if (type->isVectorTy()) {
    made.content =
        ValueEmitter::like(masks ? b_.getInt1Ty() : b_.getIntNTy(type->getScalarSizeInBits()), type);
    nothing =
        masks ? llvm::Constant::getAllOnesValue(made.content) : llvm::Constant::getNullValue(made.content);
  }
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetInsertPoint(alloca_point_);
  made.place = b_.CreateAlloca(made.content, nullptr, "seen");
  b_.SetInsertPoint(begin_);
  b_.CreateStore(nothing, made.place);
  seen_.push_back(made);
  return made;
}

// Vectors are compared in pairs, and the result is accumulated. If comparisons return masks, the
// accumulated mask says which lanes were all numbers: the next comparison is executed under that
// mask, which needs no additional instruction. Two masks are used in turn, because each comparison
// waits for the previous one. Otherwise, the accumulated vector says which lanes were not numbers.
// Of scalars, the sum of squares is accumulated, which is NaN only if one of them is; four sums are
// used in turn.
void NanDetector::look_at(Value* x) {
  if (ValueEmitter::is_number(x)) return;
  if (llvm::isa<llvm::Constant>(x)) x = b_.CreateFreeze(x);  // treat a NaN like the result of an instruction
  if (block_ != b_.GetInsertBlock()) {
    block_ = b_.GetInsertBlock();
    looked_at_.clear();
    unpaired_.clear();
  }
  if (!looked_at_.insert(x).second) return;
  llvm::Type* type = x->getType();
  if (!type->isVectorTy()) {
    const Seen slot = place_for(type, comparisons_++ % 4);
    Value* known = b_.CreateLoad(type, slot.place);
    Value* sum = context_.traits.fma ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, x, known})
                                     : b_.CreateFAdd(b_.CreateFMul(x, x), known);
    b_.CreateStore(sum, slot.place);
    return;
  }
  const auto pair = unpaired_.find(type);
  Value* other = x;
  if (pair != unpaired_.end()) {
    // The instructions for the unpaired value precede this one; they are emitted again for both
    // values.
    other = pair->second.value;
    for (llvm::Instruction* made : pair->second.made) made->eraseFromParent();
    unpaired_.erase(pair);
  }
  const bool masks = context_.traits.mask_registers;
  const Seen slot = place_for(type, masks ? comparisons_++ / 2 % 2 : 0);
  Value* known = b_.CreateLoad(slot.content, slot.place);
  Value* compared = masks ? b_.CreateFCmpORD(other, x) : b_.CreateFCmpUNO(other, x);
  Value* wide = masks ? compared : b_.CreateSExt(compared, slot.content);
  Value* all = masks ? b_.CreateAnd(known, wide) : b_.CreateOr(known, wide);
  Value* written = b_.CreateStore(all, slot.place);
  if (other != x) return;
  Unpaired& left = unpaired_[type];
  left.value = x;
  for (Value* made : {written, all, wide, compared, known}) {
    auto* instruction = llvm::cast<llvm::Instruction>(made);
    if (std::find(left.made.begin(), left.made.end(), instruction) == left.made.end())
      left.made.push_back(instruction);
  }
}

Value* NanDetector::seen() {
  const bool masks = context_.traits.mask_registers;
  Value* any = nullptr;
  std::vector<Seen> all = seen_;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].content == nullptr) continue;
    Value* found = b_.CreateLoad(all[i].content, all[i].place);
    if (!all[i].content->isVectorTy()) {
      found = b_.CreateFCmpUNO(found, found);
    } else {
      for (size_t k = i + 1; k < all.size(); ++k) {
        if (all[k].content != all[i].content) continue;
        Value* other = b_.CreateLoad(all[k].content, all[k].place);
        found = masks ? b_.CreateAnd(found, other) : b_.CreateOr(found, other);
        all[k].content = nullptr;
      }
      found = masks ? b_.CreateNot(b_.CreateAndReduce(found))
                    : b_.CreateOrReduce(b_.CreateICmpNE(found, llvm::Constant::getNullValue(all[i].content)));
    }
    any = any == nullptr ? found : b_.CreateOr(any, found);
  }
  return any;
}

}  // namespace tensorsmith::codegen
