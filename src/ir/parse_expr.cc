#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/expr_types.h"
#include "ir/parser.h"
#include "ir/scalar.h"
#include "ir/text_names.h"

namespace tensorsmith::ir {

std::string position_of(const Token& token) {
  return std::to_string(token.line) + ":" + std::to_string(token.column);
}

std::string describe(const Token& token) {
  if (token.kind == Token::Kind::kEnd) return "the end of the text";
  if (token.kind == Token::Kind::kBad && !token.text.empty() && token.text.front() == '"')
    return "a quoted name without an end";
  std::string shown;
  for (char c : token.text.substr(0, 40))
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return "'" + shown + "'";
}

void Parser::fail(const Token& at, std::string reason) {
  if (!error_.has_value()) error_ = Error{ErrorCode::kCorrupt, position_of(at), std::move(reason)};
}

bool Parser::accept(std::string_view symbol) {
  if (failed() || lexer_.peek().kind != Token::Kind::kSymbol || lexer_.peek().text != symbol) return false;
  lexer_.next();
  return true;
}

bool Parser::expect(std::string_view symbol) {
  if (failed()) return false;
  if (accept(symbol)) return true;
  fail(lexer_.peek(), "expected '" + std::string(symbol) + "', found " + describe(lexer_.peek()));
  return false;
}

std::string Parser::expect_name(std::string_view what) {
  if (failed()) return {};
  const Token token = lexer_.next();
  std::string name;
  if (!token.is_name()) {
    fail(token, "expected " + std::string(what) + ", found " + describe(token));
  } else if (!decode_name(token, name)) {
    fail(token, "unknown escape in a quoted name; use \\\", \\\\ or \\x and two hex digits");
  }
  return name;
}

int64_t Parser::expect_count(std::string_view what) {
  if (failed()) return 0;
  const Token token = lexer_.next();
  int64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  if (token.kind != Token::Kind::kInt) {
    fail(token, "expected " + std::string(what) + ", found " + describe(token));
  } else if (const auto r = std::from_chars(token.text.data(), end, value);
             r.ec != std::errc() || r.ptr != end) {
    fail(token, std::string(what) + " does not fit 64 bits");
    return 0;
  }
  return value;
}

std::optional<DType> Parser::expect_dtype() {
  if (failed()) return std::nullopt;
  const Token token = lexer_.next();
  const auto dtype = token.kind == Token::Kind::kName ? parse_dtype(token.text) : std::nullopt;
  if (!dtype.has_value()) fail(token, "expected a dtype such as f32 or i64, found " + describe(token));
  return dtype;
}

std::vector<int64_t> Parser::count_list(std::string_view close) {
  std::vector<int64_t> out;
  if (accept(close)) return out;
  do out.push_back(expect_count("a number of elements"));
  while (accept(","));
  expect(close);
  return out;
}

MemoryScope Parser::optional_scope() {
  // A name followed by one of these tokens is a definition or a store, and not a scope.
  const Token& after = lexer_.peek(1);
  if (after.is(":") || after.is(",") || after.is("[")) return MemoryScope::kGlobal;
  for (MemoryScope scope : {MemoryScope::kGlobal, MemoryScope::kShared, MemoryScope::kLocal}) {
    if (lexer_.peek().kind == Token::Kind::kName && lexer_.peek().text == to_string(scope)) {
      lexer_.next();
      return scope;
    }
  }
  return MemoryScope::kGlobal;
}

Parser::TensorType Parser::tensor_type() {
  TensorType out;
  if (const auto dtype = expect_dtype()) out.dtype = *dtype;
  if (!expect("[")) return out;
  out.shape = count_list("]");
  if (!failed() && lexer_.peek().is("strides") && lexer_.peek(1).is("(")) {
    const Token at = lexer_.next();
    expect("(");
    out.strides = count_list(")");
    if (!failed() && out.strides.size() != out.shape.size())
      fail(at, "the tensor needs one stride per dimension");
    // A scalar has no strides.
  }
  if (!failed()) out.scope = optional_scope();
  return out;
}

Buffer Parser::find_buffer(const Token& at, const std::string& name) {
  const auto it = buffers_.find(name);
  if (it != buffers_.end()) return it->second;
  fail(at, "no tensor is called " + quote_name(name));
  return nullptr;
}

bool Parser::define_variable(const Token& at, const std::string& name, const Var& var) {
  if (failed()) return false;
  if (variables_.emplace(name, var).second) return true;
  fail(at, "variable " + quote_name(name) + " is defined already; choose another name");
  return false;
}

bool Parser::define_buffer(const Token& at, const Buffer& buffer) {
  if (failed()) return false;
  if (buffers_.emplace(buffer->name, buffer).second) return true;
  fail(at, "tensor " + quote_name(buffer->name) + " is defined already; choose another name");
  return false;
}

Expr Parser::expression() { return infix(0).e; }

Parser::Parsed Parser::checked(const Token& at, Parsed parsed) {
  if (parsed.depth <= kMaxDepth) return parsed;
  fail(at, "the expression is nested too deeply (more than " + std::to_string(kMaxDepth) + " levels)");
  return {};
}

Parser::Parsed Parser::make_infix(const Token& at, BinaryOp op, Parsed a, Parsed b) {
  if (failed()) return {};
  if (auto error = type_error(op, a.e.dtype(), b.e.dtype())) {
    fail(at, *std::move(error));
    return {};
  }
  const int depth = std::max(a.depth, b.depth) + 1;
  return checked(at, {binary(op, std::move(a.e), std::move(b.e)), depth});
}

namespace {

std::optional<BinaryOp> infix_operator(const Token& token) {
  if (token.kind != Token::Kind::kSymbol) return std::nullopt;
  static constexpr BinaryOp kAll[] = {
      BinaryOp::kAdd,      BinaryOp::kSub,    BinaryOp::kMul, BinaryOp::kDiv, BinaryOp::kFloorDiv,
      BinaryOp::kFloorMod, BinaryOp::kEq,     BinaryOp::kNe,  BinaryOp::kLt,  BinaryOp::kLe,
      BinaryOp::kGt,       BinaryOp::kGe,     BinaryOp::kAnd, BinaryOp::kOr,  BinaryOp::kBitAnd,
      BinaryOp::kBitOr,    BinaryOp::kBitXor, BinaryOp::kShl, BinaryOp::kShr};
  for (BinaryOp op : kAll) {
    if (to_string(op) == token.text) return op;
  }
  return std::nullopt;
}

std::optional<Intrinsic> intrinsic_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(kLastIntrinsic); ++i) {
    if (to_string(static_cast<Intrinsic>(i)) == name) return static_cast<Intrinsic>(i);
  }
  return std::nullopt;
}

}  // namespace

