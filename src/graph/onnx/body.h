// The body of a loop under construction, for operators that are imported as loops.
#pragma once

#include <string>
#include <vector>

#include "graph/infer.h"
#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

class BodyBuilder final : public NodeSink {
 public:
  const Graph& graph() const override { return graph_; }
  Result<std::vector<ValueId>> add(Node node, size_t outputs) override;
  ValueId constant(lower::Tensor tensor) override;

  // Adds an input. Those of a loop are states, slices and other values, in this order.
  ValueId input(const std::string& name, ir::DType dtype, const Shape& shape);
  // Returns a value of the network in the body: an input, or the same constant.
  ValueId shared(const Value& value);
  // Returns the body with these outputs.
  Graph finish(std::vector<ValueId> outputs);

 private:
  Graph graph_;
  FoldLimits limits_;
};

}  // namespace tensorsmith::graph
