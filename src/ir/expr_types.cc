#include "ir/expr_types.h"

namespace tensorsmith::ir {

namespace {

std::string quoted(std::string_view op) { return "'" + std::string(op) + "'"; }
std::string name(DType t) { return std::string(to_string(t)); }

}  // namespace

std::optional<std::string> type_error(UnaryOp op, DType a) {
  switch (op) {
    case UnaryOp::kNeg:
      if (a == DType::kBool) return "negation of a bool";
      break;
    case UnaryOp::kNot:
      if (a != DType::kBool) return "logical not of a number (" + name(a) + ")";
      break;
    case UnaryOp::kBitNot:
      if (!is_int(a)) return "bitwise not needs an integer, not " + name(a);
      break;
  }
  return std::nullopt;
}

std::optional<std::string> type_error(BinaryOp op, DType a, DType b) {
  const std::string_view symbol = to_string(op);
  if (a != b) return "operands of " + quoted(symbol) + " have dtypes " + name(a) + " and " + name(b);
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      if (a == DType::kBool) return quoted(symbol) + " needs numbers, not bool";
      break;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      if (!is_int(a)) return quoted(symbol) + " needs integers, not " + name(a);
      break;
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      if (a != DType::kBool) return quoted(symbol) + " needs bool operands, not " + name(a);
      break;
    case BinaryOp::kEq:
    case BinaryOp::kNe:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
      break;
  }
  return std::nullopt;
}

std::optional<std::string> type_error(Intrinsic intrinsic, DType a, DType b) {
  if (a != b)
    return "arguments of " + quoted(to_string(intrinsic)) + " have dtypes " + name(a) + " and " + name(b);
  const bool words = is_dot(intrinsic);
  const bool integers =
      intrinsic == Intrinsic::kAbs || intrinsic == Intrinsic::kSign || intrinsic == Intrinsic::kPow;
  const bool defined = words                                ? a == DType::kI32
                       : intrinsic == Intrinsic::kPair      ? a == DType::kBF16
                       : intrinsic == Intrinsic::kRoundTf32 ? a == DType::kF32
                                                            : is_float(a) || (integers && is_int(a));
  if (defined) return std::nullopt;
  return quoted(to_string(intrinsic)) + " is not defined for " + name(a);
}

std::optional<std::string> select_type_error(DType condition, DType a, DType b) {
  if (condition != DType::kBool) return "the condition of select is " + name(condition) + ", not bool";
  if (a != b) return "the sides of select have dtypes " + name(a) + " and " + name(b);
  return std::nullopt;
}

}  // namespace tensorsmith::ir
