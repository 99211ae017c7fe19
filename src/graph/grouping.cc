#include "graph/grouping.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/emit.h"
#include "graph/infer.h"
#include "graph/passes/passes.h"
#include "graph/routines.h"
#include "ir/analysis.h"
#include "ir/linear.h"

namespace tensorsmith::graph {
namespace {

constexpr size_t kMaxGroupNodes = 24;  // longer chains gain nothing more and cost code generation time
constexpr double kMaxPrologueReads =
    4;  // a prologue is recomputed at each read, so it is fused only if elements are read rarely
// Smallest scores of an attention, in bytes, that are fused into one kernel. Smaller ones stay in
// L2 between separate kernels, which are as fast then: equal at 0.8 MB; from 2 MB on, one kernel is
// 1.1 to 1.3 times as fast.
constexpr int64_t kMinAttentionBytes = 1 << 20;
constexpr int64_t kMinAttentionRows = 16;       // queries that one block of the kernel computes together
constexpr int64_t kMaxNormalizedRow = 1 << 16;  // rows of fused normalizations should stay in the cache

// Properties of a node's tensor expressions.
struct NodeFacts {
  NodeClass cls = NodeClass::kInjective;
  std::unordered_set<ValueId> identity_inputs;  // inputs of the output's shape that are read at the output's
                                                // own indices
  std::unordered_map<ValueId, double> reads_per_element;
  int64_t trailing_reduced =
      0;  // for reductions over exactly the last k axes of their input: the row length; else 0
  bool selects_channels = false;  // only moves whole images (selects_channels_of)
};

// Returns whether each image of the output is an image of the input whose position is affine in
// batch and channel, so that a reader can read the input directly, with another stride.
//   out[n, c, y, x] = in[n, 2 * c + 1, y, x]
bool selects_channels_of(const ir::Operation& op) {
  const auto* load = op.bodies.size() == 1 ? ir::as<ir::Load>(op.bodies[0]) : nullptr;
  const size_t rank = op.spatial.size();
  if (load == nullptr || op.has_reduction() || rank < 3 || load->indices.size() != rank) return false;
  for (size_t d = 0; d < rank; ++d) {
    if (d < 2) {
      if (!ir::as_affine(load->indices[d])) return false;
      continue;
    }
    if (load->buffer->shape[d] != op.spatial[d].extent) return false;
    const auto* var = ir::as<ir::VarRef>(load->indices[d]);
    const bool same = var && var->var == op.spatial[d].var;
    if (!same && !(op.spatial[d].extent == 1 && ir::is_int_value(load->indices[d], 0))) return false;
  }
  return true;
}

bool is_identity_load(const ir::Load& load, const ir::Operation& op) {
  if (load.indices.size() != op.spatial.size()) return false;
  if (load.buffer->shape != op.output()->shape) return false;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const auto* var = ir::as<ir::VarRef>(load.indices[d]);
    // The index of an axis of extent 1 may be the constant 0.
    if (var && var->var == op.spatial[d].var) continue;
    if (op.spatial[d].extent == 1 && ir::is_int_value(load.indices[d], 0)) continue;
    return false;
  }
  return true;
}

// Returns the row length if the reduction runs over the last axes of each tensor that it reads, and
// the leading indices are spatial.
int64_t trailing_reduction_row(const ir::Operation& op) {
  int64_t row = 1;
  for (const auto& axis : op.reduce) row *= axis.extent;
  for (const auto& body : op.bodies) {
    for (const ir::Load* load : ir::loads_of(body)) {
      const size_t rank = load->indices.size();
      if (rank < op.reduce.size()) return 0;
      for (size_t r = 0; r < op.reduce.size(); ++r) {
        const auto* var = ir::as<ir::VarRef>(load->indices[rank - op.reduce.size() + r]);
        if (!var || !(var->var == op.reduce[r].var)) return 0;
      }
      for (size_t d = 0; d + op.reduce.size() < rank; ++d) {
        const auto* var = ir::as<ir::VarRef>(load->indices[d]);
        if (!var && !ir::as_int(load->indices[d])) return 0;
        for (const auto& axis : op.reduce) {
          if (var && var->var == axis.var) return 0;
        }
      }
    }
  }
  return row;
}

Result<NodeFacts> examine(const Graph& graph, const Node& node) {
  NodeFacts facts;
  WorkloadBuilder builder;
  std::vector<ir::Buffer> inputs;
  std::unordered_map<const ir::BufferNode*, ValueId> value_of;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) {
      inputs.emplace_back();
      continue;
    }
    const Value& value = graph.values[id];
    inputs.push_back(builder.placeholder("in", value.dtype, value.shape, value.constant != nullptr));
    value_of[inputs.back().get()] = id;
  }
  TS_ASSIGN_OR_RETURN(std::vector<ir::Buffer> outputs, emit(graph, node, inputs, builder));
  std::unordered_map<const ir::BufferNode*, std::unordered_set<ValueId>> identity;  // of intermediate buffers
  bool reduction = false;
  bool one_shape = true;
  int computed = 0;
  std::unordered_set<ValueId> moved;
  for (const auto& op : builder.operations()) {
    if (op->is_placeholder()) continue;
    facts.selects_channels = ++computed == 1 && selects_channels_of(*op);
    if (op->has_reduction()) {
      facts.trailing_reduced = reduction ? 0 : trailing_reduction_row(*op);
      reduction = true;
    }
    if (op->output()->shape != outputs.front()->shape) one_shape = false;
    std::unordered_set<ValueId> here;
    for (const auto& body : op->bodies) {
      for (const ir::Load* load : ir::loads_of(body)) {
        const bool same_place = !op->has_reduction() && is_identity_load(*load, *op);
        if (auto it = value_of.find(load->buffer.get()); it != value_of.end()) {
          facts.reads_per_element[it->second] +=
              iteration_count(*op) / std::max<double>(1, load->buffer->num_elements());
          if (same_place)
            here.insert(it->second);
          else
            moved.insert(it->second);
        } else if (auto through = identity.find(load->buffer.get()); through != identity.end()) {
          for (ValueId id : through->second) {
            if (same_place)
              here.insert(id);
            else
              moved.insert(id);
          }
        }
      }
    }
    for (const auto& out : op->outputs) identity[out.get()] = here;
  }
  for (ValueId id : identity[outputs.front().get()]) {
    if (!moved.count(id)) facts.identity_inputs.insert(id);
  }
  facts.cls = NodeClass::kInjective;
  if (reduction)
    facts.cls = NodeClass::kReduction;
  else if (one_shape && outputs.size() == 1 && !facts.identity_inputs.empty())
    facts.cls = NodeClass::kElementwise;
  return facts;
}

