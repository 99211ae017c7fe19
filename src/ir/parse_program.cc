#include <utility>

#include "ir/parser.h"
#include "ir/text.h"
#include "ir/text_names.h"

namespace tensorsmith::ir {

namespace {

class ProgramParser : Parser {
 public:
  using Parser::Parser;

  Result<Program> run() {
    Program out;
    const Token start = lexer_.next();
    if (!start.is("program")) fail(start, "expected 'program', found " + describe(start));
    out.name = expect_name("the program's name");
    expect("{");
    while (!failed() && lexer_.peek().kind == Token::Kind::kName && lexer_.peek(1).is_name() &&
           (lexer_.peek().text == "input" || lexer_.peek().text == "output")) {
      const bool input = lexer_.next().text == "input";
      if (Buffer buffer = declaration()) (input ? out.inputs : out.outputs).push_back(std::move(buffer));
    }
    out.body = statements();
    if (!failed() && lexer_.peek().kind != Token::Kind::kEnd)
      fail(lexer_.peek(), "expected the end of the text, found " + describe(lexer_.peek()));
    if (failed()) return take_error();
    return out;
  }

 private:
  // Parses `name: type`.
  Buffer declaration() {
    const Token at = lexer_.peek();
    std::string name = expect_name("the name of a tensor");
    expect(":");
    TensorType type = tensor_type();
    if (failed()) return nullptr;
    Buffer buffer =
        make_buffer(std::move(name), type.dtype, std::move(type.shape), type.scope, std::move(type.strides));
    return define_buffer(at, buffer) ? buffer : nullptr;
  }

  // Parses statements up to and including the closing brace.
  Stmt statements() {
    std::vector<Stmt> out;
    while (!failed() && !accept("}")) out.push_back(statement());
    if (failed()) return nullptr;
    return make_seq(std::move(out));
  }

  Stmt block() {
    if (!expect("{")) return nullptr;
    if (nesting_ >= kMaxNesting) {
      fail(lexer_.peek(),
           "the text is nested too deeply (more than " + std::to_string(kMaxNesting) + " levels)");
      return nullptr;
    }
    ++nesting_;
    Stmt out = statements();
    --nesting_;
    return out;
  }

  struct LoopWord {
    std::string_view word;
    ForKind kind;
    ThreadAxis thread = ThreadAxis::kNone;
  };
  static std::optional<LoopWord> loop_word(std::string_view word) {
    if (word == "for") return LoopWord{word, ForKind::kSerial};
    for (ForKind kind : {ForKind::kParallel, ForKind::kVectorized, ForKind::kUnrolled}) {
      if (word == to_string(kind)) return LoopWord{word, kind};
    }
    for (ThreadAxis axis :
         {ThreadAxis::kBlockX, ThreadAxis::kBlockY, ThreadAxis::kBlockZ, ThreadAxis::kThreadX,
          ThreadAxis::kThreadY, ThreadAxis::kThreadZ, ThreadAxis::kVirtual}) {
      if (word == to_string(axis)) return LoopWord{word, ForKind::kThread, axis};
    }
    return std::nullopt;
  }

  Stmt statement() {
    const Token word = lexer_.peek();
    // A word followed by "[" is a tensor, even if it is a keyword.
    if (word.kind == Token::Kind::kName && !lexer_.peek(1).is("[")) {
      if (word.text == "if") return if_statement();
      if (word.text == "alloc") return alloc_statement();
      if (const auto loop = loop_word(word.text)) return for_statement(*loop);
    }
    return store_statement();
  }

  Stmt for_statement(const LoopWord& word) {
    lexer_.next();
    For loop;
    loop.kind = word.kind;
    loop.thread = word.thread;
    const Token name_at = lexer_.peek();
    const std::string name = expect_name("the name of a loop variable");
    if (!failed() && !lexer_.peek().is("in"))
      fail(lexer_.peek(), "expected 'in', found " + describe(lexer_.peek()));
    lexer_.next();
    const Token extent_at = lexer_.peek();
    loop.extent = expression();
    if (failed()) return nullptr;
    if (loop.extent.dtype() != DType::kI64) {
      fail(extent_at, "a loop's extent is i64, not " + std::string(to_string(loop.extent.dtype())));
      return nullptr;
    }
    if (lexer_.peek().is("auto_unroll")) {
      lexer_.next();
      loop.auto_unroll_max_step = expect_count("a number of steps");
    }
    loop.var = Var(name);
    if (!define_variable(name_at, name, loop.var)) return nullptr;
    loop.body = block();
    variables_.erase(name);
    return failed() ? nullptr : make_for(std::move(loop));
  }

  Stmt if_statement() {
    lexer_.next();
    const Token at = lexer_.peek();
    Expr condition = expression();
    if (!failed() && condition.dtype() != DType::kBool)
      fail(at, "a condition is bool, not " + std::string(to_string(condition.dtype())));
    Stmt then_body = block();
    Stmt else_body;
    if (!failed() && lexer_.peek().is("else") && lexer_.peek(1).is("{")) {
      lexer_.next();
      else_body = block();
    }
    return failed() ? nullptr : make_if(std::move(condition), std::move(then_body), std::move(else_body));
  }

  Stmt alloc_statement() {
    lexer_.next();
    const Buffer buffer = declaration();
    Stmt body = block();
    if (failed()) return nullptr;
    buffers_.erase(buffer->name);
    return make_allocate(buffer, std::move(body));
  }

  Stmt store_statement() {
    const Token at = lexer_.peek();
    const std::string name = expect_name("a statement");
    if (failed()) return nullptr;
    const Buffer buffer = find_buffer(at, name);
    if (failed()) return nullptr;
    std::vector<Expr> indices = index_list(buffer, at);
    expect("=");
    const Token value_at = lexer_.peek();
    Expr value = expression();
    if (failed()) return nullptr;
    if (value.dtype() != buffer->dtype) {
      fail(value_at, "a value of dtype " + std::string(to_string(value.dtype())) + " is stored to " +
                         quote_name(name) + ", which is " + std::string(to_string(buffer->dtype)));
      return nullptr;
    }
    return make_store(buffer, std::move(indices), std::move(value));
  }
};

}  // namespace

Result<Program> parse_program(std::string_view text) { return ProgramParser(text).run(); }

}  // namespace tensorsmith::ir
