// Access to the nodes of a graph, and conversion of TIR's expressions to ours.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"
#include "record/metaschedule/node_graph.h"

namespace tensorsmith::record {

// After an error all methods return at once something harmless; the first error is kept.
class TirReader {
 public:
  explicit TirReader(NodeGraph graph) : graph_(std::move(graph)) {}

  bool failed() const { return error_.has_value(); }
  Error take_error() { return *std::move(error_); }
  void fail(size_t node, ErrorCode code, std::string reason);

  const TvmNode& at(size_t node) const { return graph_.nodes[node]; }
  size_t root() const { return graph_.root; }
  bool is(size_t node, std::string_view type) const { return at(node).type == type; }
  // Fails unless the node has this type.
  void expect(size_t node, std::string_view type);
  // Returns the attribute's text; fails if the node has none of this name.
  const std::string& text(size_t node, std::string_view attribute);
  // Returns the node that the attribute names.
  size_t child(size_t node, std::string_view attribute);
  // Returns the elements of the Array that the attribute names.
  const std::vector<size_t>& list(size_t node, std::string_view attribute);
  std::string name(size_t node, std::string_view attribute);  // of the String that the attribute names
  int64_t integer(size_t node, std::string_view attribute);
  int64_t constant(size_t node);  // the value of an IntImm
  ir::DType dtype(size_t node);

  // Returns the tensor of a Buffer node. Its shape must be constant.
  const ir::Buffer& buffer(size_t node);
  // From now on, the Buffer node is the output of an operation or of a placeholder.
  void define_buffer(size_t node, ir::Buffer buffer) { buffers_[node] = std::move(buffer); }
  const ir::Var& variable(size_t node);  // of a Var node

  // Converts an expression. Integers that index are kI64 whatever width TVM uses.
  ir::Expr expression(size_t node);
  std::vector<ir::Expr> expressions(const std::vector<size_t>& nodes);

 private:
  ir::Expr convert(size_t node);
  ir::Expr binary(size_t node, ir::BinaryOp op);
  ir::Expr select(size_t node, size_t condition, size_t a, size_t b);
  ir::Expr cast(size_t node);
  ir::Expr load(size_t node);
  ir::Expr call(size_t node);
  ir::Expr literal(size_t node);
  void unify(ir::Expr& a, ir::Expr& b);

  NodeGraph graph_;
  std::unordered_map<size_t, ir::Buffer> buffers_;
  std::unordered_map<size_t, ir::Var> variables_;
  std::unordered_map<size_t, ir::Expr> expressions_;  // each node is converted once
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace tensorsmith::record
