#include "codegen/c/expr.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "ir/parts.h"
#include "ir/scalar.h"
#include "ir/simplify.h"

namespace tensorsmith::codegen {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;

namespace {

// Expressions of more characters than this get a name.
constexpr size_t kMaxText = 120;

bool is_leaf(const Expr& e) {
  return ir::as<ir::IntImm>(e) != nullptr || ir::as<ir::FloatImm>(e) != nullptr ||
         ir::as<ir::VarRef>(e) != nullptr;
}

bool is_real(DType t) { return t == DType::kF32 || t == DType::kF64; }

std::string suffixed(std::string_view function, DType dtype) {
  return "ts_" + std::string(function) + "_" + std::string(value_suffix(dtype));
}

Text infix(const Text& a, std::string_view op, const Text& b, Strength strength, Strength right) {
  return {a.at_least(strength) + " " + std::string(op) + " " + b.at_least(right), strength};
}

std::string_view helper_name(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "add";
    case BinaryOp::kSub:
      return "sub";
    case BinaryOp::kMul:
      return "mul";
    case BinaryOp::kDiv:
      return "div";
    case BinaryOp::kFloorDiv:
      return "floor_div";
    case BinaryOp::kFloorMod:
      return "floor_mod";
    case BinaryOp::kMin:
      return "min";
    case BinaryOp::kMax:
      return "max";
    case BinaryOp::kShl:
      return "shl";
    case BinaryOp::kShr:
      return "shr";
    default:
      throw_internal_error(__FILE__, __LINE__, "no helper for this operator");
  }
}

Text sum_or_product(BinaryOp op, const Text& a, const Text& b) {
  switch (op) {
    case BinaryOp::kAdd:
      return infix(a, "+", b, Strength::kSum, Strength::kProduct);
    case BinaryOp::kSub:
      return infix(a, "-", b, Strength::kSum, Strength::kProduct);
    case BinaryOp::kMul:
      return infix(a, "*", b, Strength::kProduct, Strength::kUnary);
    case BinaryOp::kDiv:
      return infix(a, "/", b, Strength::kProduct, Strength::kUnary);
    default:
      throw_internal_error(__FILE__, __LINE__, "neither a sum nor a product");
  }
}

// Returns the f16 expression that has the same value as the f32 expression e, if there is one.
Expr as_f16(const Expr& e) {
  if (const auto* cast = ir::as<ir::Cast>(e)) return cast->a.dtype() == DType::kF16 ? cast->a : Expr();
  const auto* imm = ir::as<ir::FloatImm>(e);
  if (imm == nullptr) return {};
  const double rounded = ir::f16_to_f32(ir::f32_to_f16(static_cast<float>(imm->value)));
  return rounded == imm->value ? ir::float_imm(DType::kF16, rounded) : Expr();
}

}  // namespace

std::string literal(DType dtype, double value) {
  const std::string_view suffix = dtype == DType::kF64 ? "" : "f";
  if (std::isnan(value)) return dtype == DType::kF64 ? "(double)NAN" : "NAN";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + (dtype == DType::kF64 ? "(double)INFINITY" : "INFINITY");
  std::array<char, 64> text{};
  char* end = nullptr;
  if (dtype == DType::kF64) {
    end = std::to_chars(text.data(), text.data() + text.size(), std::fabs(value)).ptr;
  } else {
    end = std::to_chars(text.data(), text.data() + text.size(), std::fabs(static_cast<float>(value))).ptr;
  }
  std::string digits(text.data(), end);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return sign + digits + std::string(suffix);
}

std::string literal(DType dtype, int64_t value) {
  if (dtype == DType::kBool) return value != 0 ? "true" : "false";
  if (dtype == DType::kU64) return std::to_string(static_cast<uint64_t>(value)) + "ull";
  if (dtype == DType::kU32) return std::to_string(value) + "u";
  if (value == std::numeric_limits<int64_t>::min()) return "INT64_MIN";
  return std::to_string(value);
}

Expr flat_index(const ir::Buffer& buffer, const std::vector<Expr>& indices, const ir::VarBounds& bounds) {
  const std::vector<int64_t> strides = buffer->effective_strides();
  Expr flat = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr& i = indices[d];
    flat = flat + (i.dtype() == DType::kI64 ? i : ir::cast(DType::kI64, i)) * Expr(strides[d]);
  }
  return ir::simplify(flat, bounds);
}

