// Expressions. Scalars and lane vectors share the code: LLVM's builder does not care.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cmath>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/math.h"
#include "ir/analysis.h"
#include "ir/structural.h"

namespace tensorsmith::codegen {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using llvm::Value;

namespace {

// Work of an expression that is evaluated although its result may be thrown away.
int64_t cost_of(const Expr& e) {
  int64_t cost = 0;
  ir::for_each_expr(e, [&](const Expr& x) {
    ir::visit(
        ir::overloaded{[&](const ir::IntImm&) {}, [&](const ir::FloatImm&) {}, [&](const ir::VarRef&) {},
                       [&](const ir::Unary&) { cost += 1; }, [&](const ir::Binary&) { cost += 1; },
                       [&](const ir::Select&) { cost += 1; }, [&](const ir::Cast&) { cost += 1; },
                       [&](const ir::Call&) { cost += 20; }, [&](const ir::Load&) { cost += 4; }},
        x);
  });
  return cost;
}
constexpr int64_t kBranchCost = 32;

bool is_zero(const Expr& e) {
  if (const auto* f = ir::as<ir::FloatImm>(e)) return f->value == 0 && !std::signbit(f->value);
  return ir::is_int_value(e, 0);
}

// a < c for a constant c, else null.
const ir::Binary* upper_limit(const Expr& e) {
  const auto* op = ir::as<ir::Binary>(e);
  return op != nullptr && op->op == BinaryOp::kLt && ir::as_int(op->b) ? op : nullptr;
}

// Adds the conjuncts of a condition to others; of two upper limits of one value the lower remains.
void add_conjuncts(const Expr& e, std::vector<Expr>& all) {
  if (const auto* op = ir::as<ir::Binary>(e); op != nullptr && op->op == BinaryOp::kAnd) {
    add_conjuncts(op->a, all);
    add_conjuncts(op->b, all);
    return;
  }
  if (const ir::Binary* limit = upper_limit(e)) {
    for (Expr& other : all) {
      const ir::Binary* known = upper_limit(other);
      if (known == nullptr || !ir::structural_equal(known->a, limit->a)) continue;
      if (*ir::as_int(limit->b) < *ir::as_int(known->b)) other = e;
      return;
    }
  }
  all.push_back(e);
}

// Zeros around zeros, as when a padded tensor is padded again, in one: c ? (d ? x : 0) : 0 => c && d ? x : 0.
ir::Select nested_zeros(const ir::Select& select) {
  const auto* inner = ir::as<ir::Select>(select.a);
  if (inner == nullptr || !is_zero(select.b) || !is_zero(inner->b) || !ir::loads_of(inner->condition).empty())
    return select;
  std::vector<Expr> all;
  add_conjuncts(select.condition, all);
  add_conjuncts(inner->condition, all);
  Expr both = all.front();
  for (size_t i = 1; i < all.size(); ++i) both = both && all[i];
  return nested_zeros({both, inner->a, inner->b});
}

}  // namespace

// The constant that is in each lane, or null.
const llvm::ConstantFP* Emitter::constant_float(const Value* v) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant != nullptr && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  return llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
}

bool Emitter::is_number(const Value* v) {
  const llvm::ConstantFP* number = constant_float(v);
  return number != nullptr && !number->getValueAPF().isNaN();
}

bool Emitter::is_infinite(const Value* v, bool negative) {
  const llvm::ConstantFP* number = constant_float(v);
  return number != nullptr && number->getValueAPF().isInfinity() && number->isNegative() == negative;
}

Value* Emitter::broadcast(Val v) {
  return v.uniform ? b_.CreateVectorSplat(static_cast<unsigned>(lanes_), v.value) : v.value;
}

bool Emitter::unify(Val& a, Val& b) {
  if (a.uniform && b.uniform) return false;
  a = {broadcast(a), false};
  b = {broadcast(b), false};
  return true;
}

Val Emitter::eval(const Expr& e) {
  if (e.dtype() == DType::kI64) return materialize(index(e));
  return eval_generic(e);
}

Val Emitter::eval_generic(const Expr& e) {
  if (const Val* known = evaluated_.values.find(e)) return *known;
  const Val v = eval_node(e);
  evaluated_.values.remember(e, v);
  return v;
}

