#include "record/ansor/dag_syntax.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ir/lexer.h"

namespace tensorsmith::record {

namespace {

using ir::BinaryOp;
using ir::Intrinsic;
using ir::Token;
using Kind = DagNode::Kind;

constexpr int kMaxDagNesting = 200;  // operands inside operands: levels of the parser's recursion
constexpr int kMaxDagDepth = 500;    // levels of an expression's tree, which a chain a + b + c deepens too
constexpr size_t kMaxOperations = 4096;
constexpr const char* kTooDeep = "the expression nests too deeply";

struct Infix {
  std::string_view symbol;
  BinaryOp op;
  int strength;
};
// TVM prints parentheses around every binary operation. Text written by hand may omit them: then the
// precedences are those of C.
// TVM prints the truncated remainder as %. We have only the floored one, which is the same unless the
// operands have different signs. Axes and extents are not negative.
constexpr Infix kInfix[] = {
    {"||", BinaryOp::kOr, 1},       {"&&", BinaryOp::kAnd, 2},     {"==", BinaryOp::kEq, 3},
    {"!=", BinaryOp::kNe, 3},       {"<=", BinaryOp::kLe, 4},      {">=", BinaryOp::kGe, 4},
    {"<", BinaryOp::kLt, 4},        {">", BinaryOp::kGt, 4},       {"+", BinaryOp::kAdd, 5},
    {"-", BinaryOp::kSub, 5},       {"*", BinaryOp::kMul, 6},      {"/", BinaryOp::kDiv, 6},
    {"//", BinaryOp::kFloorDiv, 6}, {"%", BinaryOp::kFloorMod, 6},
};
constexpr int kStrongest = 6;

std::optional<BinaryOp> function_operator(std::string_view name) {
  if (name == "max") return BinaryOp::kMax;
  if (name == "min") return BinaryOp::kMin;
  if (name == "floordiv") return BinaryOp::kFloorDiv;
  if (name == "floormod") return BinaryOp::kFloorMod;
  if (name == "truncdiv") return BinaryOp::kDiv;
  return std::nullopt;
}

// TVM's names; if several map to one intrinsic, the first is written.
constexpr std::pair<std::string_view, Intrinsic> kIntrinsics[] = {
    {"fabs", Intrinsic::kAbs},    {"abs", Intrinsic::kAbs},     {"sqrt", Intrinsic::kSqrt},
    {"exp", Intrinsic::kExp},     {"log", Intrinsic::kLog},     {"sin", Intrinsic::kSin},
    {"cos", Intrinsic::kCos},     {"tan", Intrinsic::kTan},     {"asin", Intrinsic::kAsin},
    {"acos", Intrinsic::kAcos},   {"atan", Intrinsic::kAtan},   {"sinh", Intrinsic::kSinh},
    {"cosh", Intrinsic::kCosh},   {"tanh", Intrinsic::kTanh},   {"asinh", Intrinsic::kAsinh},
    {"acosh", Intrinsic::kAcosh}, {"atanh", Intrinsic::kAtanh}, {"erf", Intrinsic::kErf},
    {"floor", Intrinsic::kFloor}, {"ceil", Intrinsic::kCeil},   {"nearbyint", Intrinsic::kRound},
    {"round", Intrinsic::kRound}, {"trunc", Intrinsic::kTrunc}, {"isnan", Intrinsic::kIsNan},
    {"isinf", Intrinsic::kIsInf}, {"pow", Intrinsic::kPow},     {"fmod", Intrinsic::kFmod},
};

std::optional<Intrinsic> intrinsic_named(std::string_view name) {
  for (const auto& [known, intrinsic] : kIntrinsics)
    if (known == name) return intrinsic;
  return std::nullopt;
}

std::optional<ir::DType> dtype_named(std::string_view name) {
  if (name == "uint1") return ir::DType::kBool;
  return find_dtype(&DTypeRow::name, name);
}

std::string shown(const Token& token) {
  if (token.kind == Token::Kind::kEnd) return "the end of the text";
  return "'" + std::string(token.text.substr(0, 40)) + "'";
}

class DagParser {
 public:
  explicit DagParser(std::string_view text) : lexer_(text) {}

