#include "graph/evaluate.h"

#include <algorithm>

#include "graph/emit.h"
#include "graph/infer.h"
#include "graph/ops/index.h"
#include "graph/regions.h"

namespace tensorsmith::graph {

Result<std::vector<lower::Tensor>> evaluate(const Graph& graph, std::span<const lower::Tensor> inputs) {
  using TensorRef = std::shared_ptr<const lower::Tensor>;
  if (inputs.size() != graph.inputs.size()) {
    return Error{ErrorCode::kInvalidArgument, graph.name,
                 "the graph takes " + std::to_string(graph.inputs.size()) + " inputs, not " +
                     std::to_string(inputs.size())};
  }
  IdVector<ValueId, TensorRef> contents;
  for (const Value& value : graph.values) contents.push_back(value.constant);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.values[graph.inputs[i]];
    if (inputs[i].dtype != value.dtype || inputs[i].shape != value.shape) {
      return Error{ErrorCode::kInvalidArgument, "input '" + value.name + "'",
                   "is " + describe(inputs[i].dtype, inputs[i].shape) + " instead of " +
                       describe(value.dtype, value.shape)};
    }
    contents[graph.inputs[i]] = std::make_shared<const lower::Tensor>(inputs[i]);
  }
  for (const Node& node : graph.nodes) {
    std::vector<TensorRef> node_inputs;
    for (ValueId id : node.inputs) {
      node_inputs.push_back(id == kNoValue ? nullptr : contents[id]);
      TS_CHECK(id == kNoValue || node_inputs.back() != nullptr, "graph is not in topological order");
    }
    std::vector<TensorRef> results;
    if (node.region != nullptr) {
      TS_ASSIGN_OR_RETURN(results, evaluate_region(node, node_inputs));
    } else {
      TS_ASSIGN_OR_RETURN(const NodeWorkload work, node_workload(graph, node));
      TS_ASSIGN_OR_RETURN(results, evaluate_node(work, node_inputs));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i] != kNoValue) contents[node.outputs[i]] = std::move(results[i]);
    }
  }
  std::vector<lower::Tensor> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(*contents[id]);
  return outputs;
}

Result<GraphWorkload> graph_workload(const Graph& graph) {
  GraphWorkload result;
  WorkloadBuilder builder;
  IdVector<ValueId, ir::Buffer> buffers(graph.values.size());
  const auto buffer_of = [&](ValueId id) -> ir::Buffer {
    if (id == kNoValue) return nullptr;
    ir::Buffer& buffer = buffers[id];
    if (buffer == nullptr) {
      const Value& value = graph.values[id];
      buffer = builder.placeholder(value.name, value.dtype, value.shape, value.constant != nullptr);
      result.inputs.push_back(id);
    }
    return buffer;
  };
  for (const Node& node : graph.nodes) {
    std::vector<ir::Buffer> inputs;
    for (ValueId id : node.inputs) inputs.push_back(buffer_of(id));
    TS_ASSIGN_OR_RETURN(const std::vector<ir::Buffer> outputs, emit(graph, node, inputs, builder));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) buffers[node.outputs[i]] = outputs[i];
    }
  }
  // An output that is the same value as another one becomes a copy.
  for (ValueId id : graph.outputs) {
    ir::Buffer output = buffer_of(id);
    auto& listed = result.workload.outputs;
    if (std::find(listed.begin(), listed.end(), output) != listed.end()) {
      std::vector<ir::Axis> axes = axes_for(output->shape);
      ir::Expr body = ir::load(output, vars_of(axes));
      output = builder.compute("copy", std::move(axes), {}, ir::Combiner::kNone, std::move(body));
    }
    listed.push_back(output);
  }
  result.workload.operations = builder.operations();
  return result;
}

}  // namespace tensorsmith::graph