Val Emitter::eval_node(const Expr& e) {
  const DType dtype = e.dtype();
  return ir::visit(
      ir::overloaded{
          [&](const ir::IntImm& imm) -> Val {
            return {llvm::ConstantInt::get(compute_type(dtype), static_cast<uint64_t>(imm.value)), true};
          },
          [&](const ir::FloatImm& imm) -> Val {
            return {llvm::ConstantFP::get(compute_type(dtype), imm.value), true};
          },
          [&](const ir::VarRef& ref) -> Val {
            Val v = materialize(f_.vars.at(ref.var.get()));
            v.value = convert(DType::kI64, dtype, v.value);
            return v;
          },
          [&](const ir::Unary& op) { return eval_unary(dtype, op.op, op.a); },
          [&](const ir::Binary& op) { return eval_binary(dtype, op); },
          [&](const ir::Select& select) { return eval_select(select); },
          [&](const ir::Cast& cast) -> Val {
            Val v = eval(cast.a);
            v.value = convert(cast.a.dtype(), dtype, v.value);
            return v;
          },
          [&](const ir::Call& call) { return eval_call(dtype, call); },
          [&](const ir::Load& l) { return load(l.buffer, l.indices); },
      },
      e);
}

Val Emitter::eval_unary(DType dtype, ir::UnaryOp op, const Expr& a) {
  Val v = eval(a);
  switch (op) {
    case ir::UnaryOp::kNeg:
      v.value = ir::is_float(dtype) ? b_.CreateFNeg(v.value) : b_.CreateNeg(v.value);
      return v;
    case ir::UnaryOp::kNot:
    case ir::UnaryOp::kBitNot:
      v.value = b_.CreateNot(v.value);
      return v;
  }
  throw_internal_error(__FILE__, __LINE__, "unknown unary operator");
}

// a * b + c, c + a * b, a * b - c and c - a * b, when contraction is allowed and the machine has it.
bool Emitter::try_fma(DType dtype, const ir::Binary& op, Val& out) {
  if (!options_.fast_math_contract || !traits_.fma) return false;
  if (dtype != DType::kF32 && dtype != DType::kF64) return false;
  if (op.op != BinaryOp::kAdd && op.op != BinaryOp::kSub) return false;
  const auto product = [](const Expr& e) -> const ir::Binary* {
    const auto* p = ir::as<ir::Binary>(e);
    return p != nullptr && p->op == BinaryOp::kMul ? p : nullptr;
  };
  const ir::Binary* right = product(op.b);
  const ir::Binary* left = right == nullptr ? product(op.a) : nullptr;
  if (right == nullptr && left == nullptr) return false;
  const ir::Binary& mul = right != nullptr ? *right : *left;
  Val c = eval(right != nullptr ? op.a : op.b);
  Val x = eval(mul.a);
  Val y = eval(mul.b);
  const bool vectors = !(c.uniform && x.uniform && y.uniform);
  if (vectors) {
    c = {broadcast(c), false};
    x = {broadcast(x), false};
    y = {broadcast(y), false};
  }
  if (op.op == BinaryOp::kSub) {
    if (right != nullptr) {
      x.value = b_.CreateFNeg(x.value);
    } else {
      c.value = b_.CreateFNeg(c.value);
    }
  }
  out = {b_.CreateIntrinsic(llvm::Intrinsic::fma, {c.value->getType()}, {x.value, y.value, c.value}),
         !vectors};
  return true;
}

Val Emitter::eval_binary(DType dtype, const ir::Binary& op) {
  Val out;
  if (try_fma(dtype, op, out) || try_dot(op, out) || try_word(op, out)) return out;
  const DType operand = op.a.dtype();
  if (ir::is_comparison(op.op) && operand == DType::kI64) return compare(op.op, index(op.a), index(op.b));
  Val a = eval(op.a);
  // Decided conjunctions need not look at their other side.
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(a.value); known != nullptr) {
    if (op.op == BinaryOp::kAnd) return known->isZero() ? a : eval(op.b);
    if (op.op == BinaryOp::kOr) return known->isZero() ? eval(op.b) : a;
  }
  Val b = eval(op.b);
  const bool vectors = unify(a, b);
  Value* v = ir::is_comparison(op.op) ? comparison(op.op, operand, a.value, b.value)
                                      : arithmetic(op.op, operand, a.value, b.value);
  return {v, !vectors};
}

