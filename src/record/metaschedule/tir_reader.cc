#include "record/metaschedule/tir_reader.h"

#include <array>
#include <charconv>
#include <utility>

namespace tensorsmith::record {

namespace {

using ir::DType;
using ir::Expr;

constexpr int kMaxTirNesting = 1000;  // a cycle of nodes nests without end

constexpr std::array<std::pair<std::string_view, ir::BinaryOp>, 21> kTirOperators = {{
    {"tir.Add", ir::BinaryOp::kAdd},
    {"tir.Sub", ir::BinaryOp::kSub},
    {"tir.Mul", ir::BinaryOp::kMul},
    {"tir.Div", ir::BinaryOp::kDiv},
    {"tir.FloorDiv", ir::BinaryOp::kFloorDiv},
    {"tir.FloorMod", ir::BinaryOp::kFloorMod},
    {"tir.Min", ir::BinaryOp::kMin},
    {"tir.Max", ir::BinaryOp::kMax},
    {"tir.EQ", ir::BinaryOp::kEq},
    {"tir.NE", ir::BinaryOp::kNe},
    {"tir.LT", ir::BinaryOp::kLt},
    {"tir.LE", ir::BinaryOp::kLe},
    {"tir.GT", ir::BinaryOp::kGt},
    {"tir.GE", ir::BinaryOp::kGe},
    {"tir.And", ir::BinaryOp::kAnd},
    {"tir.Or", ir::BinaryOp::kOr},
    {"tir.BitwiseAnd", ir::BinaryOp::kBitAnd},
    {"tir.BitwiseOr", ir::BinaryOp::kBitOr},
    {"tir.BitwiseXor", ir::BinaryOp::kBitXor},
    {"tir.LShift", ir::BinaryOp::kShl},
    {"tir.RShift", ir::BinaryOp::kShr},
}};

constexpr std::array<std::pair<std::string_view, ir::Intrinsic>, 27> kTirFunctions = {{
    {"tir.fabs", ir::Intrinsic::kAbs},    {"tir.abs", ir::Intrinsic::kAbs},
    {"tir.sqrt", ir::Intrinsic::kSqrt},   {"tir.exp", ir::Intrinsic::kExp},
    {"tir.log", ir::Intrinsic::kLog},     {"tir.sin", ir::Intrinsic::kSin},
    {"tir.cos", ir::Intrinsic::kCos},     {"tir.tan", ir::Intrinsic::kTan},
    {"tir.asin", ir::Intrinsic::kAsin},   {"tir.acos", ir::Intrinsic::kAcos},
    {"tir.atan", ir::Intrinsic::kAtan},   {"tir.sinh", ir::Intrinsic::kSinh},
    {"tir.cosh", ir::Intrinsic::kCosh},   {"tir.tanh", ir::Intrinsic::kTanh},
    {"tir.erf", ir::Intrinsic::kErf},     {"tir.floor", ir::Intrinsic::kFloor},
    {"tir.ceil", ir::Intrinsic::kCeil},   {"tir.nearbyint", ir::Intrinsic::kRound},
    {"tir.round", ir::Intrinsic::kRound}, {"tir.trunc", ir::Intrinsic::kTrunc},
    {"tir.isnan", ir::Intrinsic::kIsNan}, {"tir.isinf", ir::Intrinsic::kIsInf},
    {"tir.pow", ir::Intrinsic::kPow},     {"tir.fmod", ir::Intrinsic::kFmod},
    {"tir.asinh", ir::Intrinsic::kAsinh}, {"tir.acosh", ir::Intrinsic::kAcosh},
    {"tir.atanh", ir::Intrinsic::kAtanh},
}};

template <class Rows>
auto find_row(const Rows& rows, std::string_view name) {
  using Value = typename Rows::value_type::second_type;
  for (const auto& [row, value] : rows) {
    if (row == name) return std::optional<Value>(value);
  }
  return std::optional<Value>();
}

bool is_bitwise(ir::BinaryOp op) { return op >= ir::BinaryOp::kBitAnd; }

const std::string& no_text() {
  static const std::string empty;
  return empty;
}
const std::vector<size_t>& no_list() {
  static const std::vector<size_t> empty;
  return empty;
}

}  // namespace

void TirReader::fail(size_t node, ErrorCode code, std::string reason) {
  if (!error_)
    error_ = Error{code, "node " + std::to_string(node) + " (" + at(node).type + ")", std::move(reason)};
}

void TirReader::expect(size_t node, std::string_view type) {
  if (!is(node, type)) fail(node, ErrorCode::kUnsupported, "expected " + std::string(type) + " here");
}

const std::string& TirReader::text(size_t node, std::string_view attribute) {
  const auto it = at(node).attributes.find(attribute);
  if (it != at(node).attributes.end()) return it->second;
  fail(node, ErrorCode::kCorrupt, "has no \"" + std::string(attribute) + "\"");
  return no_text();
}

int64_t TirReader::integer(size_t node, std::string_view attribute) {
  const std::string& digits = text(node, attribute);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code == std::errc() && end == digits.data() + digits.size()) return value;
  fail(node, ErrorCode::kCorrupt, "\"" + std::string(attribute) + "\" is no integer");
  return 0;
}

