#include <algorithm>
#include <utility>

#include "graph/infer.h"
#include "graph/ops/registry.h"
#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

// Values that are replaced by others.
class Renaming {
 public:
  explicit Renaming(const Graph& graph) {
    for (const ValueId id : graph.values.ids()) name_of_.push_back(id);
  }
  void rename(ValueId from, ValueId to) { name_of_[from] = to; }
  ValueId operator()(ValueId id) {
    if (id == kNoValue) return id;
    ValueId last = id;
    while (next(last) != last) last = next(last);
    while (next(id) != last) id = std::exchange(name_of_[id], last);
    return last;
  }
  void apply(std::vector<ValueId>& ids) {
    for (ValueId& id : ids) id = (*this)(id);
  }

 private:
  ValueId next(ValueId id) const { return name_of_[id]; }
  IdVector<ValueId, ValueId> name_of_;
};

// Returns the input that each output of the node equals, or nothing if an output is computed.
Result<std::vector<ValueId>> aliased_inputs(const Graph& graph, const Node& node) {
  TS_ASSIGN_OR_RETURN(const NodeWorkload work, node_workload(graph, node));
  std::vector<ValueId> sources;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto found = std::find(work.inputs.begin(), work.inputs.end(), work.outputs[i]);
    if (node.outputs[i] == kNoValue) {
      sources.push_back(kNoValue);
    } else if (found != work.inputs.end()) {
      sources.push_back(node.inputs[found - work.inputs.begin()]);
    } else {
      return std::vector<ValueId>{};
    }
  }
  return sources;
}

}  // namespace

Status eliminate_identities(Graph& graph) {
  IdVector<NodeId, Node> kept;
  IdVector<ValueId, bool> outputs(graph.values.size(), false), inputs(graph.values.size(), false);
  for (ValueId id : graph.outputs) outputs[id] = true;
  for (ValueId id : graph.inputs) inputs[id] = true;
  const auto is_output = [&](ValueId id) { return outputs[id]; };
  Renaming renaming(graph);
  for (Node& node : graph.nodes) {
    renaming.apply(node.inputs);
    std::vector<ValueId> sources;
    if (has_trait(node.op, kReturnsInput | kMayReturnInput)) {
      TS_ASSIGN_OR_RETURN(sources, aliased_inputs(graph, node));
    }
    // A graph output keeps its value and thereby its name, so the value that it copies is renamed
    // to it. This is possible if a node computes that value and it is no output itself.
    bool removable = !sources.empty();
    for (size_t i = 0; i < sources.size() && removable; ++i) {
      if (sources[i] == kNoValue || !is_output(node.outputs[i])) continue;
      const Value& source = graph.values[sources[i]];
      const bool computed = source.constant == nullptr && !inputs[sources[i]];
      removable = computed && !is_output(sources[i]) && sources.size() == 1;
    }
    if (!removable) {
      kept.push_back(std::move(node));
      continue;
    }
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i] == kNoValue) continue;
      const bool output = is_output(node.outputs[i]);
      renaming.rename(output ? sources[i] : node.outputs[i], output ? node.outputs[i] : sources[i]);
    }
  }
  for (Node& node : kept) {
    renaming.apply(node.inputs);
    renaming.apply(node.outputs);
  }
  graph.nodes = std::move(kept);
  return {};
}

}  // namespace tensorsmith::graph
