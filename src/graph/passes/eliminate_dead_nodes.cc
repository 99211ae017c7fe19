#include <algorithm>
#include <ranges>

#include "graph/passes/passes.h"

namespace tensorsmith::graph {

void eliminate_dead_nodes(Graph& graph) {
  IdVector<ValueId, bool> needed(graph.values.size(), false);
  for (ValueId id : graph.outputs) needed[id] = true;
  for (ValueId id : graph.inputs) needed[id] = true;  // inputs are part of the interface
  IdVector<NodeId, Node> kept;
  for (Node& node : std::views::reverse(graph.nodes)) {
    const auto used = [&](ValueId id) { return id != kNoValue && needed[id]; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), used)) continue;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) needed[id] = true;
    }
    // Outputs that nothing reads are still written.
    for (ValueId id : node.outputs) {
      if (id != kNoValue) needed[id] = true;
    }
    kept.push_back(std::move(node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);

  IdVector<ValueId, ValueId> renamed(graph.values.size());
  IdVector<ValueId, Value> values;
  for (const ValueId v : graph.values.ids()) {
    if (needed[v]) renamed[v] = values.push_back(std::move(graph.values[v]));
  }
  graph.values = std::move(values);
  const auto rename = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (id != kNoValue) id = renamed[id];
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