// The right operand is tried before the left one, as in every backend.
std::optional<FusedProduct> fused_product(const Expr& e, const CodegenOptions& options) {
  const auto* op = ir::as<ir::Binary>(e);
  if (op == nullptr || !options.fast_math_contract || !is_real(e.dtype())) return std::nullopt;
  if (op->op != BinaryOp::kAdd && op->op != BinaryOp::kSub) return std::nullopt;
  const bool subtract = op->op == BinaryOp::kSub;
  const auto product = [](const Expr& x) {
    const auto* p = ir::as<ir::Binary>(x);
    return p != nullptr && p->op == BinaryOp::kMul ? p : nullptr;
  };
  if (const ir::Binary* p = product(op->b)) return FusedProduct{p->a, p->b, op->a, subtract, false};
  if (const ir::Binary* p = product(op->a)) return FusedProduct{p->a, p->b, op->b, false, subtract};
  return std::nullopt;
}

void count_uses(const Expr& e, UseCounts& uses) {
  ir::for_each_expr(
      e, [&](const Expr& x) { ir::for_each_part(x, [&](const Expr& child) { ++uses[child.get()]; }); });
}

Expr ScalarWriter::announce(const Expr& e) {
  Expr here = ir::substitute(e, env_.constants);
  count_uses(here, uses_);
  alive_.push_back(here);
  return here;
}

Text ScalarWriter::value(const Expr& e) {
  if (is_leaf(e)) return node(e);
  if (const auto known = known_.find(e.get()); known != known_.end()) return known->second;
  Text text = node(e);
  const auto uses = uses_.find(e.get());
  const bool shared = uses != uses_.end() && uses->second > 1;
  if (shared || text.text.size() > kMaxText)
    text =
        named(is_plain_index(e) ? std::string_view(env_.index_type) : env_.dialect.type_of(e.dtype()), text);
  if (shared) {
    known_.emplace(e.get(), text);
    order_.push_back(e.get());
  }
  return text;
}

Text ScalarWriter::named(std::string_view type, const Text& value) {
  const std::string name = env_.names.make("t");
  out_->line("const " + std::string(type) + " " + name + " = " + value.text + ";");
  return {name};
}

Text ScalarWriter::node(const Expr& e) {
  const DType dtype = e.dtype();
  return ir::visit(
      ir::overloaded{
          [&](const ir::IntImm& imm) -> Text {
            const std::string text = literal(dtype, imm.value);
            return {text, text.starts_with('-') ? Strength::kUnary : Strength::kPrimary};
          },
          [&](const ir::FloatImm& imm) -> Text {
            if (dtype == DType::kF16 && !env_.dialect.f16_class.empty()) {
              const uint16_t bits = ir::f32_to_f16(static_cast<float>(imm.value));
              return call_text("ts_load_f16", {Text{std::to_string(bits)}});
            }
            const std::string text = literal(dtype, imm.value);
            return {text,
                    text.starts_with('-') || text.starts_with('(') ? Strength::kUnary : Strength::kPrimary};
          },
          [&](const ir::VarRef& ref) -> Text {
            return convert(DType::kI64, dtype, {env_.vars.at(ref.var.get())});
          },
          [&](const ir::Unary& op) { return unary(dtype, op.op, op.a); },
          [&](const ir::Binary& op) { return binary(e, op); },
          [&](const ir::Select& s) { return select(dtype, s); },
          [&](const ir::Cast& cast) {
            if (ir::is_short_float(dtype) && cast.a.dtype() == DType::kF32) {
              if (auto text = short_float(dtype, cast.a)) return *text;
            }
            const Text v = convert(cast.a.dtype(), dtype, value(cast.a));
            // A named constant keeps the product from being contracted with the sum that uses it.
            return cast.a.dtype() == dtype && ir::is_float(dtype) ? named(env_.dialect.type_of(dtype), v) : v;
          },
          [&](const ir::Call& c) { return call(dtype, c); },
          [&](const ir::Load& l) -> Text {
            const std::string element = place(l.buffer, l.indices);
            if (dtype == DType::kBool) return {element + " != 0", Strength::kComparison};
            if (ir::is_short_float(dtype))
              return {"ts_load_" + std::string(ir::to_string(dtype)) + "(" + element + ")"};
            return {element};
          },
      },
      e);
}

