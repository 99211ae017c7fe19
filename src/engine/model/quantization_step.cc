#include "engine/model/quantization_step.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/ops/registry.h"

namespace tensorsmith::engine {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

double largest(const Graph& graph, ValueId id) {
  if (id == graph::kNoValue || !graph.values[id].constant) return 0;
  const lower::Tensor& scale = *graph.values[id].constant;
  double most = 0;
  for (int64_t i = 0; i < scale.num_elements(); ++i) most = std::max(most, std::abs(scale.at(i).f));
  return std::isfinite(most) ? most : 0;
}

double step_of(const Graph& graph, const std::map<ValueId, const Node*>& makers, ValueId id) {
  for (;;) {
    const auto maker = makers.find(id);
    if (maker == makers.end()) return 0;
    const Node& node = *maker->second;
    if (node.op == "QuantizeLinear" || node.op == "QLinearConv" || node.op == "QLinearMatMul") return 1;
    if (node.op == "DynamicQuantizeLinear") return id == node.outputs[0] ? 1 : 0;
    if (node.op == "DequantizeLinear") return largest(graph, node.inputs[1]);
    const bool picks = graph::has_trait(node.op, graph::kPicksElements) && id == node.outputs[0];
    if (!picks && !graph::has_trait(node.op, graph::kMovesElements)) return 0;
    id = node.inputs[0];
  }
}

}  // namespace

std::vector<double> quantization_steps(const Graph& graph) {
  std::map<ValueId, const Node*> makers;
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.outputs) makers[id] = &node;
  std::vector<double> steps;
  for (const ValueId id : graph.outputs) steps.push_back(step_of(graph, makers, id));
  return steps;
}

}  // namespace tensorsmith::engine
