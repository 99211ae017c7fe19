// ONNX operators as tensor expressions: the only definition of each operator's meaning, used for
// constant folding (through the interpreter), for shape inference and for task extraction.
#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

// Collects operations of one workload with unique names.
class WorkloadBuilder {
 public:
  // Adds a placeholder or compute operation; the name gets a suffix if it is taken. Returns the
  // output buffer(s).
  ir::Buffer placeholder(const std::string& name, ir::DType dtype, std::vector<int64_t> shape,
                         bool is_constant, bool reduced_range = false);
  ir::Buffer compute(const std::string& name, std::vector<ir::Axis> spatial, std::vector<ir::Axis> reduce,
                     ir::Combiner combiner, ir::Expr body);
  std::vector<ir::Buffer> compute_pair(const std::string& name, std::vector<ir::Axis> spatial,
                                       std::vector<ir::Axis> reduce, ir::Combiner combiner, ir::Expr value,
                                       ir::Expr index);
  // Replaces operation i by an operation of the same name.
  void replace(size_t i, ir::OperationRef operation) { operations_[i] = std::move(operation); }
  const std::vector<ir::OperationRef>& operations() const { return operations_; }

 private:
  std::string unique_name(const std::string& name);
  std::vector<ir::OperationRef> operations_;
  std::unordered_set<std::string> names_;
};

// Returns whether the operator is known (not whether these attributes and dtypes are supported).
bool is_supported_operator(const std::string& op);

// Appends the node's operations. Operators that compute on f16 or bf16 do so in f32 and round their
// results once; only the statistics of LayerNormalization stay f32. `inputs` has one buffer per
// node input, null for an omitted one. Known contents of inputs are taken from the graph's values
// (Reshape's shape, Slice's starts, ...). Returns one buffer per node output; for an output that is
// an unchanged input, this may be the input's buffer. Errors (kUnsupported, kInvalidArgument) have
// the node as their place.
Result<std::vector<ir::Buffer>> emit(const Graph& graph, const Node& node, std::span<const ir::Buffer> inputs,
                                     WorkloadBuilder& builder);

}  // namespace tensorsmith::graph