// The groups as a union-find over nodes, with the post-dominator tree of the data flow.
class Grouper {
 public:
  Grouper(const Graph& graph, const Views& views, bool routines)
      : graph_(graph), views_(views), routines_(routines) {}

  Result<Grouping> run() {
    const auto nodes = graph_.nodes.ids();
    for (const NodeId i : nodes) {
      NodeFacts facts;
      facts.cls = NodeClass::kAlias;
      const bool region = graph_.nodes[i].region != nullptr;
      if (!views_.is_view[i] && (region || (routines_ && routine_of(graph_, graph_.nodes[i])))) {
        facts.cls = NodeClass::kRoutine;
      } else if (!views_.is_view[i]) {
        TS_ASSIGN_OR_RETURN(facts, examine(graph_, graph_.nodes[i]));
      }
      facts_.push_back(std::move(facts));
    }
    find_consumers();
    find_post_dominators();
    for (const NodeId i : nodes) {
      group_of_.push_back(i);
      members_.push_back({i});
    }

    for (const NodeId i : nodes) fuse_attention(i);
    for (const NodeId i : nodes) fuse_normalization(i);
    for (const NodeId i : nodes) {
      if (cls(i) == NodeClass::kReduction) fuse_epilogue(i);
    }
    for (const NodeId i : nodes) {
      if (cls(i) == NodeClass::kElementwise || cls(i) == NodeClass::kInjective) fuse_epilogue(i);
    }
    for (const NodeId i : std::views::reverse(nodes)) fuse_into_consumer(i);

    Grouping out;
    for (const NodeId i : nodes) {
      out.classes.push_back(cls(i));
      if (cls(i) != NodeClass::kAlias && group_of_[i] == i) {
        out.groups.push_back(members_[i]);
        std::sort(out.groups.back().begin(), out.groups.back().end());
      }
    }
    return out;
  }