size_t TirReader::child(size_t node, std::string_view attribute) {
  const int64_t number = integer(node, attribute);
  if (failed() || (number >= 0 && std::cmp_less(number, graph_.nodes.size()))) return failed() ? 0 : number;
  fail(node, ErrorCode::kCorrupt, "\"" + std::string(attribute) + "\" is a node that does not exist");
  return 0;
}

const std::vector<size_t>& TirReader::list(size_t node, std::string_view attribute) {
  const size_t array = child(node, attribute);
  if (failed()) return no_list();
  if (is(array, "Array")) return at(array).data;
  fail(array, ErrorCode::kCorrupt, "is no Array, as \"" + std::string(attribute) + "\" has to be");
  return no_list();
}

std::string TirReader::name(size_t node, std::string_view attribute) {
  const size_t string = child(node, attribute);
  return failed() ? std::string() : at(string).text;
}

int64_t TirReader::constant(size_t node) {
  if (failed()) return 0;
  if (is(node, "IntImm")) return integer(node, "value");
  fail(node, ErrorCode::kUnsupported, "a shape or a range of a loop is not constant");
  return 0;
}

DType TirReader::dtype(size_t node) {
  const std::string& shown = text(node, "dtype");
  if (failed()) return DType::kF32;
  if (const auto found = find_dtype(&DTypeRow::name, std::string_view(shown))) return *found;
  fail(node, ErrorCode::kUnsupported, "type '" + shown + "' is not supported");
  return DType::kF32;
}

const ir::Buffer& TirReader::buffer(size_t node) {
  static const ir::Buffer none = ir::make_buffer("none", DType::kF32, {});
  if (const auto known = buffers_.find(node); known != buffers_.end()) return known->second;
  expect(node, "tir.Buffer");
  std::vector<int64_t> shape;
  for (const size_t dim : list(node, "shape")) {
    shape.push_back(constant(dim));
    if (shape.back() <= 0) fail(node, ErrorCode::kUnsupported, "a dimension of the tensor is not positive");
  }
  const DType type = dtype(node);
  const std::string label = name(node, "name");
  if (failed()) return none;
  return buffers_[node] = ir::make_buffer(label, type, std::move(shape));
}

const ir::Var& TirReader::variable(size_t node) {
  const auto known = variables_.find(node);
  if (known != variables_.end()) return known->second;
  return variables_.emplace(node, ir::Var(name(node, "name"))).first->second;
}

// Converts both operands to one type. Types differ only where one of them is an index or a literal.
void TirReader::unify(Expr& a, Expr& b) {
  if (a.dtype() == b.dtype()) return;
  for (auto [one, other] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    const auto value = ir::as_int(*one);
    if (!value || other->dtype() == DType::kBool) continue;
    *one = ir::is_float(other->dtype()) ? ir::float_imm(other->dtype(), static_cast<double>(*value))
                                        : ir::int_imm(other->dtype(), *value);
    return;
  }
  const DType to = ir::is_float(a.dtype()) ? a.dtype() : ir::is_float(b.dtype()) ? b.dtype() : DType::kI64;
  if (a.dtype() != to) a = ir::cast(to, a);
  if (b.dtype() != to) b = ir::cast(to, b);
}

Expr TirReader::expression(size_t node) {
  if (failed()) return 0;
  if (const auto known = expressions_.find(node); known != expressions_.end()) return known->second;
  if (++depth_ > kMaxTirNesting) {
    fail(node, ErrorCode::kUnsupported, "the expression nests too deeply");
    return 0;
  }
  Expr e = convert(node);
  --depth_;
  if (failed()) return 0;
  expressions_.emplace(node, e);
  return e;
}

std::vector<Expr> TirReader::expressions(const std::vector<size_t>& nodes) {
  std::vector<Expr> out;
  for (const size_t node : nodes) out.push_back(expression(node));
  return out;
}

Expr TirReader::convert(size_t node) {
  const std::string& type = at(node).type;
  if (type == "IntImm" || type == "FloatImm") return literal(node);
  if (type == "tir.Var" || type == "tir.SizeVar") {
    const auto known = variables_.find(node);
    if (known != variables_.end()) return known->second;
    fail(node, ErrorCode::kUnsupported, "the variable is no axis of the block; shapes have to be constant");
    return 0;
  }
  if (type == "tir.BufferLoad") return load(node);
  if (type == "tir.Cast") return cast(node);
  if (type == "tir.Call") return call(node);
  if (type == "tir.Select")
    return select(node, child(node, "condition"), child(node, "true_value"), child(node, "false_value"));
  if (type == "tir.Not") {
    const Expr a = expression(child(node, "a"));
    if (!failed() && a.dtype() == DType::kBool) return !a;
    fail(node, ErrorCode::kCorrupt, "the operand of a negation is no condition");
    return 0;
  }
  if (const auto op = find_row(kTirOperators, type)) return binary(node, *op);
  fail(node, ErrorCode::kUnsupported, "the expression is not supported");
  return 0;
}