Parser::Parsed Parser::infix(int strength) {
  if (failed()) return {};
  if (nesting_ >= kMaxNesting) {
    fail(lexer_.peek(),
         "the text is nested too deeply (more than " + std::to_string(kMaxNesting) + " levels)");
    return {};
  }
  ++nesting_;
  Parsed left = prefix();
  while (!failed()) {
    const auto op = infix_operator(lexer_.peek());
    if (!op.has_value() || strength_of(*op) < strength) break;
    const Token at = lexer_.next();
    Parsed right = infix(strength_of(*op) + 1);
    left = make_infix(at, *op, std::move(left), std::move(right));
  }
  --nesting_;
  return failed() ? Parsed{} : left;
}

Parser::Parsed Parser::prefix() {
  const Token at = lexer_.peek();
  std::optional<UnaryOp> op;
  for (UnaryOp candidate : {UnaryOp::kNeg, UnaryOp::kNot, UnaryOp::kBitNot}) {
    if (at.kind == Token::Kind::kSymbol && at.text == to_string(candidate)) op = candidate;
  }
  if (!op.has_value()) return primary();
  lexer_.next();
  const Token::Kind kind = lexer_.peek().kind;
  if (*op == UnaryOp::kNeg && (kind == Token::Kind::kInt || kind == Token::Kind::kFloat))
    return number(true, at);
  // Parses only operators that bind more tightly than any infix operator.
  Parsed a = infix(1000);
  if (failed()) return {};
  if (auto error = type_error(*op, a.e.dtype())) {
    fail(at, *std::move(error));
    return {};
  }
  return checked(at, {unary(*op, std::move(a.e)), a.depth + 1});
}

