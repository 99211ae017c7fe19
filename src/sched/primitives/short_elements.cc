#include "sched/primitives/short_elements.h"

namespace tensorsmith::sched::primitives {

using ir::DType;
using ir::Expr;

namespace {

bool is_zero(const Expr& e) {
  const auto* imm = ir::as<ir::FloatImm>(e);
  return imm != nullptr ? imm->value == 0 : ir::is_int_value(e, 0);
}

// Returns the expression of the element's dtype that z is a cast of.
Expr narrow(const Expr& z, DType dtype) {
  if (!z.defined()) return ir::make_const(dtype, 0);
  if (const auto* imm = ir::as<ir::IntImm>(z)) {
    const Expr narrowed = ir::int_imm(dtype, imm->value);
    return ir::as_int(narrowed) == imm->value ? narrowed : Expr();
  }
  const auto* cast = ir::as<ir::Cast>(z);
  return cast != nullptr && cast->a.dtype() == dtype ? cast->a : Expr();
}

}  // namespace

bool is_element(DType dtype, DType sum) {
  if (sum == DType::kF32) return dtype == DType::kBF16;
  return sum == DType::kI32 && (dtype == DType::kI8 || dtype == DType::kU8);
}

std::optional<Centered> take_apart(const Expr& e) {
  if (const auto* cast = ir::as<ir::Cast>(e)) {
    if (!is_element(cast->a.dtype(), e.dtype())) return std::nullopt;
    return Centered{cast->a, {}};
  }
  if (const auto* op = ir::as<ir::Binary>(e); op != nullptr && e.dtype() == DType::kI32) {
    const auto imm = ir::as_int(op->b);
    const bool adds = op->op == ir::BinaryOp::kAdd && imm.has_value();
    if (!adds && op->op != ir::BinaryOp::kSub) return std::nullopt;
    auto inner = take_apart(op->a);
    if (!inner || inner->zero.defined()) return std::nullopt;
    inner->zero = adds ? ir::int_imm(DType::kI32, -*imm) : op->b;
    return inner;
  }
  if (const auto* select = ir::as<ir::Select>(e)) {
    if (!is_zero(select->b)) return std::nullopt;
    auto inner = take_apart(select->a);
    if (!inner) return std::nullopt;
    const Expr fill = narrow(inner->zero, inner->raw.dtype());
    if (!fill.defined()) return std::nullopt;
    inner->raw = ir::select(select->condition, inner->raw, fill);
    return inner;
  }
  return std::nullopt;
}

}  // namespace tensorsmith::sched::primitives
