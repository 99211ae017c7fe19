// Arithmetic, comparisons and minima. LLVM's builder treats scalars and lane vectors alike.
#include "codegen/llvm/value_emitter.h"

namespace tensorsmith::codegen {

using ir::BinaryOp;
using ir::DType;
using llvm::Value;

namespace {

// Returns the constant that all lanes have, or null.
const llvm::ConstantFP* constant_float(const Value* v) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant != nullptr && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  return llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
}

bool is_infinite(const Value* v, bool negative) {
  const llvm::ConstantFP* number = constant_float(v);
  return number != nullptr && number->getValueAPF().isInfinity() && number->isNegative() == negative;
}

}  // namespace

bool ValueEmitter::is_number(const Value* v) {
  const llvm::ConstantFP* number = constant_float(v);
  return number != nullptr && !number->getValueAPF().isNaN();
}

Value* ValueEmitter::broadcast(Val v) {
  return v.uniform ? b_.CreateVectorSplat(context_.lanes, v.value) : v.value;
}

bool ValueEmitter::unify(Val& a, Val& b) {
  if (a.uniform && b.uniform) return false;
  a = {broadcast(a), false};
  b = {broadcast(b), false};
  return true;
}

Value* ValueEmitter::comparison(BinaryOp op, DType dtype, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  if (ir::is_float(dtype)) {
    switch (op) {
      case BinaryOp::kEq:
        return b_.CreateFCmp(P::FCMP_OEQ, a, b);
      case BinaryOp::kNe:
        return b_.CreateFCmp(P::FCMP_UNE, a, b);
      case BinaryOp::kLt:
        return b_.CreateFCmp(P::FCMP_OLT, a, b);
      case BinaryOp::kLe:
        return b_.CreateFCmp(P::FCMP_OLE, a, b);
      case BinaryOp::kGt:
        return b_.CreateFCmp(P::FCMP_OGT, a, b);
      case BinaryOp::kGe:
        return b_.CreateFCmp(P::FCMP_OGE, a, b);
      default:
        throw_internal_error(__FILE__, __LINE__, "not a comparison");
    }
  }
  const bool is_signed = ir::is_signed_int(dtype);
  switch (op) {
    case BinaryOp::kEq:
      return b_.CreateICmp(P::ICMP_EQ, a, b);
    case BinaryOp::kNe:
      return b_.CreateICmp(P::ICMP_NE, a, b);
    case BinaryOp::kLt:
      return b_.CreateICmp(is_signed ? P::ICMP_SLT : P::ICMP_ULT, a, b);
    case BinaryOp::kLe:
      return b_.CreateICmp(is_signed ? P::ICMP_SLE : P::ICMP_ULE, a, b);
    case BinaryOp::kGt:
      return b_.CreateICmp(is_signed ? P::ICMP_SGT : P::ICMP_UGT, a, b);
    case BinaryOp::kGe:
      return b_.CreateICmp(is_signed ? P::ICMP_SGE : P::ICMP_UGE, a, b);
    default:
      throw_internal_error(__FILE__, __LINE__, "not a comparison");
  }
}

Value* ValueEmitter::arithmetic(BinaryOp op, DType dtype, Value* a, Value* b) {
  const bool is_float = ir::is_float(dtype);
  const bool is_signed = ir::is_signed_int(dtype);
  switch (op) {
    case BinaryOp::kAdd:
      return is_float ? round_to(dtype, b_.CreateFAdd(a, b)) : b_.CreateAdd(a, b);
    case BinaryOp::kSub:
      return is_float ? round_to(dtype, b_.CreateFSub(a, b)) : b_.CreateSub(a, b);
    case BinaryOp::kMul:
      return is_float ? round_to(dtype, b_.CreateFMul(a, b)) : b_.CreateMul(a, b);
    case BinaryOp::kDiv:
      if (is_float) return round_to(dtype, b_.CreateFDiv(a, b));
      return integer_division(op, is_signed, a, b);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return integer_division(op, is_signed, a, b);
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return extremum(op, dtype, a, b);
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd:
      return b_.CreateAnd(a, b);
    case BinaryOp::kOr:
    case BinaryOp::kBitOr:
      return b_.CreateOr(a, b);
    case BinaryOp::kBitXor:
      return b_.CreateXor(a, b);
    case BinaryOp::kShl:
    case BinaryOp::kShr: {
      llvm::Type* type = a->getType();
      Value* zero = llvm::Constant::getNullValue(type);
      Value* in_range = b_.CreateICmpULT(b, llvm::ConstantInt::get(type, type->getScalarSizeInBits()));
      Value* count = b_.CreateSelect(in_range, b, zero);
      Value* shifted = op == BinaryOp::kShl ? b_.CreateShl(a, count)
                       : is_signed          ? b_.CreateAShr(a, count)
                                            : b_.CreateLShr(a, count);
      return b_.CreateSelect(in_range, shifted, zero);
    }
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "unknown binary operator");
}

