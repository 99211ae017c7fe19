#include "ir/formula.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ir/analysis.h"
#include "ir/parser.h"
#include "ir/scalar.h"

namespace tensorsmith::ir {

namespace {

class FormulaParser : Parser {
 public:
  FormulaParser(std::string_view text, const std::vector<Var>& variables) : Parser(text) {
    plain_numbers_ = DType::kF64;
    for (const Var& variable : variables) variables_.emplace(variable.name(), variable);
  }

  Result<Expr> run() {
    const Token start = lexer_.peek();
    Expr e = expression();
    if (!failed() && lexer_.peek().kind != Token::Kind::kEnd)
      fail(lexer_.peek(), "expected an operator or the end of the text, found " + describe(lexer_.peek()));
    if (!failed() && e.dtype() != DType::kF64)
      fail(start, "expected a number, but the formula has type " + std::string(to_string(e.dtype())));
    if (!failed()) return e;
    Error error = take_error();
    error.code = ErrorCode::kInvalidArgument;
    return error;
  }
};

// `values`: by variable.
Scalar formula_value(const Expr& e, std::span<const Var> variables, std::span<const double> values) {
  const auto of = [&](const Expr& part) { return formula_value(part, variables, values); };
  return visit(
      overloaded{
          [&](const IntImm& imm) { return scalar_int(e.dtype(), imm.value); },
          [&](const FloatImm& imm) { return scalar_float(e.dtype(), imm.value); },
          [&](const VarRef& ref) {
            const auto at = std::find(variables.begin(), variables.end(), ref.var);
            return scalar_float(e.dtype(), values[static_cast<size_t>(at - variables.begin())]);
          },
          [&](const Unary& unary) { return eval_unary(unary.op, of(unary.a)); },
          [&](const Binary& binary) { return eval_binary(binary.op, of(binary.a), of(binary.b)); },
          [&](const Select& select) { return of(of(select.condition).i != 0 ? select.a : select.b); },
          [&](const Cast& cast) { return eval_cast(e.dtype(), of(cast.a)); },
          [&](const Call& call) {
            const Scalar first = of(call.args[0]);
            return call.args.size() > 1 ? eval_call(call.intrinsic, first, of(call.args[1]))
                                        : eval_call(call.intrinsic, first);
          },
          [&](const Load&) -> Scalar { throw InternalError("a formula reads a tensor"); },
      },
      e);
}

}  // namespace

Result<Formula> Formula::parse(std::string_view text, std::span<const std::string_view> names) {
  Formula formula;
  for (const std::string_view name : names) formula.variables_.emplace_back(std::string(name), DType::kF64);
  TS_ASSIGN_OR_RETURN(formula.expression_, FormulaParser(text, formula.variables_).run());
  return formula;
}

bool Formula::uses(size_t index) const { return uses_var(expression_, variables_[index]); }

double Formula::value(std::span<const double> values) const {
  TS_CHECK(values.size() == variables_.size(), "a formula gets one value for each variable");
  return formula_value(expression_, variables_, values).f;
}

}  // namespace tensorsmith::ir