 private:
  NodeClass cls(NodeId node) const { return facts_[node].cls; }
  NodeId exit_node() const { return graph_.nodes.next(); }  // the end of all paths
  NodeId producer_of(ValueId id) const { return producer_[id]; }

  void find_consumers() {
    consumers_.resize(graph_.nodes.size());
    is_output_.resize(graph_.nodes.size(), false);
    for (const NodeId i : graph_.nodes.ids()) {
      for (ValueId id : graph_.nodes[i].inputs) {
        if (id == kNoValue || !producer_of(id).valid()) continue;
        auto& list = consumers_[producer_of(id)];
        if (list.empty() || list.back() != i) list.push_back(i);
      }
    }
    for (ValueId id : graph_.outputs) {
      if (producer_of(id).valid()) is_output_[producer_of(id)] = true;
    }
  }

  // Finds the immediate post-dominator of each node: the first node that every path to an output passes, or
  // exit_node() if there is none.
  void find_post_dominators() {
    const NodeId exit = exit_node();
    post_dominator_.assign(graph_.nodes.size(), exit);
    // Each node has a jump to an ancestor so far up that a search needs O(log n) steps (Myers, An
    // applicative random-access stack, 1983): graphs may be chains of any length.
    IdVector<NodeId, size_t> depth(graph_.nodes.size() + 1, 0);
    IdVector<NodeId, NodeId> jump(graph_.nodes.size() + 1, exit);
    const auto parent = [&](NodeId node) { return node == exit ? exit : post_dominator_[node]; };
    const auto meeting_point = [&](NodeId a, NodeId b) {
      if (depth[a] < depth[b]) std::swap(a, b);
      while (depth[a] > depth[b]) a = depth[jump[a]] >= depth[b] ? jump[a] : parent(a);
      while (a != b) {
        const bool far = jump[a] != jump[b];
        a = far ? jump[a] : parent(a);
        b = far ? jump[b] : parent(b);
      }
      return a;
    };
    for (const NodeId i : std::views::reverse(graph_.nodes.ids())) {
      NodeId meet = is_output_[i] || consumers_[i].empty() ? exit : consumers_[i].front();
      for (NodeId c : consumers_[i]) meet = meeting_point(meet, c);
      post_dominator_[i] = meet;
      depth[i] = depth[meet] + 1;
      const NodeId next = jump[meet];
      jump[i] = depth[meet] - depth[next] == depth[next] - depth[jump[next]] ? jump[next] : meet;
    }
  }

  // Returns all nodes on paths from `from` (excluded) to `to` (included); only some of them if
  // there are more than a group may have.
  std::vector<NodeId> region(NodeId from, NodeId to) const {
    std::set<NodeId> seen;
    std::vector<NodeId> stack(consumers_[from].begin(), consumers_[from].end());
    while (!stack.empty() && seen.size() <= kMaxGroupNodes) {
      const NodeId node = stack.back();
      stack.pop_back();
      if (!seen.insert(node).second || node == to) continue;
      stack.insert(stack.end(), consumers_[node].begin(), consumers_[node].end());
    }
    return {seen.begin(), seen.end()};
  }

  const std::vector<int64_t>& output_shape(NodeId node) const {
    return graph_.values[graph_.nodes[node].outputs.front()].shape;
  }
  // Returns whether the node reads every value of the group at the node's own output indices.
  bool reads_at_place(NodeId node, const std::unordered_set<NodeId>& group) const {
    for (ValueId id : graph_.nodes[node].inputs) {
      if (id == kNoValue || facts_[node].identity_inputs.count(id)) continue;
      for (NodeId member : group) {
        const auto& outs = graph_.nodes[member].outputs;
        if (std::find(outs.begin(), outs.end(), id) != outs.end()) return false;
      }
    }
    return true;
  }