Expr TirReader::literal(size_t node) {
  const DType type = dtype(node);
  if (is(node, "IntImm")) {
    const int64_t value = integer(node, "value");
    if (failed()) return 0;
    if (type == DType::kBool) return ir::bool_imm(value != 0);
    // Narrow constants take the type of the other operand (unify).
    return Expr(value);
  }
  const std::string& digits = text(node, "value");
  double value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed() || code != std::errc() || end != digits.data() + digits.size() || !ir::is_float(type)) {
    fail(node, ErrorCode::kCorrupt, "'" + digits + "' is no number of its type");
    return 0;
  }
  return ir::float_imm(type, value);
}

Expr TirReader::binary(size_t node, ir::BinaryOp op) {
  Expr a = expression(child(node, "a")), b = expression(child(node, "b"));
  if (failed()) return 0;
  const bool logic = op == ir::BinaryOp::kAnd || op == ir::BinaryOp::kOr;
  const bool truth = a.dtype() == DType::kBool && b.dtype() == DType::kBool;
  if (logic && !truth) {
    fail(node, ErrorCode::kCorrupt, "an operand is no condition");
    return 0;
  }
  unify(a, b);
  if (!logic && truth && !ir::is_comparison(op)) {
    fail(node, ErrorCode::kUnsupported, "arithmetic on conditions is not supported");
    return 0;
  }
  const bool integers = op == ir::BinaryOp::kFloorDiv || op == ir::BinaryOp::kFloorMod || is_bitwise(op);
  if (integers && ir::is_float(a.dtype())) {
    fail(node, ErrorCode::kUnsupported, "floordiv, floormod and bits are only supported for integers");
    return 0;
  }
  return ir::binary(op, a, b);
}

Expr TirReader::select(size_t node, size_t condition, size_t a, size_t b) {
  const Expr test = expression(condition);
  Expr yes = expression(a), no = expression(b);
  if (failed()) return 0;
  if (test.dtype() != DType::kBool) {
    fail(node, ErrorCode::kCorrupt, "the condition is a number");
    return 0;
  }
  unify(yes, no);
  return ir::select(test, yes, no);
}

Expr TirReader::cast(size_t node) {
  const DType to = dtype(node);
  const Expr e = expression(child(node, "value"));
  if (failed()) return 0;
  // An index stays kI64 whatever its width is in TVM.
  const bool index = e.dtype() == DType::kI64 && ir::is_int(to);
  return index || e.dtype() == to ? e : ir::cast(to, e);
}

Expr TirReader::load(size_t node) {
  const ir::Buffer from = buffer(child(node, "buffer"));
  std::vector<Expr> indices = expressions(list(node, "indices"));
  if (failed()) return 0;
  if (indices.size() != from->shape.size()) {
    fail(node, ErrorCode::kCorrupt, "the number of indices is not the rank of the tensor");
    return 0;
  }
  for (Expr& index : indices) {
    if (!ir::is_int(index.dtype())) {
      fail(node, ErrorCode::kUnsupported, "an index is no integer");
      return 0;
    }
    if (index.dtype() != DType::kI64) index = ir::cast(DType::kI64, index);
  }
  return ir::load(from, std::move(indices));
}

Expr TirReader::call(size_t node) {
  const size_t op = child(node, "op");
  const std::vector<size_t>& nodes = list(node, "args");
  if (failed()) return 0;
  const std::string& function = at(op).text;
  if (function == "tir.if_then_else" && nodes.size() == 3) return select(node, nodes[0], nodes[1], nodes[2]);
  std::vector<Expr> args = expressions(nodes);
  if (failed()) return 0;
  const auto floats = [&](size_t count) { return args.size() == count && ir::is_float(args[0].dtype()); };
  if (function == "tir.sigmoid" && floats(1)) {
    const Expr one = ir::float_imm(args[0].dtype(), 1);
    return one / (one + ir::call(ir::Intrinsic::kExp, {-args[0]}));
  }
  if (function == "tir.rsqrt" && floats(1))
    return ir::float_imm(args[0].dtype(), 1) / ir::call(ir::Intrinsic::kSqrt, {args[0]});
  const auto intrinsic = find_row(kTirFunctions, function);
  if (intrinsic && floats(static_cast<size_t>(ir::arity(*intrinsic)))) {
    if (args.size() == 2) unify(args[0], args[1]);
    return ir::call(*intrinsic, std::move(args));
  }
  fail(node, ErrorCode::kUnsupported,
       "function '" + (function.empty() ? "of a module" : function) + "' is not supported");
  return 0;
}

}  // namespace tensorsmith::record
