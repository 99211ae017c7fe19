// Packed elements (four bytes or two bf16 in 32 bits): loaded as one word if they are adjacent in
// memory; and sums of their products.
#include <algorithm>

#include "codegen/llvm/expression_emitter.h"

namespace tensorsmith::codegen {

using llvm::Value;

namespace {

// One byte of a word: i32(u8(load)) << shift.
struct WordPart {
  const ir::Load* load = nullptr;
  int64_t shift = 0;
};

// Collects the terms of a | b | c | d, if all are bytes of a word.
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

std::optional<Val> ExpressionEmitter::try_word(const ir::Binary& op) {
  if (op.op != ir::BinaryOp::kBitOr) return {};
  llvm::SmallVector<WordPart, 4> parts;
  if (!collect_bytes(op.a, parts) || !collect_bytes(op.b, parts) || parts.size() != 4) return {};
  std::sort(parts.begin(), parts.end(),
            [](const WordPart& x, const WordPart& y) { return x.shift < y.shift; });
  const ir::Load* loads[4];
  for (size_t j = 0; j < 4; ++j) {
    if (parts[j].shift != static_cast<int64_t>(8 * j)) return {};
    loads[j] = parts[j].load;
  }
  return memory_.load_word(loads);
}

// Packs floats that have been rounded to bf16 already: their upper halves.
Val ExpressionEmitter::eval_pair(const ir::Call& call) {
  const ir::Load* loads[] = {ir::as<ir::Load>(call.args[0]), ir::as<ir::Load>(call.args[1])};
  if (loads[0] != nullptr && loads[1] != nullptr) {
    if (const std::optional<Val> word = memory_.load_word(loads)) return *word;
  }
  Val low = eval(call.args[0]);
  Val high = eval(call.args[1]);
  const bool vectors = values_.unify(low, high);
  llvm::Type* i32 = ValueEmitter::like(b_.getInt32Ty(), low.value->getType());
  const auto bits = [&](const Val& v) { return b_.CreateBitCast(v.value, i32); };
  Value* upper = b_.CreateAnd(bits(high), llvm::ConstantInt::get(i32, 0xffff0000U));
  return {b_.CreateOr(b_.CreateLShr(bits(low), 16), upper), !vectors};
}

Val ExpressionEmitter::eval_dot(const ir::Call& call, const Val* sum) {
  const Val a = eval(call.args[0]);
  const Val b = eval(call.args[1]);
  return dots_.dot(call.intrinsic, a, b, sum);
}

// Handles a + dot(x, y) and dot(x, y) + a.
std::optional<Val> ExpressionEmitter::try_dot(const ir::Binary& op) {
  if (op.op != ir::BinaryOp::kAdd) return {};
  const auto call = [](const ir::Expr& e) -> const ir::Call* {
    const auto* c = ir::as<ir::Call>(e);
    return c != nullptr && ir::is_dot(c->intrinsic) ? c : nullptr;
  };
  const ir::Call* right = call(op.b);
  const ir::Call* product = right != nullptr ? right : call(op.a);
  if (product == nullptr) return {};
  const Val sum = eval(right != nullptr ? op.a : op.b);
  return eval_dot(*product, &sum);
}

}  // namespace tensorsmith::codegen
