#include "graph/infer.h"
#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

bool is_constant(const Graph& graph, const Node& node) {
  for (ValueId id : node.inputs) {
    if (id != kNoValue && graph.values[id].constant == nullptr) return false;
  }
  return true;
}

}  // namespace

Status fold_constants(Graph& graph, const OptimizeOptions& options) {
  FoldLimits limits;
  limits.max_cost = options.max_fold_cost;
  limits.max_bytes = options.max_constant_bytes;
  limits.constant_bytes_left = options.max_constant_bytes;
  limits.fail_when_exhausted = false;
  IdVector<NodeId, Node> kept;
  for (Node& node : graph.nodes) {
    bool folded = is_constant(graph, node);
    if (folded) TS_RETURN_IF_ERROR(infer_node(graph, node, limits));
    for (ValueId id : node.outputs) {
      folded = folded && (id == kNoValue || graph.values[id].constant != nullptr);
    }
    if (!folded) kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  return {};
}

}  // namespace tensorsmith::graph
