#include <algorithm>

#include "graph/passes/passes.h"

namespace tensorsmith::graph {

void eliminate_dead_nodes(Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (ValueId id : graph.outputs) needed[static_cast<size_t>(id)] = true;
  for (ValueId id : graph.inputs) needed[static_cast<size_t>(id)] = true;  // inputs are part of the interface
  std::vector<Node> kept;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    Node& node = graph.nodes[n];
    const auto used = [&](ValueId id) { return id != kNoValue && needed[static_cast<size_t>(id)]; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), used)) continue;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) needed[static_cast<size_t>(id)] = true;
    }
    // Outputs that nothing reads are still written.
    for (ValueId id : node.outputs) {
      if (id != kNoValue) needed[static_cast<size_t>(id)] = true;
    }
    kept.push_back(std::move(node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);

  std::vector<ValueId> renamed(graph.values.size(), kNoValue);
  std::vector<Value> values;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!needed[v]) continue;
    renamed[v] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[v]));
  }
  graph.values = std::move(values);
  const auto rename = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (id != kNoValue) id = renamed[static_cast<size_t>(id)];
    }
  };
  rename(graph.inputs);
  rename(graph.outputs);
  for (Node& node : graph.nodes) {
    rename(node.inputs);
    rename(node.outputs);
  }
}

}  // namespace tensorsmith::graph
