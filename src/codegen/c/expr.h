// Emits scalar expressions as C. Shared subexpressions become named constants, so that the text is
// only as long as the expression graph. A select becomes a branch if its sides need such constants
// or if it is long.
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

// The names that are in scope at the place under emission.
struct Environment {
  const Dialect& dialect;
  const CodegenOptions& options;
  Names names;
  ir::VarMap constants;                                      // variables of unrolled loops
  std::unordered_map<const ir::VarNode*, std::string> vars;  // all other variables
  std::unordered_map<const ir::BufferNode*, std::string> buffers;
  ir::VarBounds bounds;
  std::string index_type = "int64_t";  // C type of index arithmetic
};

// A product that is added to a sum: value = sum + a * b, possibly with the product or the sum
// negated.
struct FusedProduct {
  ir::Expr a, b, sum;
  bool negate_product = false, negate_sum = false;
};
// Returns the product that can be fused into the f32 or f64 sum e with a single rounding, if there
// is one.
std::optional<FusedProduct> fused_product(const ir::Expr& e, const CodegenOptions& options);

// Number of uses of each node by other nodes of an expression.
using UseCounts = std::unordered_map<const ir::ExprNode*, int>;
void count_uses(const ir::Expr& e, UseCounts& uses);

std::string literal(ir::DType dtype, double value);
std::string literal(ir::DType dtype, int64_t value);

// Emits the expressions of one statement; the definitions that they need go to the block.
class ScalarWriter {
 public:
  ScalarWriter(Environment& environment, Block& out) : env_(environment), out_(&out) {}

  // Announces an expression that value() will be called for, and returns it with the constants of
  // unrolled loops substituted.
  ir::Expr announce(const ir::Expr& e);
  Text value(const ir::Expr& e);
  // Returns the text of buffer[...] with a flat index.
  std::string place(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);
  std::string place(const ir::Buffer& buffer, const ir::Expr& flat);
  // Converts the value to the type that the buffer's elements have in memory.
  Text to_memory(ir::DType dtype, Text value) const;
  Text convert(ir::DType from, ir::DType to, Text value) const;
  Text named(std::string_view type, const Text& value);  // defines a constant with the value

  Block& out() { return *out_; }
  // Emits the body into a block of its own. Constants that are named inside are forgotten
  // afterwards.
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
  std::vector<const ir::ExprNode*> order_;  // keys of known_ in the order of their insertion
  std::vector<ir::Expr> alive_;             // keeps the nodes alive, so that no new node gets the address of
                                            // an old one
};

// Returns the flat index of the element in the buffer, simplified within the bounds of the
// variables.
ir::Expr flat_index(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices,
                    const ir::VarBounds& bounds);

}  // namespace tensorsmith::codegen