// The processor's minimum and maximum, as a comparison and a selection, return the second operand
// if one is NaN. So an operand that is known to be a number comes first. Otherwise, the second
// operand of an update, the new value, is tested for NaN: this test does not delay the
// accumulator's next update. All bits set encode a NaN, which saves a selection where vector
// comparisons return vectors.
Value* ValueEmitter::extremum(BinaryOp op, DType dtype, Value* a, Value* b) {
  const BinaryOp wins = op == BinaryOp::kMin ? BinaryOp::kLt : BinaryOp::kGt;
  if (!ir::is_float(dtype)) return b_.CreateSelect(comparison(wins, dtype, a, b), a, b);
  if (is_infinite(a, op == BinaryOp::kMax)) return b;
  if (is_infinite(b, op == BinaryOp::kMax)) return a;
  if (is_number(a)) return b_.CreateSelect(comparison(wins, dtype, a, b), a, b);
  Value* larger = b_.CreateSelect(comparison(wins, dtype, b, a), b, a);
  if (is_number(b)) return larger;
  llvm::Type* type = a->getType();
  if (!type->isVectorTy()) return b_.CreateSelect(b_.CreateFCmpUNO(b, b), b, larger);
  if (context_.traits.mask_registers) return b_.CreateSelect(b_.CreateFCmpORD(b, b), larger, b);
  llvm::Type* bits = like(b_.getIntNTy(type->getScalarSizeInBits()), type);
  Value* nan = b_.CreateSExt(b_.CreateFCmpUNO(b, b), bits);
  return b_.CreateBitCast(b_.CreateOr(b_.CreateBitCast(larger, bits), nan), type);
}

// Division by zero gives 0, and the smallest value divided by -1 wraps. Constant divisors need none
// of the checks.
Value* ValueEmitter::integer_division(BinaryOp op, bool is_signed, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  const llvm::APInt* known = nullptr;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(b)) {
    const llvm::Constant* scalar = type->isVectorTy() ? c->getSplatValue() : c;
    if (const auto* imm = llvm::dyn_cast_or_null<llvm::ConstantInt>(scalar)) known = &imm->getValue();
  }
  Value* nonzero = nullptr;
  Value* minus_one = nullptr;
  Value* divisor = b;
  if (known != nullptr) {
    if (known->isZero()) return zero;
    if (is_signed && known->isAllOnes()) return op == BinaryOp::kFloorMod ? zero : b_.CreateNeg(a);
  } else {
    nonzero = b_.CreateICmpNE(b, zero);
    Value* bad = b_.CreateNot(nonzero);
    if (is_signed) {
      minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
      bad = b_.CreateOr(bad, minus_one);
    }
    divisor = b_.CreateSelect(bad, llvm::ConstantInt::get(type, 1), b);
  }
  Value* result = nullptr;
  if (!is_signed) {
    result = op == BinaryOp::kFloorMod ? b_.CreateURem(a, divisor) : b_.CreateUDiv(a, divisor);
  } else if (op == BinaryOp::kDiv) {
    result = b_.CreateSDiv(a, divisor);
  } else if (known != nullptr && known->isPowerOf2() && known->isStrictlyPositive()) {
    // Arithmetic shifts and masks round down, as floor division does.
    result = op == BinaryOp::kFloorMod ? b_.CreateAnd(a, llvm::ConstantInt::get(type, *known - 1))
                                       : b_.CreateAShr(a, llvm::ConstantInt::get(type, known->logBase2()));
  } else {
    Value* quotient = b_.CreateSDiv(a, divisor);
    Value* rest = b_.CreateSub(a, b_.CreateMul(quotient, divisor));
    Value* signs_differ = b_.CreateICmpSLT(b_.CreateXor(rest, divisor), zero);
    Value* adjust = b_.CreateAnd(b_.CreateICmpNE(rest, zero), signs_differ);
    result = op == BinaryOp::kFloorMod ? b_.CreateSelect(adjust, b_.CreateAdd(rest, divisor), rest)
                                       : b_.CreateSub(quotient, b_.CreateZExt(adjust, type));
  }
  if (minus_one != nullptr)
    result = b_.CreateSelect(minus_one, op == BinaryOp::kFloorMod ? zero : b_.CreateNeg(a), result);
  if (nonzero != nullptr) result = b_.CreateSelect(nonzero, result, zero);
  return result;
}

}  // namespace tensorsmith::codegen
