#include "graph/passes/passes.h"
#include "graph/regions.h"

namespace tensorsmith::graph {

Status optimize(Graph& graph, const OptimizeOptions& options) {
  TS_RETURN_IF_ERROR(unroll_regions(graph, false));
  // Must run before the weights become floats.
  fuse_quantized(graph);
  TS_RETURN_IF_ERROR(fold_constants(graph, options));
  TS_RETURN_IF_ERROR(eliminate_identities(graph));
  eliminate_dead_nodes(graph);
  fold_channel_scales(graph);
  split_conv_transpose(graph);
  fold_pads(graph);
  trim_convolutions(graph);
  TS_RETURN_IF_ERROR(fold_constants(graph, options));
  merge_moves(graph);
  eliminate_dead_nodes(graph);
  TS_RETURN_IF_ERROR(optimize_regions(graph, options));
  eliminate_dead_nodes(graph);  // values that only bodies read, until they became constants there
  // Runs last, so that folded values are exact.
  if (options.tf32) round_products(graph);
  return verify_graph(graph);
}

IdVector<ValueId, int> count_uses(const Graph& graph) {
  IdVector<ValueId, int> uses(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) {
      if (id != kNoValue) ++uses[id];
    }
  }
  for (ValueId id : graph.outputs) ++uses[id];
  return uses;
}

IdVector<ValueId, NodeId> find_producers(const Graph& graph) {
  IdVector<ValueId, NodeId> producers(graph.values.size());
  for (const NodeId n : graph.nodes.ids()) {
    for (ValueId id : graph.nodes[n].outputs) {
      if (id != kNoValue) producers[id] = n;
    }
  }
  return producers;
}

ValueId add_constant(Graph& graph, std::string name, lower::Tensor tensor) {
  Value value;
  value.name = std::move(name);
  value.dtype = tensor.dtype;
  value.shape = tensor.shape;
  value.constant = std::make_shared<const lower::Tensor>(std::move(tensor));
  return graph.values.push_back(std::move(value));
}

Status verify_graph(const Graph& graph) {
  IdVector<ValueId, bool> defined(graph.values.size(), false);
  const auto wrong = [&](const std::string& place, const std::string& reason) {
    return Error{ErrorCode::kIllegal, place, reason};
  };
  for (const ValueId v : graph.values.ids()) {
    const Value& value = graph.values[v];
    defined[v] = value.constant != nullptr;
    if (value.constant != nullptr &&
        (value.constant->dtype != value.dtype || value.constant->shape != value.shape)) {
      return wrong(value.name, "the constant's contents do not have the value's dtype and shape");
    }
  }
  for (ValueId id : graph.inputs) {
    if (!graph.values.has(id) || defined[id]) {
      return wrong(graph.name, "an input is out of range or defined twice");
    }
    defined[id] = true;
  }
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      if (!graph.values.has(id)) return wrong(node.name, "an input is out of range");
      if (!defined[id]) return wrong(node.name, "reads a value before it is defined");
    }
    for (ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      if (!graph.values.has(id)) return wrong(node.name, "an output is out of range");
      if (defined[id]) return wrong(node.name, "defines a value twice");
      defined[id] = true;
    }
  }
  for (ValueId id : graph.outputs) {
    if (!graph.values.has(id) || !defined[id]) {
      return wrong(graph.name, "an output is not defined");
    }
  }
  return {};
}

}  // namespace tensorsmith::graph