Value* Emitter::comparison(BinaryOp op, DType dtype, Value* a, Value* b) {
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

Value* Emitter::arithmetic(BinaryOp op, DType dtype, Value* a, Value* b) {
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

// The processor's minimum and maximum, as comparison and selection, give the second operand where one is NaN.
// So one that is a number by itself stands first; else the second one of an update, the new value, is looked
// at: the accumulator's next update does not wait for that. All bits set are a NaN, which saves a selection where
// comparisons of vectors give vectors.
Value* Emitter::extremum(BinaryOp op, DType dtype, Value* a, Value* b) {
  const BinaryOp wins = op == BinaryOp::kMin ? BinaryOp::kLt : BinaryOp::kGt;
  if (!ir::is_float(dtype)) return b_.CreateSelect(comparison(wins, dtype, a, b), a, b);
  if (is_infinite(a, op == BinaryOp::kMax)) return b;
  if (is_infinite(b, op == BinaryOp::kMax)) return a;
  if (is_number(a)) return b_.CreateSelect(comparison(wins, dtype, a, b), a, b);
  Value* larger = b_.CreateSelect(comparison(wins, dtype, b, a), b, a);
  if (is_number(b)) return larger;
  llvm::Type* type = a->getType();
  if (!type->isVectorTy()) return b_.CreateSelect(b_.CreateFCmpUNO(b, b), b, larger);
  if (traits_.mask_registers) return b_.CreateSelect(b_.CreateFCmpORD(b, b), larger, b);
  llvm::Type* bits = like(b_.getIntNTy(type->getScalarSizeInBits()), type);
  Value* nan = b_.CreateSExt(b_.CreateFCmpUNO(b, b), bits);
  return b_.CreateBitCast(b_.CreateOr(b_.CreateBitCast(larger, bits), nan), type);
}

// By zero gives 0, the smallest value by -1 wraps. Constant divisors need none of the checks.
Value* Emitter::integer_division(BinaryOp op, bool is_signed, Value* a, Value* b) {
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
    // Rounding down is what shifts and masks do.
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

// The conjuncts of a condition, those that differ between lanes apart from the uniform ones. Null: true.
Emitter::Condition Emitter::eval_condition(const Expr& e) {
  if (const auto* op = ir::as<ir::Binary>(e); op != nullptr && op->op == BinaryOp::kAnd) {
    const Condition a = eval_condition(op->a);
    if (a.never) return a;
    const Condition b = eval_condition(op->b);
    if (b.never) return b;
    const auto both = [&](Value* x, Value* y) {
      return x == nullptr ? y : y == nullptr ? x : b_.CreateAnd(x, y);
    };
    return {both(a.uniform, b.uniform), both(a.lanes, b.lanes), false};
  }
  const Val v = eval(e);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(v.value))
    return {nullptr, nullptr, known->isZero()};
  return v.uniform ? Condition{v.value, nullptr, false} : Condition{nullptr, v.value, false};
}

// Only the chosen side may read memory. A condition that differs between lanes becomes a mask of the side's
// loads; a uniform one becomes a branch if a side is expensive, else the loads' addresses are made safe.
Val Emitter::eval_select(const ir::Select& outer) {
  const ir::Select select = nested_zeros(outer);
  const Condition c = eval_condition(select.condition);
  if (c.never) return eval(select.b);
  if (c.uniform == nullptr && c.lanes == nullptr) return eval(select.a);
  const auto under = [&](Value* guard, Value* mask, const auto& body) {
    const EvaluationScope scope(evaluated_);
    Value* guard_before = guard_;
    Value* mask_before = mask_;
    const auto both = [&](Value* x, Value* y) {
      return x == nullptr ? y : y == nullptr ? x : b_.CreateAnd(x, y);
    };
    guard_ = both(guard_before, guard);
    mask_ = both(mask_before, mask);
    const Val v = body();
    guard_ = guard_before;
    mask_ = mask_before;
    return v;
  };
  const bool expensive = cost_of(select.a) > kBranchCost || cost_of(select.b) > kBranchCost;
  if (c.lanes == nullptr && expensive) return eval_branch(c.uniform, select.a, select.b);
  ZeroRequest zero{c.lanes != nullptr, false};
  const auto* direct = ir::as<ir::Load>(select.a);
  Val a = under(c.uniform, c.lanes, [&] {
    return direct != nullptr && is_zero(select.b) ? load(direct->buffer, direct->indices, &zero)
                                                  : eval(select.a);
  });
  if (zero.granted) return a;
  if (c.lanes == nullptr) {
    Val b = under(b_.CreateNot(c.uniform), nullptr, [&] { return eval(select.b); });
    const bool vectors = unify(a, b);
    return {b_.CreateSelect(c.uniform, a.value, b.value), !vectors};
  }
  Value* mask = c.uniform == nullptr ? c.lanes : b_.CreateAnd(c.lanes, broadcast({c.uniform, true}));
  const Val b = under(nullptr, b_.CreateNot(mask), [&] { return eval(select.b); });
  return {b_.CreateSelect(mask, broadcast(a), broadcast(b)), false};
}

Val Emitter::eval_branch(Value* condition, const Expr& a, const Expr& b) {
  llvm::BasicBlock* then_block = new_block("select.a");
  llvm::BasicBlock* else_block = new_block("select.b");
  llvm::BasicBlock* join = new_block("select.end");
  b_.CreateCondBr(condition, then_block, else_block);
  const auto in_block = [&](llvm::BasicBlock* block, const Expr& e) {
    const EvaluationScope scope(evaluated_);
    b_.SetInsertPoint(block);
    return eval(e);
  };
  Val x = in_block(then_block, a);
  llvm::BasicBlock* then_end = b_.GetInsertBlock();
  Val y = in_block(else_block, b);
  llvm::BasicBlock* else_end = b_.GetInsertBlock();
  const bool vectors = !(x.uniform && y.uniform);
  b_.SetInsertPoint(then_end);
  if (vectors) x = {broadcast(x), false};
  b_.CreateBr(join);
  b_.SetInsertPoint(else_end);
  if (vectors) y = {broadcast(y), false};
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* phi = b_.CreatePHI(x.value->getType(), 2);
  phi->addIncoming(x.value, then_end);
  phi->addIncoming(y.value, else_end);
  return {phi, !vectors};
}

Val Emitter::eval_call(DType dtype, const ir::Call& call) {
  if (call.intrinsic == ir::Intrinsic::kDot4 || call.intrinsic == ir::Intrinsic::kDot2)
    return dot(call, nullptr);
  if (call.intrinsic == ir::Intrinsic::kPair) return pair(call);
  Val a = eval(call.args[0]);
  Val b;
  bool vectors = !a.uniform;
  if (call.args.size() > 1) {
    b = eval(call.args[1]);
    vectors = unify(a, b);
  }
  const DType operand = call.args[0].dtype();
  if (!ir::is_float(operand)) {
    Value* zero = llvm::Constant::getNullValue(a.value->getType());
    const bool is_signed = ir::is_signed_int(operand);
    if (call.intrinsic == ir::Intrinsic::kAbs) {
      if (is_signed)
        a.value = b_.CreateSelect(b_.CreateICmpSLT(a.value, zero), b_.CreateNeg(a.value), a.value);
      return a;
    }
    if (call.intrinsic == ir::Intrinsic::kPow)
      return {MathEmitter(b_, traits_.fma).integer_pow(a.value, b.value, is_signed), !vectors};
    TS_CHECK(call.intrinsic == ir::Intrinsic::kSign, "intrinsic is not defined for integers");
    Value* positive = b_.CreateZExt(b_.CreateICmpNE(a.value, zero), a.value->getType());
    if (is_signed)
      positive = b_.CreateSelect(b_.CreateICmpSLT(a.value, zero),
                                 llvm::Constant::getAllOnesValue(a.value->getType()), positive);
    return {positive, !vectors};
  }
  MathEmitter math(b_, traits_.fma);
  Value* v = math.intrinsic(call.intrinsic, a.value, b.value);
  return {round_to(dtype, v), !vectors};
}

}  // namespace tensorsmith::codegen
