#include "ir/expr.h"

#include <utility>

#include "ir/expr_types.h"
#include "ir/scalar.h"

namespace tensorsmith::ir {

namespace {

Expr make(DType dtype, ExprNode::Kind kind) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{dtype, std::move(kind)}));
}

int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}
int64_t saturating_add(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

// Folds identities that need no analysis; returns an undefined expression if none applies.
Expr fold_binary(BinaryOp op, const Expr& a, const Expr& b) {
  const IntImm* x = as<IntImm>(a);
  const IntImm* y = as<IntImm>(b);
  if (x != nullptr && y != nullptr) {
    const DType dtype = a.dtype();
    const Scalar r = eval_binary(op, {dtype, x->value, 0}, {dtype, y->value, 0});
    return int_imm(r.dtype, r.i);
  }
  if (y != nullptr) {
    switch (op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
      case BinaryOp::kBitOr:
      case BinaryOp::kBitXor:
      case BinaryOp::kShl:
      case BinaryOp::kShr:
        if (y->value == 0) return a;
        break;
      case BinaryOp::kMul:
      case BinaryOp::kDiv:
      case BinaryOp::kFloorDiv:
        if (y->value == 1) return a;
        break;
      case BinaryOp::kAnd:
        return y->value != 0 ? a : b;
      case BinaryOp::kOr:
        return y->value != 0 ? b : a;
      default:
        break;
    }
  }
  if (x != nullptr) {
    switch (op) {
      case BinaryOp::kAdd:
        if (x->value == 0) return b;
        break;
      case BinaryOp::kMul:
        if (x->value == 1) return b;
        break;
      case BinaryOp::kAnd:
        return x->value != 0 ? b : a;
      case BinaryOp::kOr:
        return x->value != 0 ? a : b;
      default:
        break;
    }
  }
  return {};
}

}  // namespace

Expr::Expr(int64_t index) : node_(std::make_shared<const ExprNode>(ExprNode{DType::kI64, IntImm{index}})) {}

DType Expr::dtype() const { return node_->dtype; }

Var::operator Expr() const {
  TS_CHECK(defined(), "an undefined variable used as an expression");
  return make(node_->dtype, VarRef{*this});
}

std::string_view to_string(MemoryScope scope) {
  switch (scope) {
    case MemoryScope::kGlobal:
      return "global";
    case MemoryScope::kShared:
      return "shared";
    case MemoryScope::kLocal:
      return "local";
  }
  return "?";
}

int64_t BufferNode::num_elements() const {
  int64_t n = 1;
  for (int64_t extent : shape) {
    if (extent == 0) return 0;
    n = saturating_mul(n, extent);
  }
  return n;
}

int64_t BufferNode::allocation_elements() const {
  if (strides.empty()) return num_elements();
  int64_t n = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    n = saturating_add(n, saturating_mul(shape[d] - 1, strides[d]));
  }
  return n;
}

std::vector<int64_t> BufferNode::effective_strides() const {
  if (!strides.empty()) return strides;
  std::vector<int64_t> out(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) out[d - 1] = saturating_mul(out[d], shape[d]);
  return out;
}

Buffer make_buffer(std::string name, DType dtype, std::vector<int64_t> shape, MemoryScope scope,
                   std::vector<int64_t> strides) {
  TS_CHECK(strides.empty() || strides.size() == shape.size(),
           "buffer '" + name + "': strides and shape differ");
  for (int64_t extent : shape) TS_CHECK(extent >= 0, "buffer '" + name + "': negative extent");
  for (int64_t stride : strides) TS_CHECK(stride >= 0, "buffer '" + name + "': negative stride");
  return std::make_shared<const BufferNode>(
      BufferNode{std::move(name), dtype, std::move(shape), std::move(strides), scope});
}

bool is_dot(Intrinsic intrinsic) {
  return intrinsic == Intrinsic::kDot4 || intrinsic == Intrinsic::kDot4Narrow ||
         intrinsic == Intrinsic::kDot2 || intrinsic == Intrinsic::kDot2I16;
}

