// The column in which an operation counts, as in TVM's MathOpCounter.
#pragma once

#include "feature/store_collector.h"
#include "ir/expr.h"

namespace tensorsmith::feature {

inline void count_unary(ir::UnaryOp op, ir::DType dtype, OpCounts& ops) {
  switch (op) {
    case ir::UnaryOp::kNeg:  // TVM writes 0 - x
      return ops.add("addsub", ir::is_float(dtype));
    case ir::UnaryOp::kNot:
      ++ops["bool_op"];
      return;
    case ir::UnaryOp::kBitNot:  // a call in TVM
      return ops.add("mathfunc", false);
  }
}

inline void count_binary(ir::BinaryOp op, ir::DType operand, OpCounts& ops) {
  const bool is_float = ir::is_float(operand);
  switch (op) {
    case ir::BinaryOp::kAdd:
    case ir::BinaryOp::kSub:
      return ops.add("addsub", is_float);
    case ir::BinaryOp::kMul:
      return ops.add("mul", is_float);
    case ir::BinaryOp::kDiv:
    case ir::BinaryOp::kFloorDiv:
    case ir::BinaryOp::kFloorMod:
      return ops.add("divmod", is_float);
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
    case ir::BinaryOp::kEq:
    case ir::BinaryOp::kNe:
    case ir::BinaryOp::kLt:
    case ir::BinaryOp::kLe:
    case ir::BinaryOp::kGt:
    case ir::BinaryOp::kGe:
      return ops.add("cmp", is_float);
    case ir::BinaryOp::kAnd:
    case ir::BinaryOp::kOr:
      ++ops["bool_op"];
      return;
    case ir::BinaryOp::kBitAnd:
    case ir::BinaryOp::kBitOr:
    case ir::BinaryOp::kBitXor:
    case ir::BinaryOp::kShl:
    case ir::BinaryOp::kShr:  // calls in TVM
      return ops.add("mathfunc", false);
  }
}

// Padding is select(condition, A[i], 0). TVM writes it as a call of if_then_else, which counts as a
// math function.
inline void count_select(const ir::Select& select, ir::DType dtype, OpCounts& ops) {
  const auto constant = [](const ir::Expr& e) {
    return ir::as<ir::IntImm>(e) != nullptr || ir::as<ir::FloatImm>(e) != nullptr;
  };
  const bool guarded_read = (ir::as<ir::Load>(select.a) != nullptr && constant(select.b)) ||
                            (ir::as<ir::Load>(select.b) != nullptr && constant(select.a));
  if (guarded_read) {
    ops.add("mathfunc", ir::is_float(dtype));
  } else {
    ++ops["select_op"];
  }
}

}  // namespace tensorsmith::feature