  Result<DagSyntax> run() {
    while (!error_ && lexer_.peek().kind != Token::Kind::kEnd) {
      if (dag_.size() >= kMaxOperations) fail(lexer_.peek(), "the DAG has too many operations");
      operation();
    }
    if (!error_ && dag_.empty()) fail(lexer_.peek(), "the DAG is empty");
    if (error_) return *std::move(error_);
    return std::move(dag_);
  }

 private:
  void fail(const Token& at, std::string reason, ErrorCode code = ErrorCode::kCorrupt) {
    if (error_) return;
    error_ = Error{code, std::to_string(at.line) + ":" + std::to_string(at.column), std::move(reason)};
  }
  bool accept(std::string_view symbol) {
    if (error_ || !lexer_.peek().is(symbol)) return false;
    lexer_.next();
    return true;
  }
  void expect(std::string_view symbol) {
    if (!accept(symbol))
      fail(lexer_.peek(), "expected '" + std::string(symbol) + "', not " + shown(lexer_.peek()));
  }
  std::string_view name(std::string_view what) {
    const Token token = lexer_.next();
    if (token.kind != Token::Kind::kName)
      fail(token, "expected " + std::string(what) + ", not " + shown(token));
    return token.text;
  }

  // --- operations

  void operation() {
    const Token at = lexer_.peek();
    operation_ = {};
    operation_.line = at.line;
    operation_.column = at.column;
    operation_.name = std::string(name("the name of a tensor"));
    if (!error_ && by_name_.count(operation_.name) != 0)
      fail(at, "tensor '" + operation_.name + "' is defined twice");
    if (accept("=")) {
      placeholder();
    } else {
      compute();
    }
    if (error_) return;
    by_name_.emplace(operation_.name, dag_.size());
    dag_.push_back(std::move(operation_));
  }

  void placeholder() {
    operation_.is_placeholder = true;
    expect("PLACEHOLDER");
    expect("[");
    while (!error_ && !lexer_.peek().is("]")) {
      const Token token = lexer_.next();
      int64_t value = 0;
      if (token.kind != Token::Kind::kInt || !to_integer(token.text, &value) || value < 1)
        return fail(token, "expected a positive extent, not " + shown(token));
      operation_.shape.push_back(value);
      if (!accept(",")) break;
    }
    expect("]");
    operation_.rank = operation_.shape.size();
  }

  void compute() {
    expect("(");
    while (!error_ && !lexer_.peek().is(")")) {
      const Token at = lexer_.peek();
      const std::string_view axis = name("the name of an axis");
      if (!error_ && axis_named(axis) >= 0) fail(at, "axis '" + std::string(axis) + "' is named twice");
      operation_.axes.emplace_back(axis);
      if (!accept(",")) break;
    }
    expect(")");
    operation_.rank = operation_.axes.size();
    const Token at = lexer_.peek();
    if (accept("+")) {
      operation_.combiner = ir::Combiner::kSum;
    } else if (accept("*")) {
      operation_.combiner = ir::Combiner::kProd;
    } else if (accept("max")) {
      operation_.combiner = ir::Combiner::kMax;
    } else if (accept("min")) {
      operation_.combiner = ir::Combiner::kMin;
    } else if (at.is("select") || at.is("reduce") || at.kind == Token::Kind::kBad) {
      return fail(at, "a reduction of this form is not supported", ErrorCode::kUnsupported);
    }
    expect("=");
    operation_.body = expression(1);
    if (!error_ && operation_.combiner != ir::Combiner::kNone && operation_.axes.size() == operation_.rank)
      fail(at, "the reduction of '" + operation_.name + "' has no reduce axis");
  }

  // --- expressions: each function returns the index of a node, or -1 after an error

  int node(DagNode made, const Token& at) {
    if (error_) return -1;
    made.line = at.line;
    made.column = at.column;
    for (const int child : made.children)
      made.depth = std::max(made.depth, operation_.nodes[child].depth + 1);
    if (made.depth > kMaxDagDepth) {
      fail(at, kTooDeep);
      return -1;
    }
    operation_.nodes.push_back(std::move(made));
    return std::ssize(operation_.nodes) - 1;
  }
  int binary(BinaryOp op, int a, int b, const Token& at) {
    DagNode made;
    made.kind = Kind::kBinary;
    made.binary = op;
    made.children = {a, b};
    return node(std::move(made), at);
  }

