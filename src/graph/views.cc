#include "graph/views.h"

#include <algorithm>

#include "graph/ops/op_context.h"
#include "runtime/model_format.h"

namespace tensorsmith::graph {
namespace {

size_t index(ValueId id) { return static_cast<size_t>(id); }

bool is_reshape(const std::string& op) {
  return op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten" || op == "Identity" ||
         op == "Dropout";
}

class ViewFinder {
 public:
  explicit ViewFinder(const Graph& graph) : graph_(graph), owned_by_user_(graph.values.size(), false) {
    views_.is_view.assign(graph.nodes.size(), false);
    views_.offset.assign(graph.values.size(), 0);
    for (size_t v = 0; v < graph.values.size(); ++v) views_.storage_of.push_back(static_cast<ValueId>(v));
  }

  Views run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!is_reshape(node.op)) continue;
      views_.is_view[n] = true;
      views_.storage_of[index(node.outputs[0])] = views_.storage_of[index(node.inputs[0])];
    }
    // Inputs, constants and outputs of the model have memory of their own.
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].constant) owned_by_user_[index(views_.storage_of[v])] = true;
    }
    for (ValueId id : graph_.inputs) owned_by_user_[index(id)] = true;
    for (ValueId id : graph_.outputs) owned_by_user_[index(views_.storage_of[index(id)])] = true;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].op == "Concat") views_.is_view[n] = place_concat(graph_.nodes[n]);
    }
    return std::move(views_);
  }

 private:
  int64_t bytes(ValueId id) const {
    const Value& value = graph_.values[index(id)];
    return product(value.shape) * ir::bytes_of(value.dtype);
  }

  bool concatenates_outermost(const Node& node) const {
    const Shape& shape = graph_.values[index(node.outputs[0])].shape;
    const auto found = node.attributes.find("axis");
    const auto* axis = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
    if (axis == nullptr) return false;
    const int64_t first = *axis < 0 ? *axis + static_cast<int64_t>(shape.size()) : *axis;
    return product(shape) > 0 &&
           std::all_of(shape.begin(), shape.begin() + first, [](int64_t d) { return d == 1; });
  }

  bool place_concat(const Node& node) {
    const ValueId output = node.outputs[0];
    if (node.inputs.size() < 2 || owned_by_user_[index(output)] || !concatenates_outermost(node))
      return false;
    std::vector<ValueId> roots;
    std::vector<int64_t> places;
    int64_t place = 0;
    for (ValueId id : node.inputs) {
      const ValueId root = views_.storage_of[index(id)];
      // A part of another value stays there.
      if (owned_by_user_[index(root)] || views_.offset[index(id)] != 0 || bytes(root) != bytes(id))
        return false;
      if (std::find(roots.begin(), roots.end(), root) != roots.end()) return false;
      if (place % runtime::kBufferAlignment != 0) return false;
      roots.push_back(root);
      places.push_back(place);
      place += bytes(id);
    }
    for (size_t v = 0; v < views_.storage_of.size(); ++v) {
      const auto found = std::find(roots.begin(), roots.end(), views_.storage_of[v]);
      if (found == roots.end()) continue;
      views_.storage_of[v] = output;
      views_.offset[v] += places[static_cast<size_t>(found - roots.begin())];
    }
    return true;
  }

  const Graph& graph_;
  std::vector<bool> owned_by_user_;  // by storage
  Views views_;
};

}  // namespace

Views find_views(const Graph& graph) { return ViewFinder(graph).run(); }

}  // namespace tensorsmith::graph
