#include "graph/views.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/infer.h"
#include "graph/ops/op_context.h"
#include "graph/ops/registry.h"
#include "ir/analysis.h"
#include "ir/linear.h"
#include "runtime/model_format.h"

namespace tensorsmith::graph {
namespace {

// A node with a second output, Dropout's mask, has to be computed.
bool is_reshape(const Node& node) {
  return node.outputs.size() == 1 && has_trait(node.op, kReshapes | kReturnsInput);
}

class ViewFinder {
 public:
  ViewFinder(const Graph& graph, int64_t alignment)
      : graph_(graph), alignment_(alignment), owned_by_user_(graph.values.size(), false) {
    views_.is_view.assign(graph.nodes.size(), false);
    views_.offset.assign(graph.values.size(), 0);
    for (const ValueId v : graph.values.ids()) views_.storage_of.push_back(v);
  }

  Views run() {
    for (const NodeId n : graph_.nodes.ids()) {
      const Node& node = graph_.nodes[n];
      if (!is_reshape(node)) continue;
      views_.is_view[n] = true;
      views_.storage_of[node.outputs[0]] = views_.storage_of[node.inputs[0]];
    }
    // Inputs, constants and outputs of the model have memory of their own.
    for (const ValueId v : graph_.values.ids()) {
      if (graph_.values[v].constant) owned_by_user_[views_.storage_of[v]] = true;
    }
    for (ValueId id : graph_.inputs) owned_by_user_[id] = true;
    for (ValueId id : graph_.outputs) owned_by_user_[views_.storage_of[id]] = true;
    for (const NodeId n : graph_.nodes.ids())
      views_.is_view[n] = views_.is_view[n] || take_parts(graph_.nodes[n]);
    for (const NodeId n : graph_.nodes.ids()) {
      if (graph_.nodes[n].op == "Concat") views_.is_view[n] = place_concat(graph_.nodes[n]);
    }
    return std::move(views_);
  }

 private:
  int64_t bytes(ValueId id) const { return graph_.values[id].bytes(); }

  // Places everything that shares the memory of `part` at an offset in the memory of `whole`.
  void place(ValueId part, ValueId whole, int64_t place) {
    for (const ValueId v : views_.storage_of.ids()) {
      if (views_.storage_of[v] != part) continue;
      views_.storage_of[v] = whole;
      views_.offset[v] += place;
    }
  }

  // Handles Split, Slice and similar operators if each output is a range of the input's memory.
  bool take_parts(const Node& node) {
    if (node.op != "Split" && node.op != "Slice" && node.op != "Gather" && node.op != kMoveOperator)
      return false;
    const ValueId input = node.inputs[0];
    const ValueId root = views_.storage_of[input];
    if (owned_by_user_[root]) return false;
    const auto work = node_workload(graph_, node);
    if (!work.ok()) return false;
    std::vector<std::pair<ValueId, int64_t>> parts;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (id == kNoValue) continue;
      const auto first = range_start(*work, i);
      if (!first || owned_by_user_[id]) return false;
      const int64_t place = *first * ir::bytes_of(graph_.values[id].dtype);
      if (place % alignment_ != 0) return false;
      parts.emplace_back(id, place);
    }
    for (const auto& [id, start] : parts) place(id, root, views_.offset[input] + start);
    return !parts.empty();
  }

  // Returns the element of input 0 at which output i begins, if the output consists of consecutive
  // elements from there on.
  static std::optional<int64_t> range_start(const NodeWorkload& work, size_t i) {
    for (const auto& op : work.workload.operations) {
      if (op->is_placeholder() || op->outputs.size() != 1 || op->output() != work.outputs[i]) continue;
      const auto* load = ir::as<ir::Load>(op->bodies[0]);
      if (load == nullptr || load->buffer != work.inputs[0] || op->has_reduction()) return std::nullopt;
      const std::vector<int64_t> from = load->buffer->effective_strides(),
                                 to = op->output()->effective_strides();
      std::vector<int64_t> steps(op->spatial.size(), 0);
      int64_t first = 0;
      for (size_t d = 0; d < load->indices.size(); ++d) {
        const auto affine = ir::as_affine(load->indices[d]);
        if (!affine) return std::nullopt;
        first += affine->constant * from[d];
        for (const auto& [var, factor] : affine->terms) {
          for (size_t a = 0; a < steps.size(); ++a)
            if (op->spatial[a].var == var) steps[a] += factor * from[d];
        }
      }
      for (size_t a = 0; a < steps.size(); ++a) {
        const int64_t extent = op->spatial[a].extent;
        if (extent < 1 || (extent > 1 && steps[a] != to[a])) return std::nullopt;
      }
      return first;
    }
    return std::nullopt;
  }

  bool concatenates_outermost(const Node& node) const {
    const Shape& shape = graph_.values[node.outputs[0]].shape;
    const auto* axis = node.find<int64_t>("axis");
    if (axis == nullptr) return false;
    const int64_t first = *axis < 0 ? *axis + std::ssize(shape) : *axis;
    return product(shape) > 0 &&
           std::all_of(shape.begin(), shape.begin() + first, [](int64_t d) { return d == 1; });
  }

  bool place_concat(const Node& node) {
    const ValueId output = node.outputs[0];
    if (node.inputs.size() < 2 || owned_by_user_[output] || !concatenates_outermost(node)) return false;
    std::vector<std::pair<ValueId, int64_t>> parts;
    int64_t start = 0;
    for (size_t i = 0; i < node.inputs.size();) {
      const ValueId root = views_.storage_of[node.inputs[i]];
      if (owned_by_user_[root] || start % alignment_ != 0) return false;
      if (std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return part.first == root; }))
        return false;
      // A part of another value cannot be moved, unless all parts of that value follow in order.
      int64_t reached = 0;
      for (; i < node.inputs.size() && views_.storage_of[node.inputs[i]] == root &&
             views_.offset[node.inputs[i]] == reached && reached < bytes(root);
           ++i)
        reached += bytes(node.inputs[i]);
      if (reached != bytes(root)) return false;
      parts.emplace_back(root, start);
      start += reached;
    }
    for (const auto& [root, at] : parts) place(root, output, at);
    return true;
  }

  const Graph& graph_;
  const int64_t alignment_;
  IdVector<ValueId, bool> owned_by_user_;  // by storage
  Views views_;
};

}  // namespace

Views find_views(const Graph& graph, int64_t alignment) { return ViewFinder(graph, alignment).run(); }

}  // namespace tensorsmith::graph
