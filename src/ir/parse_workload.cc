#include <utility>

#include "ir/parser.h"
#include "ir/text.h"
#include "ir/text_names.h"

namespace tensorsmith::ir {

namespace {

std::optional<Combiner> combiner_named(std::string_view name) {
  for (Combiner c : {Combiner::kSum, Combiner::kProd, Combiner::kMax, Combiner::kMin, Combiner::kArgMax,
                     Combiner::kArgMin}) {
    if (to_string(c) == name) return c;
  }
  return std::nullopt;
}

class WorkloadParser : Parser {
 public:
  using Parser::Parser;

  Result<Workload> run() {
    const Token start = lexer_.peek();
    if (!lexer_.peek().is("workload")) {
      fail(start, "expected 'workload', found " + describe(start));
    } else {
      lexer_.next();
    }
    expect("{");
    while (!failed() && !accept("}")) item();
    if (!failed() && lexer_.peek().kind != Token::Kind::kEnd)
      fail(lexer_.peek(), "expected the end of the text, found " + describe(lexer_.peek()));
    if (failed()) return take_error();
    if (Status s = verify(workload_); !s.ok()) {
      // Reports the position of the operation that the verifier names.
      Token at = start;
      for (size_t i = 0; i < workload_.operations.size(); ++i) {
        if (s.error().place == "operation '" + workload_.operations[i]->name + "'") at = positions_[i];
      }
      return Error{s.error().code, position_of(at), s.error().message()};
    }
    return std::move(workload_);
  }

 private:
  void item() {
    const Token word = lexer_.peek();
    const bool keyword = word.kind == Token::Kind::kName && lexer_.peek(1).is_name();
    if (keyword && (word.text == "input" || word.text == "const")) {
      lexer_.next();
      return placeholder_item(word.text == "const", false);
    }
    if (word.kind == Token::Kind::kName && word.text == "const" && lexer_.peek(1).text == "(") {
      lexer_.next();
      expect("(");
      const Token range = lexer_.peek();
      if (expect_name("'reduced_range'") != "reduced_range" && !failed())
        fail(range, "expected 'reduced_range', found " + describe(range));
      expect(")");
      return placeholder_item(true, true);
    }
    if (keyword && word.text == "output") {
      lexer_.next();
      do {
        const Token at = lexer_.peek();
        const std::string name = expect_name("the name of a tensor");
        if (failed()) return;
        if (Buffer buffer = find_buffer(at, name)) workload_.outputs.push_back(std::move(buffer));
      } while (accept(","));
      return;
    }
    operation_item();
  }

  void add(const Token& at, Operation op) {
    for (const Buffer& output : op.outputs) {
      if (!define_buffer(at, output)) return;
    }
    positions_.push_back(at);
    workload_.operations.push_back(std::make_shared<const Operation>(std::move(op)));
  }

  void placeholder_item(bool is_constant, bool reduced_range) {
    const Token at = lexer_.peek();
    Operation op;
    op.kind = OperationKind::kPlaceholder;
    op.is_constant = is_constant;
    op.reduced_range = reduced_range;
    op.name = expect_name("the name of a tensor");
    expect(":");
    TensorType type = tensor_type();
    if (failed()) return;
    for (size_t d = 0; d < type.shape.size(); ++d)
      op.spatial.push_back({Var("i" + std::to_string(d)), type.shape[d]});
    op.outputs.push_back(
        make_buffer(op.name, type.dtype, std::move(type.shape), type.scope, std::move(type.strides)));
    add(at, std::move(op));
  }

  std::vector<Axis> axes(std::string_view close) {
    std::vector<Axis> out;
    if (accept(close)) return out;
    do {
      const Token at = lexer_.peek();
      const std::string name = expect_name("the name of an axis");
      expect(":");
      const int64_t extent = expect_count("the extent of an axis");
      if (failed()) return {};
      out.push_back({Var(name), extent});
      define_variable(at, name, out.back().var);
    } while (accept(","));
    expect(close);
    return out;
  }

  void operation_item() {
    variables_.clear();
    const Token at = lexer_.peek();
    std::vector<std::string> names;
    do names.push_back(expect_name("the name of a tensor"));
    while (accept(","));
    expect(":");
    std::vector<DType> dtypes;
    const bool parentheses = accept("(");
    do dtypes.push_back(expect_dtype().value_or(DType::kF32));
    while (parentheses && accept(","));
    if (parentheses) expect(")");
    if (!failed() && (names.size() != dtypes.size() || names.size() > 2))
      fail(at, "an operation has one or two outputs, each with a dtype");
    Operation op;
    expect("[");
    op.spatial = axes("]");
    if (failed()) return;
    const MemoryScope scope = optional_scope();
    expect("=");
    const Token combiner = lexer_.peek();
    if (!failed() && combiner.kind == Token::Kind::kName && lexer_.peek(1).is("{")) {
      const auto known = combiner_named(combiner.text);
      if (!known.has_value()) return fail(combiner, "no reduction is called " + describe(combiner));
      op.combiner = *known;
      lexer_.next();
      expect("{");
      op.reduce = axes("}");
    }
    const Token bodies_at = lexer_.peek();
    if (names.size() == 2) {
      expect("(");
      op.bodies.push_back(expression());
      expect(",");
      op.bodies.push_back(expression());
      expect(")");
    } else {
      op.bodies.push_back(expression());
    }
    if (failed()) return;
    std::vector<int64_t> shape;
    for (const Axis& axis : op.spatial) shape.push_back(axis.extent);
    for (size_t i = 0; i < names.size(); ++i) {
      if (op.bodies[i].dtype() != dtypes[i]) {
        return fail(bodies_at, "the value of " + quote_name(names[i]) + " is " +
                                   std::string(to_string(op.bodies[i].dtype())) + ", not " +
                                   std::string(to_string(dtypes[i])));
      }
      op.outputs.push_back(make_buffer(names[i], dtypes[i], shape, scope));
    }
    op.name = names.front();
    add(at, std::move(op));
  }

  Workload workload_;
  std::vector<Token> positions_;  // position of each operation
};

}  // namespace

Result<Workload> parse_workload(std::string_view text) { return WorkloadParser(text).run(); }

}  // namespace tensorsmith::ir