int arity(Intrinsic intrinsic) {
  const bool binary = intrinsic == Intrinsic::kPow || intrinsic == Intrinsic::kFmod ||
                      intrinsic == Intrinsic::kPair || is_dot(intrinsic);
  return binary ? 2 : 1;
}

std::string_view to_string(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNeg:
      return "-";
    case UnaryOp::kNot:
      return "!";
    case UnaryOp::kBitNot:
      return "~";
  }
  return "?";
}

std::string_view to_string(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kFloorDiv:
      return "//";
    case BinaryOp::kFloorMod:
      return "%";
    case BinaryOp::kMin:
      return "min";
    case BinaryOp::kMax:
      return "max";
    case BinaryOp::kEq:
      return "==";
    case BinaryOp::kNe:
      return "!=";
    case BinaryOp::kLt:
      return "<";
    case BinaryOp::kLe:
      return "<=";
    case BinaryOp::kGt:
      return ">";
    case BinaryOp::kGe:
      return ">=";
    case BinaryOp::kAnd:
      return "&&";
    case BinaryOp::kOr:
      return "||";
    case BinaryOp::kBitAnd:
      return "&";
    case BinaryOp::kBitOr:
      return "|";
    case BinaryOp::kBitXor:
      return "^";
    case BinaryOp::kShl:
      return "<<";
    case BinaryOp::kShr:
      return ">>";
  }
  return "?";
}

std::string_view to_string(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::kAbs:
      return "abs";
    case Intrinsic::kSign:
      return "sign";
    case Intrinsic::kSqrt:
      return "sqrt";
    case Intrinsic::kExp:
      return "exp";
    case Intrinsic::kLog:
      return "log";
    case Intrinsic::kSin:
      return "sin";
    case Intrinsic::kCos:
      return "cos";
    case Intrinsic::kTan:
      return "tan";
    case Intrinsic::kAsin:
      return "asin";
    case Intrinsic::kAcos:
      return "acos";
    case Intrinsic::kAtan:
      return "atan";
    case Intrinsic::kSinh:
      return "sinh";
    case Intrinsic::kCosh:
      return "cosh";
    case Intrinsic::kTanh:
      return "tanh";
    case Intrinsic::kAsinh:
      return "asinh";
    case Intrinsic::kAcosh:
      return "acosh";
    case Intrinsic::kAtanh:
      return "atanh";
    case Intrinsic::kErf:
      return "erf";
    case Intrinsic::kFloor:
      return "floor";
    case Intrinsic::kCeil:
      return "ceil";
    case Intrinsic::kRound:
      return "round";
    case Intrinsic::kTrunc:
      return "trunc";
    case Intrinsic::kIsNan:
      return "isnan";
    case Intrinsic::kIsInf:
      return "isinf";
    case Intrinsic::kPow:
      return "pow";
    case Intrinsic::kFmod:
      return "fmod";
    case Intrinsic::kDot4:
      return "dot4";
    case Intrinsic::kDot2:
      return "dot2";
    case Intrinsic::kPair:
      return "pair";
    case Intrinsic::kDot2I16:
      return "dot2i16";
    case Intrinsic::kDot4Narrow:
      return "dot4narrow";
    case Intrinsic::kRoundTf32:
      return "round_tf32";
  }
  return "?";
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEq && op <= BinaryOp::kGe; }

Expr int_imm(DType dtype, int64_t value) {
  TS_CHECK(!is_float(dtype), "int_imm of a float dtype");
  return make(dtype, IntImm{scalar_int(dtype, value).i});
}

Expr float_imm(DType dtype, double value) {
  TS_CHECK(is_float(dtype), "float_imm of an integer dtype");
  return make(dtype, FloatImm{scalar_float(dtype, value).f});
}

Expr bool_imm(bool value) { return make(DType::kBool, IntImm{value ? 1 : 0}); }

Expr make_const(DType dtype, double value) {
  if (is_float(dtype)) return float_imm(dtype, value);
  return int_imm(dtype, eval_cast(dtype, {DType::kF64, 0, value}).i);
}