  void merge(NodeId into, const std::vector<NodeId>& nodes) {
    for (NodeId node : nodes) {
      const NodeId old = group_of_[node];
      if (old == into) continue;
      for (NodeId member : members_[old]) {
        group_of_[member] = into;
        members_[into].push_back(member);
      }
      members_[old].clear();
    }
  }

  // Fuses the elementwise consumers of a group, as long as each step reaches a node that all paths
  // pass through.
  void fuse_epilogue(NodeId start) {
    const NodeId group = group_of_[start];
    NodeId sink = *std::max_element(members_[group].begin(), members_[group].end());
    while (sink != exit_node()) {
      const NodeId next = post_dominator_[sink];
      if (next == exit_node() || is_output_[sink]) return;
      if (graph_.nodes[sink].outputs.size() != 1) return;
      const std::vector<NodeId> path = region(sink, next);
      std::unordered_set<NodeId> together(members_[group].begin(), members_[group].end());
      together.insert(path.begin(), path.end());
      if (together.size() > kMaxGroupNodes) return;
      for (NodeId node : path) {
        if (cls(node) != NodeClass::kElementwise || group_of_[node] != node || members_[node].size() != 1)
          return;
        if (output_shape(node) != output_shape(sink) || (node != next && is_output_[node])) return;
        if (!reads_at_place(node, together)) return;
      }
      if (path.empty()) return;
      merge(group, path);
      sink = next;
    }
  }

  // Returns whether the node is in no group yet and only one node reads it.
  bool read_once(NodeId node) const {
    return group_of_[node] == node && members_[node].size() == 1 && !is_output_[node] &&
           consumers_[node].size() == 1 && graph_.nodes[node].outputs.size() == 1;
  }

  bool normalizes_last_axis(const Node& softmax) const {
    const int64_t axis = softmax.integer("axis", softmax.opset >= 13 ? -1 : 1);
    return axis == -1 || axis == std::ssize(graph_.values[softmax.inputs[0]].shape) - 1;
  }

  // Returns whether the value is a matrix product, possibly scaled, masked and so on, and appends
  // the nodes that compute it.
  bool find_scores(ValueId value, std::vector<NodeId>& nodes) const {
    const NodeId node = producer_of(value);
    if (!node.valid() || nodes.size() + 2 > kMaxGroupNodes) return false;
    if (!read_once(node) || graph_.values[value].dtype != ir::DType::kF32) return false;
    nodes.push_back(node);
    if (graph_.nodes[node].op == "MatMul") return true;
    if (cls(node) == NodeClass::kElementwise) {
      for (ValueId id : facts_[node].identity_inputs)
        if (find_scores(id, nodes)) return true;
    }
    nodes.pop_back();
    return false;
  }

  // Attention: softmax(q * k^T, scaled and masked) * v becomes one kernel that computes and uses
  // the scores of some rows of queries at a time. Small scores stay in the cache without fusion.
  void fuse_attention(NodeId softmax) {
    const Node& node = graph_.nodes[softmax];
    if (node.op != "Softmax" || !normalizes_last_axis(node) || !read_once(softmax)) return;
    const NodeId product = consumers_[softmax].front();
    const Node& contraction = graph_.nodes[product];
    if (contraction.op != "MatMul" || contraction.inputs[0] != node.outputs[0] ||
        contraction.inputs[1] == node.outputs[0] || group_of_[product] != product ||
        members_[product].size() != 1)
      return;
    const auto& shape = output_shape(softmax);
    int64_t elements = 1;
    for (int64_t extent : shape) elements *= extent;
    const int64_t bytes = ir::bytes_of(ir::DType::kF32, elements);
    if (shape.size() < 2 || shape[shape.size() - 2] < kMinAttentionRows || bytes < kMinAttentionBytes) return;
    std::vector<NodeId> nodes;
    if (!find_scores(node.inputs[0], nodes)) return;
    nodes.push_back(softmax);
    nodes.push_back(product);
    merge(nodes.front(), nodes);
  }

