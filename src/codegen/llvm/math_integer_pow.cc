// Powers of integers.
#include <llvm/IR/Module.h>

#include "codegen/llvm/math.h"

namespace tensorsmith::codegen {

using V = llvm::Value*;

namespace {

// Returns the constant that all lanes have, or null.
const llvm::APInt* constant_of(V v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant != nullptr && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* integer = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
  return integer != nullptr ? &integer->getValue() : nullptr;
}

constexpr uint64_t kMaxUnrolledExponent = 64;

}  // namespace

V MathEmitter::integer_pow(V x, V y, bool is_signed) {
  const llvm::APInt* known = constant_of(y);
  if (known != nullptr && known->ule(kMaxUnrolledExponent)) {
    V result = nullptr;
    V square = x;
    for (uint64_t exponent = known->getZExtValue(); exponent != 0; exponent >>= 1) {
      if ((exponent & 1) != 0) result = result == nullptr ? square : b_.CreateMul(result, square);
      if (exponent > 1) square = b_.CreateMul(square, square);
    }
    return result == nullptr ? llvm::ConstantInt::get(x->getType(), 1) : result;
  }
  return call_by_lane(integer_pow_function(x->getType()->getScalarType(), is_signed), x, y);
}

// Exponentiation by squaring. For a negative exponent, 1 gives 1, -1 gives 1 or -1, and all other
// bases give 0.
llvm::Function* MathEmitter::integer_pow_function(llvm::Type* type, bool is_signed) {
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  const std::string name = (is_signed ? "pow.i" : "pow.u") + std::to_string(type->getIntegerBitWidth());
  if (llvm::Function* known = module->getFunction(name)) return known;
  llvm::LLVMContext& context = module->getContext();
  llvm::Function* function = make_function(llvm::FunctionType::get(type, {type, type}, false), name.c_str());
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  auto* entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* check = llvm::BasicBlock::Create(context, "check", function);
  auto* step = llvm::BasicBlock::Create(context, "step", function);
  auto* done = llvm::BasicBlock::Create(context, "done", function);
  auto* negative = llvm::BasicBlock::Create(context, "negative", function);
  const auto c = [&](int64_t value) { return llvm::ConstantInt::get(type, value, true); };
  V x = function->getArg(0);
  V y = function->getArg(1);
  b_.SetInsertPoint(entry);
  b_.CreateCondBr(is_signed ? b_.CreateICmpSLT(y, c(0)) : b_.getFalse(), negative, check);

  b_.SetInsertPoint(check);
  llvm::PHINode* result = b_.CreatePHI(type, 2);
  llvm::PHINode* square = b_.CreatePHI(type, 2);
  llvm::PHINode* exponent = b_.CreatePHI(type, 2);
  result->addIncoming(c(1), entry);
  square->addIncoming(x, entry);
  exponent->addIncoming(y, entry);
  b_.CreateCondBr(b_.CreateICmpEQ(exponent, c(0)), done, step);

  b_.SetInsertPoint(step);
  V odd = b_.CreateICmpNE(b_.CreateAnd(exponent, c(1)), c(0));
  result->addIncoming(b_.CreateSelect(odd, b_.CreateMul(result, square), result), step);
  square->addIncoming(b_.CreateMul(square, square), step);
  exponent->addIncoming(b_.CreateLShr(exponent, c(1)), step);
  b_.CreateBr(check);

  b_.SetInsertPoint(done);
  b_.CreateRet(result);

  b_.SetInsertPoint(negative);
  V parity = b_.CreateICmpNE(b_.CreateAnd(y, c(1)), c(0));
  V of_minus_one = b_.CreateSelect(b_.CreateICmpEQ(x, c(-1)), b_.CreateSelect(parity, c(-1), c(1)), c(0));
  b_.CreateRet(b_.CreateSelect(b_.CreateICmpEQ(x, c(1)), c(1), of_minus_one));
  return function;
}

}  // namespace tensorsmith::codegen
