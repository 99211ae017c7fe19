#include "graph/onnx/body.h"

#include <algorithm>

#include "graph/passes/passes.h"

namespace tensorsmith::graph {

Result<std::vector<ValueId>> BodyBuilder::add(Node node, size_t outputs) {
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(graph_.values.push_back(
        {i == 0 ? node.name : node.name + "." + std::to_string(i), ir::DType::kF32, {}, nullptr}));
  std::vector<ValueId> made = node.outputs;
  TS_RETURN_IF_ERROR(infer_node(graph_, node, limits_));
  if (std::ranges::any_of(made, [&](ValueId id) { return graph_.values[id].constant == nullptr; }))
    graph_.nodes.push_back(std::move(node));
  return made;
}

ValueId BodyBuilder::constant(lower::Tensor tensor) {
  return add_constant(graph_, "constant_" + std::to_string(graph_.values.size()), std::move(tensor));
}

ValueId BodyBuilder::input(const std::string& name, ir::DType dtype, const Shape& shape) {
  graph_.inputs.push_back(graph_.values.push_back({name, dtype, shape, nullptr}));
  return graph_.inputs.back();
}

ValueId BodyBuilder::shared(const Value& value) {
  return value.constant != nullptr ? graph_.values.push_back(value)
                                   : input(value.name, value.dtype, value.shape);
}

Graph BodyBuilder::finish(std::vector<ValueId> outputs) {
  graph_.outputs = std::move(outputs);
  return std::move(graph_);
}

}  // namespace tensorsmith::graph