Parser::Parsed Parser::number(bool negative, const Token& at) {
  const Token token = lexer_.next();
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  // The suffix begins at the first letter that does not belong to an exponent.
  size_t length = 0;
  const auto is_digit = [&](size_t i) {
    return i < token.text.size() && token.text[i] >= '0' && token.text[i] <= '9';
  };
  while (is_digit(length) || (length < token.text.size() && token.text[length] == '.')) ++length;
  if (token.kind == Token::Kind::kFloat && length < token.text.size() &&
      (token.text[length] == 'e' || token.text[length] == 'E')) {
    ++length;
    if (length < token.text.size() && !is_digit(length)) ++length;
    while (is_digit(length)) ++length;
  }
  DType dtype = plain_numbers_.value_or(token.kind == Token::Kind::kInt ? DType::kI64 : DType::kF32);
  if (length < token.text.size()) {
    const auto suffix = parse_dtype(token.text.substr(length));
    if (!suffix.has_value() || *suffix == DType::kBool) {
      fail(token, "unknown suffix of the number " + describe(token));
      return {};
    }
    dtype = *suffix;
  }
  const char* digits_end = begin + length;
  const auto unfit = [&] {
    fail(at, "the number " + describe(token) + " does not fit " + std::string(to_string(dtype)));
    return Parsed{};
  };
  if (!is_float(dtype)) {
    if (token.kind == Token::Kind::kFloat) return unfit();
    uint64_t magnitude = 0;
    const auto r = std::from_chars(begin, digits_end, magnitude);
    if (r.ec != std::errc() || r.ptr != digits_end) return unfit();
    if (dtype == DType::kU64) {
      if (negative && magnitude != 0) return unfit();
      return {int_imm(dtype, magnitude), 1};
    }
    const uint64_t limit = (uint64_t{1} << 63) - (negative ? 0 : 1);
    if (magnitude > limit) return unfit();
    const int64_t value = negative ? 0 - magnitude : magnitude;
    if (scalar_int(dtype, value).i != value) return unfit();
    return {int_imm(dtype, value), 1};
  }
  double value = 0;
  std::from_chars_result r{end, std::errc()};
  if (dtype == DType::kF64) {
    r = std::from_chars(begin, digits_end, value);
  } else {
    // Converted directly to f32: a detour through f64 could round twice.
    float f = 0;
    r = std::from_chars(begin, digits_end, f);
    value = f;
  }
  if (r.ec != std::errc() || r.ptr != digits_end) return unfit();
  Expr e = float_imm(dtype, negative ? -value : value);
  if (!std::isfinite(as<FloatImm>(e)->value)) return unfit();
  return {std::move(e), 1};
}

Parser::Parsed Parser::primary() {
  if (failed()) return {};
  const Token token = lexer_.peek();
  if (token.kind == Token::Kind::kInt || token.kind == Token::Kind::kFloat) return number(false, token);
  if (accept("(")) {
    Parsed inner = infix(0);
    expect(")");
    return inner;
  }
  if (!token.is_name()) {
    fail(token, "expected an expression, found " + describe(token));
    return {};
  }
  const bool plain = token.kind == Token::Kind::kName;
  if (plain && (token.text == "true" || token.text == "false")) {
    lexer_.next();
    return {bool_imm(token.text == "true"), 1};
  }
  const std::string name = expect_name("a name");
  if (failed()) return {};
  if (plain && lexer_.peek().is("(")) return function(token);
  if (lexer_.peek().is("[")) {
    const Buffer buffer = find_buffer(token, name);
    if (failed()) return {};
    int depth = 0;
    std::vector<Expr> indices = index_list(buffer, token, &depth);
    if (failed()) return {};
    return checked(token, {load(buffer, std::move(indices)), depth + 1});
  }
  const auto it = variables_.find(name);
  if (it == variables_.end()) {
    fail(token, "no variable is called " + quote_name(name));
    return {};
  }
  return {it->second, 1};
}

