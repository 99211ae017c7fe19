#include "graph/passes/passes.h"

namespace tensorsmith::graph {

Status optimize(Graph& graph, const OptimizeOptions& options) {
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
  // Runs last, so that folded values are exact.
  if (options.tf32) round_products(graph);
  return verify_graph(graph);
}

std::vector<int> count_uses(const Graph& graph) {
  std::vector<int> uses(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) {
      if (id != kNoValue) ++uses[static_cast<size_t>(id)];
    }
  }
  for (ValueId id : graph.outputs) ++uses[static_cast<size_t>(id)];
  return uses;
}

std::vector<int> find_producers(const Graph& graph) {
  std::vector<int> producers(graph.values.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId id : graph.nodes[n].outputs) {
      if (id != kNoValue) producers[static_cast<size_t>(id)] = static_cast<int>(n);
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
  graph.values.push_back(std::move(value));
  return static_cast<ValueId>(graph.values.size() - 1);
}

Status verify_graph(const Graph& graph) {
  const auto count = static_cast<ValueId>(graph.values.size());
  std::vector<bool> defined(graph.values.size(), false);
  const auto wrong = [&](const std::string& place, const std::string& reason) {
    return Error{ErrorCode::kIllegal, place, reason};
  };
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    defined[v] = value.constant != nullptr;
    if (value.constant != nullptr &&
        (value.constant->dtype != value.dtype || value.constant->shape != value.shape)) {
      return wrong(value.name, "the constant's contents do not have the value's dtype and shape");
    }
  }
  for (ValueId id : graph.inputs) {
    if (id < 0 || id >= count || defined[static_cast<size_t>(id)]) {
      return wrong(graph.name, "an input is out of range or defined twice");
    }
    defined[static_cast<size_t>(id)] = true;
  }
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      if (id < 0 || id >= count) return wrong(node.name, "an input is out of range");
      if (!defined[static_cast<size_t>(id)]) return wrong(node.name, "reads a value before it is defined");
    }
    for (ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      if (id < 0 || id >= count) return wrong(node.name, "an output is out of range");
      if (defined[static_cast<size_t>(id)]) return wrong(node.name, "defines a value twice");
      defined[static_cast<size_t>(id)] = true;
    }
  }
  for (ValueId id : graph.outputs) {
    if (id < 0 || id >= count || !defined[static_cast<size_t>(id)]) {
      return wrong(graph.name, "an output is not defined");
    }
  }
  return {};
}

}  // namespace tensorsmith::graph
