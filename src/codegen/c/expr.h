// Scalar expressions as C. What an expression shares becomes a constant of its own, so that the text is as long as the
// graph; a select whose sides need such constants, or that is long, becomes a branch.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/backend.h"
#include "codegen/c/dialect.h"
#include "codegen/c/text.h"
#include "ir/analysis.h"
#include "ir/bounds.h"

namespace tensorsmith::codegen {

// What names mean at the place under emission.
struct Environment {
  const Dialect& dialect;
  const CodegenOptions& options;
  Names names;
  ir::VarMap constants;                                      // variables of unrolled loops
  std::unordered_map<const ir::VarNode*, std::string> vars;  // all others
  std::unordered_map<const ir::BufferNode*, std::string> buffers;
  ir::VarBounds bounds;
  std::string index_type = "int64_t";  // of index arithmetic
};

// A product that is added to something: value = sum + a * b, or with one of the two negated.
struct FusedProduct {
  ir::Expr a, b, sum;
  bool negate_product = false, negate_sum = false;
};
// The product of an f32 or f64 sum that one rounding may take in, if there is any.
std::optional<FusedProduct> fused_product(const ir::Expr& e, const CodegenOptions& options);

// How often the nodes of an expression are used by others of it.
using UseCounts = std::unordered_map<const ir::ExprNode*, int>;
void count_uses(const ir::Expr& e, UseCounts& uses);

std::string literal(ir::DType dtype, double value);
std::string literal(ir::DType dtype, int64_t value);

// Evaluates the expressions of one statement; what they need before goes to the block.
class ScalarWriter {
 public:
  ScalarWriter(Environment& environment, Block& out) : env_(environment), out_(&out) {}

  // Tells the writer of an expression that value() will be asked for, with the constants of unrolled loops put in.
  ir::Expr announce(const ir::Expr& e);
  Text value(const ir::Expr& e);
  // buffer[...] of the flat index.
  std::string place(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);
  std::string place(const ir::Buffer& buffer, const ir::Expr& flat);
  // The value as the buffer's elements hold it.
  Text to_memory(ir::DType dtype, Text value) const;
  Text convert(ir::DType from, ir::DType to, Text value) const;
  Text named(std::string_view type, const Text& value);  // a constant with the value

  Block& out() { return *out_; }
  // Emits under a condition: what is named inside is forgotten behind.
  template <typename Body>
  Block nested(const Body& body) {
    Block inside;
    Block* const outer = std::exchange(out_, &inside);
    const size_t mark = order_.size();
    body();
    for (; order_.size() > mark; order_.pop_back()) known_.erase(order_.back());
    out_ = outer;
    return inside;
  }

 private:
  Text node(const ir::Expr& e);
  Text unary(ir::DType dtype, ir::UnaryOp op, const ir::Expr& a);
  Text binary(const ir::Expr& e, const ir::Binary& op);
  Text arithmetic(ir::BinaryOp op, ir::DType dtype, const Text& a, const Text& b) const;
  Text select(ir::DType dtype, const ir::Select& select);
  Text call(ir::DType dtype, const ir::Call& call);
  std::optional<Text> short_float(ir::DType dtype, const ir::Expr& e);
  bool is_plain_index(const ir::Expr& e) const;

  Environment& env_;
  Block* out_;
  UseCounts uses_;
  std::unordered_map<const ir::ExprNode*, Text> known_;
  std::vector<const ir::ExprNode*> order_;  // of known_
  std::vector<ir::Expr> alive_;             // so that no node is mistaken for another at the same address
};

// The element's place in the buffer, simplified in the ranges that the variables have here.
ir::Expr flat_index(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices,
                    const ir::VarBounds& bounds);

}  // namespace tensorsmith::codegen