  int expression(int strength) {
    if (error_) return -1;
    if (strength > kStrongest) return prefix();
    int left = expression(strength + 1);
    while (!error_) {
      const Infix* found = nullptr;
      for (const Infix& infix : kInfix) {
        if (infix.strength == strength && lexer_.peek().is(infix.symbol)) found = &infix;
      }
      if (found == nullptr) break;
      const Token at = lexer_.next();
      left = binary(found->op, left, expression(strength + 1), at);
    }
    return left;
  }

  // Parses an operand. All recursion of the parser goes through here, so nesting is counted only here.
  int prefix() {
    const Token at = lexer_.peek();
    if (++nesting_ > kMaxDagNesting) fail(at, kTooDeep);
    int operand = -1;
    if (!error_) operand = at.is("-") || at.is("!") ? unary() : primary();
    --nesting_;
    return operand;
  }

  int unary() {
    const Token at = lexer_.next();
    const Token::Kind next = lexer_.peek().kind;
    if (at.is("-") && (next == Token::Kind::kInt || next == Token::Kind::kFloat))
      return number(lexer_.next(), "-");  // a negative literal, not an operation
    DagNode made;
    made.kind = Kind::kUnary;
    made.unary = at.is("-") ? ir::UnaryOp::kNeg : ir::UnaryOp::kNot;
    made.children = {prefix()};
    return node(std::move(made), at);
  }

  int primary() {
    const Token at = lexer_.next();
    switch (at.kind) {
      case Token::Kind::kInt:
      case Token::Kind::kFloat:
        return number(at, "");
      case Token::Kind::kName:
        return named(at);
      case Token::Kind::kSymbol:
        if (at.is("(")) return parenthesized();
        break;
      case Token::Kind::kQuoted:
      case Token::Kind::kEnd:
      case Token::Kind::kBad:
        break;
    }
    fail(at, "expected an expression, not " + shown(at));
    return -1;
  }

  // Parses "(a + b)", or a typed literal: "(int64)5".
  int parenthesized() {
    if (lexer_.peek().kind == Token::Kind::kName && lexer_.peek(1).is(")")) {
      if (const auto dtype = dtype_named(lexer_.peek().text)) {
        const Token at = lexer_.next();
        lexer_.next();
        return cast(*dtype, prefix(), at);
      }
    }
    const int inner = expression(1);
    expect(")");
    return inner;
  }

  int cast(ir::DType dtype, int operand, const Token& at) {
    DagNode made;
    made.kind = Kind::kCast;
    made.dtype = dtype;
    made.children = {operand};
    return node(std::move(made), at);
  }

  static bool to_integer(std::string_view text, int64_t* value) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return code == std::errc() && end == text.data() + text.size();
  }