// Emits e, which is of f32 and is then rounded to this 16-bit type, if there is a shorter form for
// it.
std::optional<Text> ScalarWriter::short_float(DType dtype, const Expr& e) {
  if (const auto* op = ir::as<ir::Binary>(e)) {
    if (op->op == BinaryOp::kDiv) {
      const Text a = value(op->a), b = value(op->b);
      return convert(DType::kF32, dtype, call_text("ts_short_quotient", {a, b}));
    }
    if (dtype != DType::kF16 || env_.dialect.f16_class.empty()) return std::nullopt;
    if (op->op != BinaryOp::kAdd && op->op != BinaryOp::kSub && op->op != BinaryOp::kMul) return std::nullopt;
    const Expr a = as_f16(op->a), b = as_f16(op->b);
    if (!a.defined() || !b.defined()) return std::nullopt;
    const Text left = value(a), right = value(b);
    return call_text("ts_" + std::string(helper_name(op->op)) + "_f16", {left, right});
  }
  const auto* call = ir::as<ir::Call>(e);
  if (call == nullptr || call->intrinsic != ir::Intrinsic::kErf) return std::nullopt;
  return convert(DType::kF32, dtype, call_text("ts_short_erf", {value(call->args[0])}));
}

std::string ScalarWriter::place(const ir::Buffer& buffer, const std::vector<Expr>& indices) {
  return place(buffer, flat_index(buffer, indices, env_.bounds));
}

std::string ScalarWriter::place(const ir::Buffer& buffer, const Expr& flat) {
  alive_.push_back(flat);
  return env_.buffers.at(buffer.get()) + "[" + value(flat).text + "]";
}

Text ScalarWriter::to_memory(DType dtype, Text value) const {
  if (ir::is_short_float(dtype)) return call_text("ts_store_" + std::string(ir::to_string(dtype)), {value});
  return value;
}

bool ScalarWriter::is_plain_index(const Expr& e) const {
  return e.dtype() == DType::kI64 && ir::loads_of(e).empty();
}

Text ScalarWriter::unary(DType dtype, ir::UnaryOp op, const Expr& a) {
  const Text v = value(a);
  switch (op) {
    case ir::UnaryOp::kNeg:
      if (ir::is_float(dtype) || is_plain_index(a))
        return {"-" + v.at_least(Strength::kPrimary), Strength::kUnary};
      return call_text(suffixed("neg", dtype), {v});
    case ir::UnaryOp::kNot:
      return {"!" + v.at_least(Strength::kPrimary), Strength::kUnary};
    case ir::UnaryOp::kBitNot:
      return {"(" + std::string(env_.dialect.type_of(dtype)) + ")~" + v.at_least(Strength::kPrimary),
              Strength::kUnary};
  }
  throw_internal_error(__FILE__, __LINE__, "unknown unary operator");
}

Text ScalarWriter::binary(const Expr& e, const ir::Binary& op) {
  if (const auto fused = fused_product(e, env_.options)) {
    const Text sum = value(fused->sum);
    const Text a = value(fused->a);
    const Text b = value(fused->b);
    const auto negated = [](const Text& x, bool negate) {
      return negate ? Text{"-" + x.at_least(Strength::kPrimary), Strength::kUnary} : x;
    };
    return call_text(suffixed("fma", e.dtype()),
                     {negated(a, fused->negate_product), b, negated(sum, fused->negate_sum)});
  }
  const DType operand = op.a.dtype();
  const bool index = is_plain_index(op.a) && is_plain_index(op.b);
  const Text a = value(op.a);
  const Text b = value(op.b);
  if (ir::is_comparison(op.op)) {
    return {a.at_least(Strength::kSum) + " " + std::string(ir::to_string(op.op)) + " " +
                b.at_least(Strength::kSum),
            Strength::kComparison};
  }
  if (index) {
    const auto divisor = ir::as_int(op.b);
    const bool plain_division = divisor && *divisor > 0 && ir::bounds_of(op.a, env_.bounds).min >= 0;
    if (op.op == BinaryOp::kAdd || op.op == BinaryOp::kSub || op.op == BinaryOp::kMul)
      return sum_or_product(op.op, a, b);
    if (op.op == BinaryOp::kFloorDiv && plain_division)
      return infix(a, "/", b, Strength::kProduct, Strength::kUnary);
    if (op.op == BinaryOp::kFloorMod && plain_division)
      return infix(a, "%", b, Strength::kProduct, Strength::kUnary);
  }
  return arithmetic(op.op, operand, a, b);
}

