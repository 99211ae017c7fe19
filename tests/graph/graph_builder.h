// Graphs of single nodes for tests.
#pragma once

#include <string>
#include <vector>

#include "graph/evaluate.h"
#include "graph/infer.h"

namespace tensorsmith::graph::testing {

class GraphBuilder {
 public:
  ValueId input(std::vector<int64_t> shape, ir::DType dtype = ir::DType::kF32) {
    const ValueId id = value("x" + std::to_string(graph_.inputs.size()), dtype, std::move(shape));
    graph_.inputs.push_back(id);
    return id;
  }
  ValueId constant(lower::Tensor tensor) {
    const ValueId id = value("c" + std::to_string(graph_.values.size()), tensor.dtype, tensor.shape);
    graph_.values.back().constant = std::make_shared<const lower::Tensor>(std::move(tensor));
    return id;
  }
  ValueId floats(std::vector<int64_t> shape, const std::vector<double>& contents) {
    lower::Tensor tensor = lower::Tensor::zeros(ir::DType::kF32, std::move(shape));
    for (size_t i = 0; i < contents.size(); ++i) {
      tensor.set(static_cast<int64_t>(i), ir::scalar_float(ir::DType::kF32, contents[i]));
    }
    return constant(std::move(tensor));
  }
  ValueId integers(const std::vector<int64_t>& contents) {
    lower::Tensor tensor = lower::Tensor::zeros(ir::DType::kI64, {static_cast<int64_t>(contents.size())});
    for (size_t i = 0; i < contents.size(); ++i) {
      tensor.set(static_cast<int64_t>(i), ir::scalar_int(ir::DType::kI64, contents[i]));
    }
    return constant(std::move(tensor));
  }
  // Adds a node and returns its first output. A node that cannot be inferred is an InternalError
  // with the reason.
  ValueId node(const std::string& op, std::vector<ValueId> inputs,
               std::map<std::string, Attribute> attributes = {}, int outputs = 1) {
    Node n{
        op + "_" + std::to_string(graph_.nodes.size()), op, 17, std::move(attributes), std::move(inputs), {}};
    for (int i = 0; i < outputs; ++i)
      n.outputs.push_back(value("v" + std::to_string(graph_.values.size()), {}, {}));
    FoldLimits limits;
    limits.max_cost = 0;
    limits.max_bytes = limits.max_fill_bytes = -1;
    const Status status = infer_node(graph_, n, limits);
    TS_CHECK(status.ok(), status.ok() ? "" : status.error().message());
    graph_.nodes.push_back(n);
    return n.outputs[0];
  }
  Graph finish(std::vector<ValueId> outputs) {
    graph_.outputs = std::move(outputs);
    return graph_;
  }
  const Graph& graph() const { return graph_; }

 private:
  ValueId value(std::string name, ir::DType dtype, std::vector<int64_t> shape) {
    Value v;
    v.name = std::move(name);
    v.dtype = dtype;
    v.shape = std::move(shape);
    return graph_.values.push_back(std::move(v));
  }
  Graph graph_;
};

// Returns the operators of the nodes, in their order.
inline std::vector<std::string> ops(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.op);
  return names;
}

}  // namespace tensorsmith::graph::testing
