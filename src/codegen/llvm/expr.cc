// Emission of expressions. LLVM's builder treats scalars and lane vectors alike, so they share the
// code.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cmath>

#include "codegen/llvm/expression_emitter.h"
#include "codegen/llvm/math.h"
#include "ir/analysis.h"
#include "ir/structural.h"

namespace tensorsmith::codegen {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using llvm::Value;

namespace {

// Returns the cost of evaluating an expression whose result may be discarded.
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

bool is_positive_zero(const Expr& e) {
  if (const auto* f = ir::as<ir::FloatImm>(e)) return f->value == 0 && !std::signbit(f->value);
  return ir::is_int_value(e, 0);
}

// Returns the comparison if e is a < c with a constant c, else null.
const ir::Binary* upper_limit(const Expr& e) {
  const auto* op = ir::as<ir::Binary>(e);
  return op != nullptr && op->op == BinaryOp::kLt && ir::as_int(op->b) ? op : nullptr;
}

// Adds the conjuncts of a condition to `all`; of two upper limits of the same value, only the lower
// is kept.
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

// Merges nested zero padding, as when a padded tensor is padded again: c ? (d ? x : 0) : 0 => c &&
// d ? x : 0.
ir::Select nested_zeros(const ir::Select& select) {
  const auto* inner = ir::as<ir::Select>(select.a);
  if (inner == nullptr || !is_positive_zero(select.b) || !is_positive_zero(inner->b) ||
      !ir::loads_of(inner->condition).empty())
    return select;
  std::vector<Expr> all;
  add_conjuncts(select.condition, all);
  add_conjuncts(inner->condition, all);
  Expr both = all.front();
  for (size_t i = 1; i < all.size(); ++i) both = both && all[i];
  return nested_zeros({both, inner->a, inner->b});
}

}  // namespace

Val ExpressionEmitter::eval(const Expr& e) {
  if (e.dtype() == DType::kI64) return indices_.materialize(indices_.index(e));
  return eval_generic(e);
}

Val ExpressionEmitter::eval_generic(const Expr& e) {
  if (const Val* known = context_.evaluated.values.find(e)) return *known;
  const Val v = eval_node(e);
  context_.evaluated.values.remember(e, v);
  return v;
}

Val ExpressionEmitter::eval_node(const Expr& e) {
  const DType dtype = e.dtype();
  return ir::visit(
      ir::overloaded{
          [&](const ir::IntImm& imm) -> Val {
            return {llvm::ConstantInt::get(values_.compute_type(dtype), static_cast<uint64_t>(imm.value)),
                    true};
          },
          [&](const ir::FloatImm& imm) -> Val {
            return {llvm::ConstantFP::get(values_.compute_type(dtype), imm.value), true};
          },
          [&](const ir::VarRef& ref) -> Val {
            Val v = indices_.materialize(indices_.value_of(ref.var));
            v.value = values_.convert(DType::kI64, dtype, v.value);
            return v;
          },
          [&](const ir::Unary& op) { return eval_unary(dtype, op.op, op.a); },
          [&](const ir::Binary& op) { return eval_binary(dtype, op); },
          [&](const ir::Select& select) { return eval_select(select); },
          [&](const ir::Cast& cast) -> Val {
            Val v = eval(cast.a);
            v.value = values_.convert(cast.a.dtype(), dtype, v.value);
            return v;
          },
          [&](const ir::Call& call) { return eval_call(dtype, call); },
          [&](const ir::Load& l) { return memory_.load(l.buffer, l.indices); },
      },
      e);
}

Val ExpressionEmitter::eval_unary(DType dtype, ir::UnaryOp op, const Expr& a) {
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

// Handles a * b + c, c + a * b, a * b - c and c - a * b, if contraction is allowed and the machine
// has FMA instructions.
std::optional<Val> ExpressionEmitter::try_fma(DType dtype, const ir::Binary& op) {
  if (!contract_ || !context_.traits.fma) return {};
  if (dtype != DType::kF32 && dtype != DType::kF64) return {};
  if (op.op != BinaryOp::kAdd && op.op != BinaryOp::kSub) return {};
  const auto product = [](const Expr& e) -> const ir::Binary* {
    const auto* p = ir::as<ir::Binary>(e);
    return p != nullptr && p->op == BinaryOp::kMul ? p : nullptr;
  };
  const ir::Binary* right = product(op.b);
  const ir::Binary* left = right == nullptr ? product(op.a) : nullptr;
  if (right == nullptr && left == nullptr) return {};
  const ir::Binary& mul = right != nullptr ? *right : *left;
  Val c = eval(right != nullptr ? op.a : op.b);
  Val x = eval(mul.a);
  Val y = eval(mul.b);
  const bool vectors = !(c.uniform && x.uniform && y.uniform);
  if (vectors) {
    c = {values_.broadcast(c), false};
    x = {values_.broadcast(x), false};
    y = {values_.broadcast(y), false};
  }
  if (op.op == BinaryOp::kSub) {
    if (right != nullptr) {
      x.value = b_.CreateFNeg(x.value);
    } else {
      c.value = b_.CreateFNeg(c.value);
    }
  }
  return Val{b_.CreateIntrinsic(llvm::Intrinsic::fma, {c.value->getType()}, {x.value, y.value, c.value}),
             !vectors};
}

// Handles logistic functions, c / (1 + e^x): the sum absorbs the error of the cheaper exponential
// at the ends of its range.
std::optional<Val> ExpressionEmitter::try_logistic(DType dtype, const ir::Binary& op) {
  if (op.op != BinaryOp::kDiv || dtype != DType::kF32) return {};
  const auto* numerator = ir::as<ir::FloatImm>(op.a);
  const auto* sum = ir::as<ir::Binary>(op.b);
  if (numerator == nullptr || sum == nullptr || sum->op != BinaryOp::kAdd) return {};
  const bool first = ir::as<ir::FloatImm>(sum->a) != nullptr;
  const auto* one = ir::as<ir::FloatImm>(first ? sum->a : sum->b);
  const auto* call = ir::as<ir::Call>(first ? sum->b : sum->a);
  if (one == nullptr || one->value != 1 || call == nullptr || call->intrinsic != ir::Intrinsic::kExp)
    return {};
  const Val x = eval(call->args[0]);
  llvm::Type* type = x.value->getType();
  Value* e = MathEmitter(b_, context_.traits.fma).exp_without_ends(x.value);
  e = b_.CreateFAdd(e, llvm::ConstantFP::get(type, 1));
  return Val{b_.CreateFDiv(llvm::ConstantFP::get(type, numerator->value), e), x.uniform};
}

// Handles select(x < c, 0, e^x) in f32 if c excludes subnormal results.
std::optional<Val> ExpressionEmitter::try_exp_or_zero(const ir::Select& select) {
  const auto* less = ir::as<ir::Binary>(select.condition);
  const auto* call = ir::as<ir::Call>(select.b);
  if (less == nullptr || less->op != BinaryOp::kLt || call == nullptr ||
      call->intrinsic != ir::Intrinsic::kExp || select.b.dtype() != DType::kF32 ||
      !is_positive_zero(select.a))
    return {};
  const auto* least = ir::as<ir::FloatImm>(less->b);
  if (least == nullptr || least->value < MathEmitter::kExpFrom ||
      !(less->a.same_as(call->args[0]) || ir::structural_equal(less->a, call->args[0])))
    return {};
  const Val x = eval(call->args[0]);
  llvm::Type* type = x.value->getType();
  Value* e = MathEmitter(b_, context_.traits.fma).exp_from(x.value);
  Value* none = b_.CreateFCmpOLT(x.value, llvm::ConstantFP::get(type, least->value));
  return Val{b_.CreateSelect(none, llvm::Constant::getNullValue(type), e), x.uniform};
}

Val ExpressionEmitter::eval_binary(DType dtype, const ir::Binary& op) {
  if (const std::optional<Val> logistic = try_logistic(dtype, op)) return *logistic;
  if (const std::optional<Val> fused = try_fma(dtype, op)) return *fused;
  if (const std::optional<Val> sum = try_dot(op)) return *sum;
  if (const std::optional<Val> word = try_word(op)) return *word;
  const DType operand = op.a.dtype();
  if (ir::is_comparison(op.op) && operand == DType::kI64)
    return indices_.compare(op.op, indices_.index(op.a), indices_.index(op.b));
  Val a = eval(op.a);
  // If the first side decides the conjunction or disjunction, the other side is not evaluated.
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(a.value); known != nullptr) {
    if (op.op == BinaryOp::kAnd) return known->isZero() ? a : eval(op.b);
    if (op.op == BinaryOp::kOr) return known->isZero() ? eval(op.b) : a;
  }
  Val b = eval(op.b);
  const bool vectors = values_.unify(a, b);
  Value* v = ir::is_comparison(op.op) ? values_.comparison(op.op, operand, a.value, b.value)
                                      : values_.arithmetic(op.op, operand, a.value, b.value);
  return {v, !vectors};
}

ExpressionEmitter::Condition ExpressionEmitter::eval_condition(const Expr& e) {
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
Val ExpressionEmitter::eval_select(const ir::Select& outer) {
  if (const std::optional<Val> exponential = try_exp_or_zero(outer)) return *exponential;
  const ir::Select select = nested_zeros(outer);
  const Condition c = eval_condition(select.condition);
  if (c.never) return eval(select.b);
  if (c.uniform == nullptr && c.lanes == nullptr) return eval(select.a);
  const auto under = [&](Value* guard, Value* mask, const auto& body) {
    const EvaluationScope scope(context_.evaluated);
    Value* guard_before = context_.guard;
    Value* mask_before = context_.mask;
    const auto both = [&](Value* x, Value* y) {
      return x == nullptr ? y : y == nullptr ? x : b_.CreateAnd(x, y);
    };
    context_.guard = both(guard_before, guard);
    context_.mask = both(mask_before, mask);
    const Val v = body();
    context_.guard = guard_before;
    context_.mask = mask_before;
    return v;
  };
  const bool expensive = cost_of(select.a) > kBranchCost || cost_of(select.b) > kBranchCost;
  if (c.lanes == nullptr && expensive) return eval_branch(c.uniform, select.a, select.b);
  MemoryEmitter::ZeroRequest zero{c.lanes != nullptr, false};
  const auto* direct = ir::as<ir::Load>(select.a);
  Val a = under(c.uniform, c.lanes, [&] {
    return direct != nullptr && is_positive_zero(select.b)
               ? memory_.load(direct->buffer, direct->indices, &zero)
               : eval(select.a);
  });
  if (zero.granted) return a;
  if (c.lanes == nullptr) {
    Val b = under(b_.CreateNot(c.uniform), nullptr, [&] { return eval(select.b); });
    const bool vectors = values_.unify(a, b);
    return {b_.CreateSelect(c.uniform, a.value, b.value), !vectors};
  }
  Value* mask = c.uniform == nullptr ? c.lanes : b_.CreateAnd(c.lanes, values_.broadcast({c.uniform, true}));
  const Val b = under(nullptr, b_.CreateNot(mask), [&] { return eval(select.b); });
  return {b_.CreateSelect(mask, values_.broadcast(a), values_.broadcast(b)), false};
}

Val ExpressionEmitter::eval_branch(Value* condition, const Expr& a, const Expr& b) {
  llvm::BasicBlock* then_block = context_.new_block("select.a");
  llvm::BasicBlock* else_block = context_.new_block("select.b");
  llvm::BasicBlock* join = context_.new_block("select.end");
  b_.CreateCondBr(condition, then_block, else_block);
  const auto in_block = [&](llvm::BasicBlock* block, const Expr& e) {
    const EvaluationScope scope(context_.evaluated);
    b_.SetInsertPoint(block);
    return eval(e);
  };
  Val x = in_block(then_block, a);
  llvm::BasicBlock* then_end = b_.GetInsertBlock();
  Val y = in_block(else_block, b);
  llvm::BasicBlock* else_end = b_.GetInsertBlock();
  const bool vectors = !(x.uniform && y.uniform);
  b_.SetInsertPoint(then_end);
  if (vectors) x = {values_.broadcast(x), false};
  b_.CreateBr(join);
  b_.SetInsertPoint(else_end);
  if (vectors) y = {values_.broadcast(y), false};
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* phi = b_.CreatePHI(x.value->getType(), 2);
  phi->addIncoming(x.value, then_end);
  phi->addIncoming(y.value, else_end);
  return {phi, !vectors};
}

Val ExpressionEmitter::eval_call(DType dtype, const ir::Call& call) {
  if (ir::is_dot(call.intrinsic)) return eval_dot(call, nullptr);
  if (call.intrinsic == ir::Intrinsic::kPair) return eval_pair(call);
  Val a = eval(call.args[0]);
  Val b;
  bool vectors = !a.uniform;
  if (call.args.size() > 1) {
    b = eval(call.args[1]);
    vectors = values_.unify(a, b);
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
      return {MathEmitter(b_, context_.traits.fma).integer_pow(a.value, b.value, is_signed), !vectors};
    TS_CHECK(call.intrinsic == ir::Intrinsic::kSign, "intrinsic is not defined for integers");
    Value* positive = b_.CreateZExt(b_.CreateICmpNE(a.value, zero), a.value->getType());
    if (is_signed)
      positive = b_.CreateSelect(b_.CreateICmpSLT(a.value, zero),
                                 llvm::Constant::getAllOnesValue(a.value->getType()), positive);
    return {positive, !vectors};
  }
  MathEmitter math(b_, context_.traits.fma);
  Value* v = math.intrinsic(call.intrinsic, a.value, b.value);
  return {values_.round_to(dtype, v), !vectors};
}

}  // namespace tensorsmith::codegen
