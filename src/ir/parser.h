// Recursive-descent parser of the text form: expressions, and the syntax that workloads and
// programs share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ir/lexer.h"

namespace tensorsmith::ir {

// After an error, every parsing function immediately returns an empty value; the first error is
// kept.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

 protected:
  // Limits on the nesting of text, and on the depth of the resulting expressions and statements (a
  // chain of n operators of equal precedence has depth n).
  static constexpr int kMaxNesting = 200;
  static constexpr int kMaxDepth = 1000;

  struct Parsed {
    Expr e;
    int depth = 0;
  };
  // A tensor's type: dtype[shape] strides(..) scope
  struct TensorType {
    DType dtype = DType::kF32;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    MemoryScope scope = MemoryScope::kGlobal;
  };

  bool failed() const { return error_.has_value(); }
  void fail(const Token& at, std::string reason);
  Error take_error() { return *std::move(error_); }

  bool accept(std::string_view symbol);
  bool expect(std::string_view symbol);
  std::string expect_name(std::string_view what);
  int64_t expect_count(std::string_view what);  // a non-negative kI64 literal
  std::optional<DType> expect_dtype();
  std::vector<int64_t> count_list(std::string_view close);
  TensorType tensor_type();
  MemoryScope optional_scope();

  Expr expression();
  // Parses "[i, j]" for that buffer; raises *depth to at least that of the indices.
  std::vector<Expr> index_list(const Buffer& buffer, const Token& at, int* depth = nullptr);
  Buffer find_buffer(const Token& at, const std::string& name);
  bool define_variable(const Token& at, const std::string& name, const Var& var);
  bool define_buffer(const Token& at, const Buffer& buffer);

  Lexer lexer_;
  std::unordered_map<std::string, Var> variables_;
  std::unordered_map<std::string, Buffer> buffers_;
  // Type of numbers without a suffix; nothing: i64, and f32 for those with a point or an exponent.
  std::optional<DType> plain_numbers_;
  int nesting_ = 0;

 private:
  Parsed infix(int strength);
  Parsed prefix();
  Parsed primary();
  Parsed number(bool negative, const Token& at);
  Parsed function(const Token& name);
  Parsed cast_to(DType dtype, const Token& at);
  Parsed make_infix(const Token& at, BinaryOp op, Parsed a, Parsed b);
  std::vector<Parsed> argument_list(const Token& at, size_t count);
  Parsed checked(const Token& at, Parsed parsed);

  std::optional<Error> error_;
};

std::string describe(const Token& token);
std::string position_of(const Token& token);

}  // namespace tensorsmith::ir
