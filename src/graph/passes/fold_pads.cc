#include <algorithm>

#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

using Pads = std::vector<int64_t>;

std::string string_attribute(const Node& node, const std::string& name, const std::string& otherwise) {
  const auto* value = node.find<std::string>(name);
  return value == nullptr ? otherwise : *value;
}

Pads pads_attribute(const Node& node) {
  const auto* pads = node.find<Pads>("pads");
  return pads == nullptr ? Pads() : *pads;
}

bool is_zero(const lower::Tensor& tensor) {
  return std::all_of(tensor.data.begin(), tensor.data.end(), [](std::byte b) { return b == std::byte{0}; });
}

// Returns the spatial pads (begin..., end...) of a Pad node that adds zeros around images, else
// nothing.
std::optional<Pads> zero_pads(const Graph& graph, const Node& node) {
  if (node.op != "Pad" || string_attribute(node, "mode", "constant") != "constant" ||
      node.inputs.size() > 3) {
    return std::nullopt;
  }
  Pads pads;
  if (const lower::Tensor* tensor = graph.constant(node.input(1))) {
    for (int64_t i = 0; i < tensor->num_elements(); ++i) pads.push_back(tensor->at(i).i);
  } else {
    pads = pads_attribute(node);
  }
  if (node.input(2) != kNoValue) {
    const lower::Tensor* fill = graph.constant(node.input(2));
    if (fill == nullptr || !is_zero(*fill)) return std::nullopt;
  }
  if (const auto fill = node.attributes.find("value"); fill != node.attributes.end()) {
    const auto* value = std::get_if<double>(&fill->second);
    if (value == nullptr || *value != 0) return std::nullopt;
  }
  const size_t rank = pads.size() / 2;
  if (rank < 3 || std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; })) return std::nullopt;
  if (pads[0] != 0 || pads[1] != 0 || pads[rank] != 0 || pads[rank + 1] != 0) return std::nullopt;
  Pads spatial(pads.begin() + 2, pads.begin() + rank);
  spatial.insert(spatial.end(), pads.begin() + rank + 2, pads.end());
  return spatial;
}

}  // namespace

void fold_pads(Graph& graph) {
  const IdVector<ValueId, NodeId> producers = find_producers(graph);
  for (Node& node : graph.nodes) {
    const bool conv = node.op == "Conv";
    const bool average = node.op == "AveragePool";
    if ((!conv && !average) || node.input(0) == kNoValue) continue;
    const NodeId before = producers[node.inputs[0]];
    if (!before.valid()) continue;
    const Node& pad = graph.nodes[before];
    const auto extra = zero_pads(graph, pad);
    const std::string auto_pad = string_attribute(node, "auto_pad", "NOTSET");
    if (!extra || (auto_pad != "NOTSET" && auto_pad != "VALID")) continue;
    Pads pads = auto_pad == "VALID" ? Pads() : pads_attribute(node);
    pads.resize(extra->size(), 0);
    if (average) {
      // The padded elements count in the average, so they must count in the pool's own padding,
      // too; with ceil_mode, the last window's divisor would change.
      const bool own = std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
      const bool counts = node.integer("count_include_pad", 0) != 0;
      if (node.integer("ceil_mode", 0) != 0 || (own && !counts)) continue;
      node.attributes.insert_or_assign("count_include_pad", int64_t{1});
    }
    for (size_t i = 0; i < pads.size(); ++i) pads[i] += (*extra)[i];
    node.attributes.insert_or_assign("pads", pads);
    node.attributes.erase("auto_pad");
    node.inputs[0] = pad.inputs[0];
  }
}

}  // namespace tensorsmith::graph