  // Makes a literal of 3, 1e-05f, 0.5f64, 0f or 1h, after the sign "-" or "". The lexer calls 0f and 1h
  // integers, too, but they are floats because of their suffixes.
  int number(const Token& at, std::string_view sign) {
    const std::string text = std::string(sign) + std::string(at.text);
    DagNode made;
    if (at.text.find_first_not_of("0123456789") == std::string_view::npos) {
      made.kind = Kind::kInt;
      if (!to_integer(text, &made.integer)) fail(at, "the number " + shown(at) + " is out of range");
      return node(std::move(made), at);
    }
    made.kind = Kind::kFloat;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), made.number);
    const std::string_view suffix = std::string_view(text).substr(end - text.data());
    if (suffix == "f64") {
      made.dtype = ir::DType::kF64;
    } else if (suffix == "h" || suffix == "f16") {
      made.dtype = ir::DType::kF16;
    } else if (!suffix.empty() && suffix != "f" && suffix != "f32") {
      fail(at, "cannot read the number " + shown(at));
    }
    if (code != std::errc()) fail(at, "the number " + shown(at) + " is out of range");
    return node(std::move(made), at);
  }

  int axis_named(std::string_view axis) const {
    for (size_t i = 0; i < operation_.axes.size(); ++i) {
      if (operation_.axes[i] == axis) return i;
    }
    return -1;
  }

  std::vector<int> arguments(std::string_view close) {
    std::vector<int> out;
    while (!error_ && !lexer_.peek().is(close)) {
      out.push_back(expression(1));
      if (!accept(",")) break;
    }
    expect(close);
    return out;
  }

  int named(const Token& at) {
    if (lexer_.peek().is("[")) return read(at);
    if (lexer_.peek().is("(")) return function(at);
    if (at.is("True") || at.is("False")) {
      DagNode made;
      made.integer = at.is("True") ? 1 : 0;
      return cast(ir::DType::kBool, node(std::move(made), at), at);
    }
    DagNode made;
    made.kind = Kind::kAxis;
    made.index = axis_named(at.text);
    if (made.index < 0) {
      if (operation_.combiner == ir::Combiner::kNone) {
        fail(at,
             "'" + std::string(at.text) + "' is neither an axis of '" + operation_.name + "' nor a tensor");
        return -1;
      }
      made.index = operation_.axes.size();
      operation_.axes.emplace_back(at.text);
    }
    return node(std::move(made), at);
  }

  int read(const Token& at) {
    const auto found = by_name_.find(std::string(at.text));
    if (found == by_name_.end()) {
      fail(at, "tensor " + shown(at) + " is not defined before its use");
      return -1;
    }
    lexer_.next();
    DagNode made;
    made.kind = Kind::kRead;
    made.index = found->second;
    made.children = arguments("]");
    const size_t rank = dag_[found->second].rank;
    if (!error_ && made.children.size() != rank)
      fail(at, "tensor " + shown(at) + " has " + std::to_string(rank) + " dimensions, not " +
                   std::to_string(made.children.size()));
    return node(std::move(made), at);
  }

  int function(const Token& at) {
    lexer_.next();
    std::string_view name = at.text;
    for (std::string_view prefix : {"tir.", "T."}) {
      if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
    }
    const std::vector<int> args = arguments(")");
    if (error_) return -1;
    const auto takes = [&](size_t count) {
      if (args.size() != count)
        fail(at, shown(at) + " takes " + std::to_string(count) + " arguments, not " +
                     std::to_string(args.size()));
      return !error_;
    };
    if (const auto dtype = dtype_named(name)) return takes(1) ? cast(*dtype, args[0], at) : -1;
    if (const auto op = function_operator(name)) return takes(2) ? binary(*op, args[0], args[1], at) : -1;
    DagNode made;
    made.children = args;
    if (name == "select" || name == "Select" || name == "if_then_else") {
      made.kind = Kind::kSelect;
      return takes(3) ? node(std::move(made), at) : -1;
    }
    if (name == "likely") return takes(1) ? args[0] : -1;
    if (name == "sigmoid" || name == "rsqrt") return takes(1) ? composed(name, args[0], at) : -1;
    if (const auto intrinsic = intrinsic_named(name)) {
      made.kind = Kind::kCall;
      made.intrinsic = *intrinsic;
      return takes(ir::arity(*intrinsic)) ? node(std::move(made), at) : -1;
    }
    fail(at, "function " + shown(at) + " is not supported", ErrorCode::kUnsupported);
    return -1;
  }

  // Builds functions that are not intrinsics of ours: 1 / (1 + exp(-x)), 1 / sqrt(x).
  int composed(std::string_view name, int x, const Token& at) {
    DagNode one;
    one.kind = Kind::kFloat;
    one.number = 1;
    DagNode inner;
    inner.kind = Kind::kCall;
    if (name == "rsqrt") {
      inner.intrinsic = Intrinsic::kSqrt;
      inner.children = {x};
      const int root = node(std::move(inner), at);
      return binary(BinaryOp::kDiv, node(one, at), root, at);
    }
    DagNode negated;
    negated.kind = Kind::kUnary;
    negated.unary = ir::UnaryOp::kNeg;
    negated.children = {x};
    inner.intrinsic = Intrinsic::kExp;
    inner.children = {node(std::move(negated), at)};
    const int exp = node(std::move(inner), at);
    const int sum = binary(BinaryOp::kAdd, node(one, at), exp, at);
    return binary(BinaryOp::kDiv, node(one, at), sum, at);
  }

  ir::Lexer lexer_;
  DagSyntax dag_;
  DagOperation operation_;
  std::unordered_map<std::string, int> by_name_;
  int nesting_ = 0;
  std::optional<Error> error_;
};

}  // namespace

std::string_view tvm_name(ir::Intrinsic intrinsic) {
  for (const auto& [name, known] : kIntrinsics)
    if (known == intrinsic) return name;
  return "";
}

Result<DagSyntax> parse_dag_syntax(std::string_view text) { return DagParser(text).run(); }

}  // namespace tensorsmith::record
