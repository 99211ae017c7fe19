#include "record/metaschedule/tir_writer.h"

#include <cmath>
#include <limits>

#include "ir/analysis.h"

namespace tensorsmith::record {

namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;

std::string_view tir_operator(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "prim.Add";
    case BinaryOp::kSub:
      return "prim.Sub";
    case BinaryOp::kMul:
      return "prim.Mul";
    case BinaryOp::kDiv:
      return "prim.Div";
    case BinaryOp::kFloorDiv:
      return "prim.FloorDiv";
    case BinaryOp::kFloorMod:
      return "prim.FloorMod";
    case BinaryOp::kMin:
      return "prim.Min";
    case BinaryOp::kMax:
      return "prim.Max";
    case BinaryOp::kEq:
      return "prim.EQ";
    case BinaryOp::kNe:
      return "prim.NE";
    case BinaryOp::kLt:
      return "prim.LT";
    case BinaryOp::kLe:
      return "prim.LE";
    case BinaryOp::kGt:
      return "prim.GT";
    case BinaryOp::kGe:
      return "prim.GE";
    case BinaryOp::kAnd:
      return "prim.And";
    case BinaryOp::kOr:
      return "prim.Or";
    case BinaryOp::kBitAnd:
      return "prim.BitwiseAnd";
    case BinaryOp::kBitOr:
      return "prim.BitwiseOr";
    case BinaryOp::kBitXor:
      return "prim.BitwiseXor";
    case BinaryOp::kShl:
      return "prim.LShift";
    case BinaryOp::kShr:
      return "prim.RShift";
  }
  return {};
}

// Returns the name of a function on floats; empty for those that TVM lacks.
std::string_view tir_function(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::kAbs:
      return "tirx.fabs";
    case Intrinsic::kSqrt:
      return "tirx.sqrt";
    case Intrinsic::kExp:
      return "tirx.exp";
    case Intrinsic::kLog:
      return "tirx.log";
    case Intrinsic::kSin:
      return "tirx.sin";
    case Intrinsic::kCos:
      return "tirx.cos";
    case Intrinsic::kTan:
      return "tirx.tan";
    case Intrinsic::kAsin:
      return "tirx.asin";
    case Intrinsic::kAcos:
      return "tirx.acos";
    case Intrinsic::kAtan:
      return "tirx.atan";
    case Intrinsic::kSinh:
      return "tirx.sinh";
    case Intrinsic::kCosh:
      return "tirx.cosh";
    case Intrinsic::kTanh:
      return "tirx.tanh";
    case Intrinsic::kAsinh:
      return "tirx.asinh";
    case Intrinsic::kAcosh:
      return "tirx.acosh";
    case Intrinsic::kAtanh:
      return "tirx.atanh";
    case Intrinsic::kErf:
      return "tirx.erf";
    case Intrinsic::kFloor:
      return "tirx.floor";
    case Intrinsic::kCeil:
      return "prim.ceil";
    case Intrinsic::kRound:
      return "tirx.nearbyint";
    case Intrinsic::kTrunc:
      return "tirx.trunc";
    case Intrinsic::kIsNan:
      return "tirx.isnan";
    case Intrinsic::kPow:
      return "tirx.pow";
    case Intrinsic::kFmod:
      return "tirx.fmod";
    case Intrinsic::kSign:
    case Intrinsic::kIsInf:
    case Intrinsic::kDot4:
    case Intrinsic::kDot2:
    case Intrinsic::kPair:
    case Intrinsic::kDot2I16:
    case Intrinsic::kDot4Narrow:
    case Intrinsic::kRoundTf32:
      break;
  }
  return {};
}

}  // namespace

size_t TirWriter::fail(std::string reason) {
  if (!error_) error_ = Error{ErrorCode::kUnsupported, "operation '" + operation_ + "'", std::move(reason)};
  return 0;
}

size_t TirWriter::range(size_t min, size_t extent) {
  return nodes_.node("ir.Range", {{"min", min}, {"extent", extent}, {"span", 0}});
}

size_t TirWriter::define_tensor(const ir::BufferNode& buffer) {
  std::vector<size_t> shape;
  for (const int64_t extent : buffer.shape) shape.push_back(index(extent));
  const size_t type = nodes_.node("tirx.BufferType", {{"span", 0},
                                                      {"dtype", nodes_.type(buffer.dtype)},
                                                      {"storage_scope", nodes_.text("global")},
                                                      {"shape", nodes_.array(shape)},
                                                      {"strides", nodes_.array({})},
                                                      {"elem_offset", index(0)},
                                                      {"data_alignment", 64},
                                                      {"offset_factor", 1},
                                                      {"layout", 0},
                                                      {"allocated_addr", nodes_.array({})}});
  const size_t made =
      nodes_.new_node("ir.Var", {{"span", 0}, {"ty", type}, {"name", nodes_.text(buffer.name)}});
  tensors_[&buffer] = made;
  return made;
}

size_t TirWriter::new_variable(std::string_view name) {
  return nodes_.new_node("ir.Var",
                         {{"span", 0}, {"ty", nodes_.type(DType::kI64)}, {"name", nodes_.text(name)}});
}

size_t TirWriter::load(const ir::BufferNode* buffer, size_t indices) {
  return nodes_.node(
      "ir.TensorLoad",
      {{"span", 0}, {"ty", nodes_.type(buffer->dtype)}, {"source", tensor(buffer)}, {"indices", indices}});
}

size_t TirWriter::expressions(const std::vector<Expr>& list) {
  std::vector<size_t> out;
  for (const Expr& e : list) out.push_back(expression(e));
  return nodes_.array(out);
}

