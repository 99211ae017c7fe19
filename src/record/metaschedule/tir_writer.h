// Conversion of our expressions to nodes of TIR: the inverse of TirReader.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"
#include "ir/expr_memo.h"
#include "record/metaschedule/node_writer.h"

namespace tensorsmith::record {

// After an error all nodes are null; the first error is kept. Indices are int64, as in modules that
// Relax makes.
class TirWriter {
 public:
  bool failed() const { return error_.has_value(); }
  Error take_error() { return *std::move(error_); }
  // Errors are about this operation.
  void begin(std::string_view operation) { operation_ = operation; }
  size_t fail(std::string reason);

  NodeWriter& nodes() { return nodes_; }
  size_t index(int64_t value) { return nodes_.integer(ir::DType::kI64, value); }
  size_t range(size_t min, size_t extent);

  // Makes the variable of a tensor, which `tensor` returns from then on.
  size_t define_tensor(const ir::BufferNode& buffer);
  size_t tensor(const ir::BufferNode* buffer) const { return tensors_.at(buffer); }
  // Makes a variable of an index.
  size_t new_variable(std::string_view name);
  // From now on, `node` stands for the axis.
  void define_axis(const ir::Var& axis, size_t node) { axes_[axis.get()] = node; }

  size_t expression(const ir::Expr& e);
  size_t expressions(const std::vector<ir::Expr>& list);  // an array
  size_t load(const ir::BufferNode* buffer, size_t indices);

 private:
  size_t convert(const ir::Expr& e);
  size_t unary(const ir::Unary& op, ir::DType dtype);
  size_t binary(std::string_view type, ir::DType dtype, size_t a, size_t b);
  size_t select(const ir::Select& s, ir::DType dtype);
  size_t cast(const ir::Cast& cast, ir::DType to);
  size_t call(const ir::Call& call, ir::DType dtype);
  size_t function(std::string_view name, ir::DType dtype, const std::vector<size_t>& arguments);
  size_t constant(ir::DType dtype, double value);

  NodeWriter nodes_;
  std::unordered_map<const ir::BufferNode*, size_t> tensors_;
  std::unordered_map<const ir::VarNode*, size_t> axes_;
  ir::ExprMemo<size_t> written_;
  std::string operation_;
  std::optional<Error> error_;
};

}  // namespace tensorsmith::record