std::vector<Expr> Parser::index_list(const Buffer& buffer, const Token& at, int* depth) {
  std::vector<Expr> out;
  expect("[");
  if (!accept("]")) {
    do {
      Parsed index = infix(0);
      if (depth != nullptr) *depth = std::max(*depth, index.depth);
      out.push_back(std::move(index.e));
    } while (accept(","));
    expect("]");
  }
  if (failed()) return {};
  if (out.size() != buffer->shape.size()) {
    fail(at, quote_name(buffer->name) + " has " + std::to_string(buffer->shape.size()) + " dimensions, not " +
                 std::to_string(out.size()));
    return {};
  }
  for (const Expr& index : out) {
    if (!is_int(index.dtype())) {
      fail(at, "an index of " + quote_name(buffer->name) + " is " + std::string(to_string(index.dtype())) +
                   ", not an integer");
      return {};
    }
  }
  return out;
}

std::vector<Parser::Parsed> Parser::argument_list(const Token& at, size_t count) {
  std::vector<Parsed> out;
  expect("(");
  if (!failed()) {
    do out.push_back(infix(0));
    while (accept(","));
  }
  expect(")");
  if (!failed() && out.size() != count) {
    fail(at,
         describe(at) + " takes " + std::to_string(count) + " arguments, not " + std::to_string(out.size()));
  }
  if (failed()) out.clear();
  return out;
}

Parser::Parsed Parser::cast_to(DType dtype, const Token& at) {
  // f32(inf), f32(-inf) and f32(nan) are literals.
  const bool negative = lexer_.peek(1).is("-");
  expect("(");
  const Token& word = lexer_.peek(negative ? 1 : 0);
  if (is_float(dtype) && (word.is("inf") || word.is("nan"))) {
    const double value =
        word.is("inf") ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    if (negative) lexer_.next();
    lexer_.next();
    expect(")");
    if (failed()) return {};
    return {float_imm(dtype, negative ? -value : value), 1};
  }
  Parsed a = infix(0);
  expect(")");
  if (failed()) return {};
  return checked(at, {cast(dtype, std::move(a.e)), a.depth + 1});
}

Parser::Parsed Parser::function(const Token& name) {
  if (name.text == "min" || name.text == "max") {
    std::vector<Parsed> args = argument_list(name, 2);
    if (failed()) return {};
    return make_infix(name, name.text == "min" ? BinaryOp::kMin : BinaryOp::kMax, std::move(args[0]),
                      std::move(args[1]));
  }
  if (name.text == "select") {
    std::vector<Parsed> args = argument_list(name, 3);
    if (failed()) return {};
    if (auto error = select_type_error(args[0].e.dtype(), args[1].e.dtype(), args[2].e.dtype())) {
      fail(name, *std::move(error));
      return {};
    }
    const int depth = std::max({args[0].depth, args[1].depth, args[2].depth}) + 1;
    return checked(name, {select(std::move(args[0].e), std::move(args[1].e), std::move(args[2].e)), depth});
  }
  if (const auto dtype = parse_dtype(name.text)) return cast_to(*dtype, name);
  const auto intrinsic = intrinsic_named(name.text);
  if (!intrinsic.has_value()) {
    fail(name, "no function is called " + describe(name));
    return {};
  }
  std::vector<Parsed> args = argument_list(name, arity(*intrinsic));
  if (failed()) return {};
  if (auto error = type_error(*intrinsic, args.front().e.dtype(), args.back().e.dtype())) {
    fail(name, *std::move(error));
    return {};
  }
  int depth = 1;
  std::vector<Expr> list;
  for (Parsed& arg : args) {
    depth = std::max(depth, arg.depth + 1);
    list.push_back(std::move(arg.e));
  }
  return checked(name, {call(*intrinsic, std::move(list)), depth});
}

}  // namespace tensorsmith::ir