Text ScalarWriter::arithmetic(BinaryOp op, DType dtype, const Text& a, const Text& b) const {
  const auto rounded = [&](Text v) {
    return ir::is_short_float(dtype) ? call_text("ts_round_" + std::string(ir::to_string(dtype)), {v}) : v;
  };
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
      if (op == BinaryOp::kDiv && ir::is_short_float(dtype))
        return rounded(call_text("ts_short_quotient", {a, b}));
      if (dtype == DType::kF16 && !env_.dialect.f16_class.empty())
        return call_text("ts_" + std::string(helper_name(op)) + "_f16", {a, b});
      if (ir::is_float(dtype)) return rounded(sum_or_product(op, a, b));
      return call_text(suffixed(helper_name(op), dtype), {a, b});
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      return call_text(suffixed(helper_name(op), dtype), {a, b});
    case BinaryOp::kAnd:
      return infix(a, "&&", b, Strength::kAnd, Strength::kComparison);
    case BinaryOp::kOr:
      return {a.at_least(Strength::kComparison) + " || " + b.at_least(Strength::kComparison), Strength::kOr};
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: {
      const char* text = op == BinaryOp::kBitAnd ? " & " : op == BinaryOp::kBitOr ? " | " : " ^ ";
      return {"(" + std::string(env_.dialect.type_of(dtype)) + ")(" + a.at_least(Strength::kUnary) + text +
                  b.at_least(Strength::kUnary) + ")",
              Strength::kUnary};
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

// Evaluates only the chosen side, by C's conditional operator or by a branch.
Text ScalarWriter::select(DType dtype, const ir::Select& select) {
  const Text condition = value(select.condition);
  Text a, b;
  Block first = nested([&] { a = value(select.a); });
  Block second = nested([&] { b = value(select.b); });
  if (dtype == DType::kF16 && !env_.dialect.f16_class.empty()) {  // both sides must have the same C++ type
    for (Text* side : {&a, &b}) *side = call_text(std::string(env_.dialect.f16_class), {*side});
  }
  if (first.empty() && second.empty() && a.text.size() + b.text.size() < kMaxText) {
    return {condition.at_least(Strength::kOr) + " ? " + a.at_least(Strength::kOr) + " : " +
                b.at_least(Strength::kOr),
            Strength::kConditional};
  }
  const std::string name = env_.names.make("t");
  out_->line(std::string(env_.dialect.type_of(dtype)) + " " + name + ";");
  out_->open("if (" + condition.text + ")");
  out_->append(std::move(first));
  out_->line(name + " = " + a.text + ";");
  out_->middle("} else {");
  out_->append(std::move(second));
  out_->line(name + " = " + b.text + ";");
  out_->close();
  return {name};
}

Text ScalarWriter::convert(DType from, DType to, Text v) const {
  if (from == to) return v;
  const auto cast = [&](DType t, const Text& x) {
    return Text{"(" + std::string(env_.dialect.type_of(t)) + ")" + x.at_least(Strength::kUnary),
                Strength::kUnary};
  };
  const auto rounded = [&](const Text& x) {
    return ir::is_short_float(to) ? call_text("ts_round_" + std::string(ir::to_string(to)), {x}) : x;
  };
  if (to == DType::kBool) return {v.at_least(Strength::kSum) + " != 0", Strength::kComparison};
  if (!ir::is_float(to)) {
    if (!ir::is_float(from)) return cast(to, v);
    return call_text("ts_" + std::string(ir::to_string(to)) + "_from_float", {v});
  }
  if (to == DType::kF64) return cast(to, v);
  // f16 and bf16 are held as float.
  if (from == DType::kF16 && !env_.dialect.f16_class.empty()) v = cast(DType::kF32, v);
  if (ir::is_float(from) && from != DType::kF64) return rounded(v);
  return rounded(cast(DType::kF32, v));
}

Text ScalarWriter::call(DType dtype, const ir::Call& call) {
  std::vector<Text> arguments;
  for (const Expr& a : call.args) arguments.push_back(value(a));
  const std::string name(ir::to_string(call.intrinsic));
  if (ir::is_dot(call.intrinsic) || call.intrinsic == ir::Intrinsic::kPair)
    return call_text("ts_" + name, arguments);
  if (call.intrinsic == ir::Intrinsic::kErf && ir::is_short_float(dtype))
    return call_text("ts_round_" + std::string(ir::to_string(dtype)), {call_text("ts_short_erf", arguments)});
  const Text result = call_text(suffixed(name, call.args[0].dtype()), arguments);
  return ir::is_short_float(dtype) ? call_text("ts_round_" + std::string(ir::to_string(dtype)), {result})
                                   : result;
}

}  // namespace tensorsmith::codegen
