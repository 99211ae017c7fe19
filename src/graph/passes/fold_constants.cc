#include "graph/infer.h"
#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

// About a second of the reference interpreter a node; weights that are transposed or scaled come through.
constexpr double kMaxCost = 1 << 26;
constexpr int64_t kMaxBytes = int64_t{1} << 30;

bool is_constant(const Graph& graph, const Node& node) {
  for (ValueId id : node.inputs) {
    if (id != kNoValue && graph.values[static_cast<size_t>(id)].constant == nullptr) return false;
  }
  return true;
}

}  // namespace

Status fold_constants(Graph& graph) {
  FoldLimits limits;
  limits.max_cost = kMaxCost;
  limits.max_bytes = kMaxBytes;
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    bool folded = is_constant(graph, node);
    if (folded) TS_RETURN_IF_ERROR(infer_node(graph, node, limits));
    for (ValueId id : node.outputs) {
      folded = folded && (id == kNoValue || graph.values[static_cast<size_t>(id)].constant != nullptr);
    }
    if (!folded) kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  return {};
}

}  // namespace tensorsmith::graph