Expr unary(UnaryOp op, Expr a) {
  TS_CHECK(a.defined(), "unary: undefined operand");
  const DType dtype = a.dtype();
  const auto error = type_error(op, dtype);
  TS_CHECK(!error.has_value(), *error);
  if (const IntImm* imm = as<IntImm>(a)) return int_imm(dtype, eval_unary(op, {dtype, imm->value, 0}).i);
  return make(dtype, Unary{op, std::move(a)});
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  TS_CHECK(a.defined() && b.defined(), "binary: undefined operand");
  const DType dtype = a.dtype();
  const auto error = type_error(op, dtype, b.dtype());
  TS_CHECK(!error.has_value(), *error);
  const DType result = is_comparison(op) ? DType::kBool : dtype;
  if (!is_float(dtype)) {
    if (Expr folded = fold_binary(op, a, b); folded.defined()) return folded;
  }
  return make(result, Binary{op, std::move(a), std::move(b)});
}

Expr select(Expr condition, Expr a, Expr b) {
  TS_CHECK(condition.defined() && a.defined() && b.defined(), "select: undefined operand");
  const auto error = select_type_error(condition.dtype(), a.dtype(), b.dtype());
  TS_CHECK(!error.has_value(), *error);
  if (const IntImm* imm = as<IntImm>(condition)) return imm->value != 0 ? a : b;
  const DType dtype = a.dtype();
  return make(dtype, Select{std::move(condition), std::move(a), std::move(b)});
}

bool is_float_product(const Expr& e) {
  const Binary* product = as<Binary>(e);
  return product != nullptr && product->op == BinaryOp::kMul && is_float(e.dtype());
}

Expr cast(DType dtype, Expr a) {
  TS_CHECK(a.defined(), "cast: undefined operand");
  if (a.dtype() == dtype && !is_float_product(a)) return a;
  if (const IntImm* imm = as<IntImm>(a); imm != nullptr && !is_float(dtype))
    return int_imm(dtype, eval_cast(dtype, {a.dtype(), imm->value, 0}).i);
  return make(dtype, Cast{std::move(a)});
}

namespace {

DType result_dtype(Intrinsic intrinsic, DType operands) {
  if (intrinsic == Intrinsic::kIsNan || intrinsic == Intrinsic::kIsInf) return DType::kBool;
  if (intrinsic == Intrinsic::kDot2) return DType::kF32;
  return intrinsic == Intrinsic::kPair ? DType::kI32 : operands;
}

}  // namespace

Expr call(Intrinsic intrinsic, std::vector<Expr> args) {
  TS_CHECK(static_cast<int>(args.size()) == arity(intrinsic),
           "wrong number of arguments for " + std::string(to_string(intrinsic)));
  for (const Expr& arg : args) TS_CHECK(arg.defined(), "call: undefined argument");
  const DType dtype = args.front().dtype();
  const auto error = type_error(intrinsic, dtype, args.back().dtype());
  TS_CHECK(!error.has_value(), *error);
  return make(result_dtype(intrinsic, dtype), Call{intrinsic, std::move(args)});
}

Expr load(Buffer buffer, std::vector<Expr> indices) {
  TS_CHECK(buffer != nullptr, "load of no buffer");
  TS_CHECK(indices.size() == buffer->shape.size(), "load of '" + buffer->name + "': wrong number of indices");
  for (const Expr& index : indices)
    TS_CHECK(index.defined() && is_int(index.dtype()),
             "load of '" + buffer->name + "': index is not an integer");
  const DType dtype = buffer->dtype;
  return make(dtype, Load{std::move(buffer), std::move(indices)});
}

std::optional<int64_t> as_int(const Expr& e) {
  if (const IntImm* imm = as<IntImm>(e)) return imm->value;
  return std::nullopt;
}

bool is_int_value(const Expr& e, int64_t value) {
  const IntImm* imm = as<IntImm>(e);
  return imm != nullptr && imm->value == value;
}

}  // namespace tensorsmith::ir