size_t TirWriter::expression(const Expr& e) {
  if (failed()) return 0;
  if (const size_t* known = written_.find(e)) return *known;
  const size_t made = convert(e);
  written_.remember(e, made);
  return made;
}

size_t TirWriter::convert(const Expr& e) {
  const DType dtype = e.dtype();
  return ir::visit(
      ir::overloaded{[&](const ir::IntImm& imm) {
                       if (dtype == DType::kU64 && imm.value < 0)
                         return fail("an unsigned constant beyond 63 bits cannot be written in TVM's format");
                       return nodes_.integer(dtype, imm.value);
                     },
                     [&](const ir::FloatImm& imm) { return nodes_.number(dtype, imm.value); },
                     [&](const ir::VarRef& ref) { return axes_.at(ref.var.get()); },
                     [&](const ir::Unary& op) { return unary(op, dtype); },
                     [&](const ir::Binary& op) {
                       const size_t a = expression(op.a), b = expression(op.b);
                       return binary(tir_operator(op.op), dtype, a, b);
                     },
                     [&](const ir::Select& s) { return select(s, dtype); },
                     [&](const ir::Cast& cast) { return this->cast(cast, dtype); },
                     [&](const ir::Call& call) { return this->call(call, dtype); },
                     [&](const ir::Load& load) {
                       const size_t indices = expressions(load.indices);
                       return failed() ? 0 : this->load(load.buffer.get(), indices);
                     }},
      e);
}

size_t TirWriter::constant(DType dtype, double value) {
  return is_float(dtype) ? nodes_.number(dtype, value) : nodes_.integer(dtype, static_cast<int64_t>(value));
}

size_t TirWriter::binary(std::string_view type, DType dtype, size_t a, size_t b) {
  return nodes_.node(type, {{"span", 0}, {"ty", nodes_.type(dtype)}, {"a", a}, {"b", b}});
}

// TVM has no negation; a product keeps the sign of zero.
size_t TirWriter::unary(const ir::Unary& op, DType dtype) {
  const size_t a = expression(op.a);
  const auto node = [&](std::string_view type) {
    return nodes_.node(type, {{"span", 0}, {"ty", nodes_.type(dtype)}, {"a", a}});
  };
  switch (op.op) {
    case ir::UnaryOp::kNeg:
      if (is_float(dtype)) return binary("prim.Mul", dtype, a, constant(dtype, -1));
      return binary("prim.Sub", dtype, constant(dtype, 0), a);
    case ir::UnaryOp::kNot:
      return node("prim.Not");
    case ir::UnaryOp::kBitNot:
      return node("prim.BitwiseNot");
  }
  return 0;
}

// TVM's Select evaluates both sides, so one that chooses what is loaded has to be a call.
size_t TirWriter::select(const ir::Select& s, DType dtype) {
  const size_t condition = expression(s.condition), a = expression(s.a), b = expression(s.b);
  if (failed()) return 0;
  if (!ir::loads_of(s.a).empty() || !ir::loads_of(s.b).empty())
    return function("prim.if_then_else", dtype, {condition, a, b});
  return nodes_.node("prim.Select", {{"span", 0},
                                     {"ty", nodes_.type(dtype)},
                                     {"condition", condition},
                                     {"true_value", a},
                                     {"false_value", b}});
}

// Omits a cast of a type to itself, which keeps a product from being fused into a sum: TVM has no
// such cast.
size_t TirWriter::cast(const ir::Cast& cast, DType to) {
  const DType from = cast.a.dtype();
  const size_t a = expression(cast.a);
  if (from == to) return a;
  if (to == DType::kBool) return binary("prim.NE", to, a, constant(from, 0));
  return nodes_.node("prim.Cast", {{"span", 0}, {"ty", nodes_.type(to)}, {"value", a}});
}

size_t TirWriter::function(std::string_view name, DType dtype, const std::vector<size_t>& arguments) {
  return nodes_.node("ir.Call", {{"span", 0},
                                 {"ty", nodes_.type(dtype)},
                                 {"op", nodes_.op(name)},
                                 {"args", nodes_.array(arguments)},
                                 {"attrs", 0},
                                 {"ty_args", nodes_.array({})}});
}

size_t TirWriter::call(const ir::Call& call, DType dtype) {
  std::vector<size_t> arguments;
  for (const Expr& argument : call.args) arguments.push_back(expression(argument));
  if (failed()) return 0;
  const DType from = call.args.front().dtype();
  const size_t x = arguments.front();
  const auto choose = [&](std::string_view comparison, size_t value, size_t other) {
    const size_t condition = binary(comparison, DType::kBool, x, constant(from, 0));
    return function("prim.if_then_else", dtype, {condition, value, other});
  };
  if (call.intrinsic == Intrinsic::kSign && ir::is_unsigned_int(from))
    return choose("prim.GT", constant(dtype, 1), x);
  if (call.intrinsic == Intrinsic::kSign)
    return choose("prim.GT", constant(dtype, 1), choose("prim.LT", constant(dtype, -1), x));
  if (call.intrinsic == Intrinsic::kAbs && ir::is_unsigned_int(from)) return x;
  if (call.intrinsic == Intrinsic::kAbs && !is_float(from))
    return choose("prim.LT", binary("prim.Sub", dtype, constant(dtype, 0), x), x);
  if (call.intrinsic == Intrinsic::kIsInf)
    return binary("prim.EQ", dtype, function("tirx.fabs", from, arguments),
                  nodes_.number(from, std::numeric_limits<double>::infinity()));
  const std::string_view name = tir_function(call.intrinsic);
  if (name.empty() || !is_float(from))
    return fail("the function " + std::string(ir::to_string(call.intrinsic)) +
                " cannot be written in TVM's format");
  return function(name, dtype, arguments);
}

}  // namespace tensorsmith::record