  // Decomposed layer normalization and softmax: x -> {reductions over the row, elementwise} -> y
  // becomes one kernel.
  void fuse_normalization(NodeId first) {
    if (group_of_[first] != first || members_[first].size() != 1) return;
    // The region starts behind the producer of x, at a node whose value has both a row reduction
    // and another node as consumers.
    if (is_output_[first] || consumers_[first].size() < 2 || cls(first) == NodeClass::kAlias) return;
    if (graph_.nodes[first].outputs.front() == kNoValue) return;  // x is another output of a loop
    NodeId last = post_dominator_[first];
    if (last == exit_node()) return;
    const std::vector<NodeId> path = region(first, last);
    if (path.size() > kMaxGroupNodes) return;
    bool has_reduction = false;
    const std::vector<int64_t>& shape = output_shape(first);
    for (NodeId node : path) {
      if (group_of_[node] != node || members_[node].size() != 1) return;
      if (node != last && is_output_[node]) return;
      if (cls(node) == NodeClass::kReduction) {
        if (facts_[node].trailing_reduced <= 1 || facts_[node].trailing_reduced > kMaxNormalizedRow) return;
        has_reduction = true;
      } else if (cls(node) != NodeClass::kElementwise) {
        return;
      }
      // Only values of a row, or one value per row, and nothing larger.
      const auto& out = output_shape(node);
      if (out.size() != shape.size()) return;
      for (size_t d = 0; d < out.size(); ++d) {
        if (out[d] != shape[d] && out[d] != 1) return;
      }
    }
    if (!has_reduction || output_shape(last) != shape) return;
    merge(path.front(), path);
  }

  // A cheap producer that is read by only one kernel, each element only a few times, is computed by
  // its reader.
  void fuse_into_consumer(NodeId node) {
    if (cls(node) != NodeClass::kElementwise && cls(node) != NodeClass::kInjective) return;
    const NodeId group = group_of_[node];
    const auto& members = members_[group];
    for (NodeId member : members) {
      if (cls(member) == NodeClass::kReduction) return;
    }
    if (node != *std::max_element(members.begin(), members.end())) return;
    if (is_output_[node] || consumers_[node].empty() || graph_.nodes[node].outputs.size() != 1) return;
    const NodeId reader_group = group_of_[consumers_[node].front()];
    const ValueId value = graph_.nodes[node].outputs.front();
    for (NodeId c : consumers_[node]) {
      if (group_of_[c] != reader_group || cls(c) == NodeClass::kAlias || cls(c) == NodeClass::kRoutine)
        return;
      const bool free = members.size() == 1 && facts_[node].selects_channels;
      if (!free && facts_[c].reads_per_element.count(value) &&
          facts_[c].reads_per_element.at(value) > kMaxPrologueReads)
        return;
    }
    if (members.size() + members_[reader_group].size() > kMaxGroupNodes) return;
    // No other path may leave this group and return through a third kernel: all its values must be
    // read inside.
    for (NodeId member : members) {
      if (member != node && is_output_[member]) return;
      for (NodeId c : consumers_[member]) {
        if (group_of_[c] != group && group_of_[c] != reader_group) return;
      }
    }
    // Concat reads each input only in one part of its output. Computing the producer there adds a
    // branch and saves nothing for long chains.
    merge(reader_group, std::vector<NodeId>(members.begin(), members.end()));
  }

  const Graph& graph_;
  const Views& views_;
  const bool routines_;
  const IdVector<ValueId, NodeId> producer_ = find_producers(graph_);
  IdVector<NodeId, NodeFacts> facts_;
  IdVector<NodeId, std::vector<NodeId>> consumers_;
  IdVector<NodeId, bool> is_output_;
  IdVector<NodeId, NodeId> post_dominator_;
  // A group has the id of its first node.
  IdVector<NodeId, NodeId> group_of_;
  IdVector<NodeId, std::vector<NodeId>> members_;
};

}  // namespace

Result<Grouping> group_nodes(const Graph& graph, const Views& views, bool routines) {
  return Grouper(graph, views, routines).run();
}

}  // namespace tensorsmith::graph
