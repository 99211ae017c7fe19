#include "graph/regions.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "graph/evaluate.h"
#include "graph/infer.h"
#include "graph/ops/op_context.h"
#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

using TensorRef = std::shared_ptr<const lower::Tensor>;

Error wrong(const Node& node, std::string reason) {
  return Error{ErrorCode::kInvalidArgument, node.name, std::move(reason)};
}

std::string described(const Value& value) { return describe(value.dtype, value.shape); }

bool same_type(const Value& a, const Value& b) { return a.dtype == b.dtype && a.shape == b.shape; }

Value slices_of(const Value& slice, int64_t turns) {
  Value tensor{"", slice.dtype, slice.shape, nullptr};
  tensor.shape.insert(tensor.shape.begin(), turns);
  return tensor;
}

Status set_output(Graph& graph, ValueId id, const Value& type) {
  if (id == kNoValue) return {};
  graph.values[id].dtype = type.dtype;
  graph.values[id].shape = type.shape;
  return {};
}

Status infer_branch(Graph& graph, const Node& node) {
  const Region& region = *node.region;
  if (region.bodies.size() != 2) return wrong(node, "a branch has two bodies");
  for (const Graph& body : region.bodies) {
    if (node.inputs.size() != 1 + body.inputs.size() || node.outputs.size() != body.outputs.size())
      return wrong(node, "its bodies have other numbers of inputs and outputs");
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      if (!same_type(body.values[body.inputs[i]], graph.values[node.inputs[1 + i]]))
        return wrong(node, "an input differs from that of its body");
    }
  }
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    const Value& yes = region.bodies[0].values[region.bodies[0].outputs[o]];
    const Value& no = region.bodies[1].values[region.bodies[1].outputs[o]];
    if (!same_type(yes, no))
      return wrong(node, "output " + std::to_string(o) + " is " + described(yes) + " in one branch and " +
                             described(no) + " in the other");
    TS_RETURN_IF_ERROR(set_output(graph, node.outputs[o], yes));
  }
  return {};
}

Status infer_loop(Graph& graph, const Node& node) {
  const Region& region = *node.region;
  if (region.bodies.size() != 1) return wrong(node, "a loop has one body");
  const Graph& body = region.bodies[0];
  const size_t lead = region.leading_inputs(), conditions = region.conditional ? 1 : 0;
  const size_t slices = region.slices_backwards.size(), results = region.results_backwards.size();
  if (node.inputs.size() != lead + body.inputs.size() || node.outputs.size() != region.states + results ||
      body.inputs.size() < region.states + slices ||
      body.outputs.size() != conditions + region.states + results)
    return wrong(node, "its body has other numbers of inputs and outputs");
  if ((region.turns == 0 || region.counted || region.conditional) && slices + results > 0)
    return wrong(node, "the number of slices is not known");
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    const Value& inside = body.values[body.inputs[i]];
    const bool slice = i >= region.states && i < region.states + slices;
    const Value expected = slice ? slices_of(inside, region.turns) : inside;
    const Value& given = graph.values[node.inputs[lead + i]];
    if (!same_type(expected, given))
      return wrong(node, "input " + std::to_string(i) + " is " + described(given) + " instead of " +
                             described(expected));
  }
  for (size_t s = 0; s < region.states; ++s) {
    const Value& now = body.values[body.inputs[s]];
    const Value& next = body.values[body.outputs[conditions + s]];
    if (!same_type(now, next))
      return wrong(node, "state " + std::to_string(s) + " is " + described(now) + ", but " + described(next) +
                             " after a turn");
    TS_RETURN_IF_ERROR(set_output(graph, node.outputs[s], now));
  }
  for (size_t r = 0; r < results; ++r) {
    const Value& result = body.values[body.outputs[conditions + region.states + r]];
    if (!is_reasonable(slices_of(result, region.turns).shape))
      return wrong(node, "the results of " + std::to_string(region.turns) + " turns are too large");
    TS_RETURN_IF_ERROR(set_output(graph, node.outputs[region.states + r], slices_of(result, region.turns)));
  }
  return {};
}

Result<std::vector<TensorRef>> run_body(const Graph& body, const std::vector<TensorRef>& inputs) {
  std::vector<lower::Tensor> given;
  for (const TensorRef& input : inputs) given.push_back(*input);
  TS_ASSIGN_OR_RETURN(std::vector<lower::Tensor> outputs, evaluate(body, given));
  std::vector<TensorRef> results;
  for (lower::Tensor& output : outputs)
    results.push_back(std::make_shared<const lower::Tensor>(std::move(output)));
  return results;
}

Result<std::vector<TensorRef>> evaluate_loop(const Node& node, std::span<const TensorRef> inputs) {
  constexpr int64_t kMostTurns = int64_t{1} << 24;
  const Region& region = *node.region;
  const Graph& body = region.bodies[0];
  const size_t lead = region.leading_inputs(), conditions = region.conditional ? 1 : 0;
  const size_t slices = region.slices_backwards.size(), results = region.results_backwards.size();
  int64_t turns = region.turns > 0 ? region.turns : kMostTurns;
  if (region.counted) turns = std::min(turns, inputs[0]->at(0).i);
  bool active = !region.conditional || inputs[lead - 1]->at(0).i != 0;
  std::vector<TensorRef> given(inputs.begin() + static_cast<ptrdiff_t>(lead), inputs.end());
  const std::vector<TensorRef> tensors(given.begin() + static_cast<ptrdiff_t>(region.states),
                                       given.begin() + static_cast<ptrdiff_t>(region.states + slices));
  std::vector<std::shared_ptr<lower::Tensor>> collected;
  for (size_t r = 0; r < results; ++r) {
    const Value tensor = slices_of(body.values[body.outputs[conditions + region.states + r]], region.turns);
    collected.push_back(std::make_shared<lower::Tensor>(lower::Tensor::zeros(tensor.dtype, tensor.shape)));
  }
  const auto place = [&](int64_t turn, bool backwards) { return backwards ? region.turns - 1 - turn : turn; };
  for (int64_t turn = 0; active && turn < turns; ++turn) {
    for (size_t i = 0; i < slices; ++i) {
      const Value& type = body.values[body.inputs[region.states + i]];
      auto slice = std::make_shared<lower::Tensor>(lower::Tensor::zeros(type.dtype, type.shape));
      const size_t bytes = slice->data.size();
      if (bytes > 0)
        std::memcpy(slice->data.data(),
                    tensors[i]->data.data() + place(turn, region.slices_backwards[i]) * bytes, bytes);
      given[region.states + i] = std::move(slice);
    }
    TS_ASSIGN_OR_RETURN(const std::vector<TensorRef> made, run_body(body, given));
    if (region.conditional) active = made[0]->at(0).i != 0;
    for (size_t s = 0; s < region.states; ++s) given[s] = made[conditions + s];
    for (size_t r = 0; r < results; ++r) {
      const auto& slice = made[conditions + region.states + r]->data;
      if (!slice.empty())
        std::memcpy(collected[r]->data.data() + place(turn, region.results_backwards[r]) * slice.size(),
                    slice.data(), slice.size());
    }
  }
  if (active && turns == kMostTurns && region.turns == 0)
    return Error{ErrorCode::kResourceExhausted, node.name, "the loop does not end"};
  given.resize(region.states);
  given.insert(given.end(), collected.begin(), collected.end());
  return given;
}

// Removes element i of both lists.
void erase_at(std::vector<ValueId>& list, size_t i) { list.erase(list.begin() + static_cast<ptrdiff_t>(i)); }

// The part of the inputs that are the same in all turns begins here.
size_t first_shared_input(const Node& node) {
  return node.op == kLoopOperator ? node.region->states + node.region->slices_backwards.size() : 0;
}
size_t leading_inputs(const Node& node) {
  return node.op == kLoopOperator ? node.region->leading_inputs() : 1;
}

void erase_input(Node& node, Region& region, size_t i) {
  erase_at(node.inputs, leading_inputs(node) + i);
  for (Graph& body : region.bodies) erase_at(body.inputs, i);
}

void pass_constants(const Graph& graph, Node& node, Region& region) {
  for (size_t i = region.bodies[0].inputs.size(); i-- > first_shared_input(node);) {
    const TensorRef& constant = graph.values[node.inputs[leading_inputs(node) + i]].constant;
    if (constant == nullptr) continue;
    for (Graph& body : region.bodies) body.values[body.inputs[i]].constant = constant;
    erase_input(node, region, i);
  }
}

void drop_unread_outputs(const IdVector<ValueId, int>& uses, Node& node, Region& region) {
  const bool loop = node.op == kLoopOperator;
  const size_t first = loop ? region.states : 0, conditions = loop && region.conditional ? 1 : 0;
  for (size_t o = node.outputs.size(); o-- > 0;) {
    const ValueId output = node.outputs[o];
    if (output != kNoValue && uses[output] > 0) continue;
    node.outputs[o] = kNoValue;
    if (o < first) continue;  // a state is needed in the body
    erase_at(node.outputs, o);
    for (Graph& body : region.bodies) erase_at(body.outputs, conditions + o);
    if (loop)
      region.results_backwards.erase(region.results_backwards.begin() + static_cast<ptrdiff_t>(o - first));
  }
}

void drop_unread_inputs(Node& node, Region& region) {
  for (size_t i = region.bodies[0].inputs.size(); i-- > first_shared_input(node);) {
    const bool read = std::ranges::any_of(
        region.bodies, [&](const Graph& body) { return count_uses(body)[body.inputs[i]] > 0; });
    if (!read) erase_input(node, region, i);
  }
}

}  // namespace

Status infer_region(Graph& graph, const Node& node) {
  return node.op == kLoopOperator ? infer_loop(graph, node) : infer_branch(graph, node);
}

Result<std::vector<TensorRef>> evaluate_region(const Node& node, std::span<const TensorRef> inputs) {
  if (node.op == kLoopOperator) return evaluate_loop(node, inputs);
  const size_t taken = inputs[0]->at(0).i != 0 ? 0 : 1;
  if (!node.region->refused[taken].empty())
    return Error{ErrorCode::kUnsupported, node.name, node.region->refused[taken]};
  const Graph& body = node.region->bodies[taken];
  return run_body(body, {inputs.begin() + 1, inputs.end()});
}

Status optimize_regions(Graph& graph, const OptimizeOptions& options) {
  const IdVector<ValueId, int> uses = count_uses(graph);
  for (Node& node : graph.nodes) {
    if (node.region == nullptr) continue;
    auto region = std::make_shared<Region>(*node.region);
    pass_constants(graph, node, *region);
    drop_unread_outputs(uses, node, *region);
    node.region = region;
    for (size_t b = 0; b < region->bodies.size(); ++b)
      if (region->refused[b].empty()) TS_RETURN_IF_ERROR(optimize(region->bodies[b], options));
    drop_unread_inputs(node, *region);
  }
  return {};
}

namespace {

class Unroller {
 public:
  Unroller(Graph& graph, bool all) : graph_(graph), all_(all) {}

  Status run() {
    IdVector<NodeId, Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      if (node.region == nullptr) {
        graph_.nodes.push_back(std::move(node));
      } else if (all_ || cheaper_unrolled(node)) {
        TS_RETURN_IF_ERROR(unroll(node));
      } else {
        auto region = std::make_shared<Region>(*node.region);
        for (Graph& body : region->bodies) TS_RETURN_IF_ERROR(unroll_regions(body, false));
        node.region = std::move(region);
        graph_.nodes.push_back(std::move(node));
      }
    }
    return {};
  }

 private:
  // Returns whether the code is small, so that fusing the nodes of several turns saves more than it costs.
  static bool cheaper_unrolled(const Node& node) {
    const Region& region = *node.region;
    constexpr size_t kSmall = 32;
    return node.op == kLoopOperator && !region.counted && !region.conditional && region.turns > 0 &&
           (region.turns == 1 || static_cast<size_t>(region.turns) * region.bodies[0].nodes.size() <= kSmall);
  }

  ValueId integers(const std::vector<int64_t>& values) {
    return add_constant(graph_, "axes", vector_of(ir::DType::kI64, values));
  }

  ValueId number(int64_t value) {
    lower::Tensor scalar = vector_of(ir::DType::kI64, std::span(&value, 1));
    scalar.shape.clear();
    return add_constant(graph_, "turn", std::move(scalar));
  }

  Result<ValueId> add(const Node& like, const std::string& op, std::vector<ValueId> inputs,
                      std::map<std::string, Attribute> attributes = {}) {
    constexpr int kOpset = 18;
    const std::string name = like.name + "/" + op + "_" + std::to_string(graph_.nodes.size());
    Node node{name, op, kOpset, std::move(attributes), std::move(inputs), {}};
    node.outputs = {graph_.values.push_back({name, ir::DType::kF32, {}, nullptr})};
    FoldLimits limits;
    TS_RETURN_IF_ERROR(infer_node(graph_, node, limits));
    const ValueId made = node.outputs[0];
    graph_.nodes.push_back(std::move(node));
    return made;
  }

  // Appends the body's nodes; returns its outputs.
  Result<std::vector<ValueId>> inline_body(const Graph& original, const std::vector<ValueId>& inputs) {
    Graph body = original;
    if (all_) TS_RETURN_IF_ERROR(unroll_regions(body, true));
    IdVector<ValueId, ValueId> made(body.values.size());
    for (size_t i = 0; i < inputs.size(); ++i) made[body.inputs[i]] = inputs[i];
    const auto value = [&](ValueId id) {
      if (id == kNoValue) return id;
      if (made[id] != kNoValue) return made[id];
      const lower::Tensor* constant = body.values[id].constant.get();
      if (constant != nullptr) {
        auto& known = constants_[constant];
        if (known == kNoValue) known = graph_.values.push_back(body.values[id]);
        return made[id] = known;
      }
      return made[id] = graph_.values.push_back(body.values[id]);
    };
    for (const Node& node : body.nodes) {
      Node copy = node;
      for (auto* ids : {&copy.inputs, &copy.outputs})
        for (ValueId& id : *ids) id = value(id);
      graph_.nodes.push_back(std::move(copy));
    }
    std::vector<ValueId> outputs;
    for (const ValueId id : body.outputs) outputs.push_back(value(id));
    return outputs;
  }

  // Makes `from` the value of a node's output.
  void name_output(const Node& node, size_t o, ValueId from) {
    if (node.outputs[o] == kNoValue) return;
    graph_.nodes.push_back(
        {node.name + "/" + std::to_string(o), "Identity", 18, {}, {from}, {node.outputs[o]}});
  }

  Status unroll(const Node& node) {
    return node.op == kLoopOperator ? unroll_loop(node) : unroll_branch(node);
  }

  Status unroll_branch(const Node& node) {
    for (const std::string& refused : node.region->refused)
      if (!refused.empty())
        return Error{ErrorCode::kUnsupported, node.name, "a branch cannot run: " + refused};
    const std::vector<ValueId> inputs(node.inputs.begin() + 1, node.inputs.end());
    TS_ASSIGN_OR_RETURN(const std::vector<ValueId> yes, inline_body(node.region->bodies[0], inputs));
    TS_ASSIGN_OR_RETURN(const std::vector<ValueId> no, inline_body(node.region->bodies[1], inputs));
    TS_ASSIGN_OR_RETURN(const ValueId condition, add(node, "Reshape", {node.inputs[0], integers({})}));
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (node.outputs[o] == kNoValue) continue;
      TS_ASSIGN_OR_RETURN(const ValueId chosen, add(node, "Where", {condition, yes[o], no[o]}));
      name_output(node, o, chosen);
    }
    return {};
  }

  Status unroll_loop(const Node& node) {
    // Each turn becomes kernels of its own.
    constexpr int64_t kMostTurns = 4096;
    const Region& region = *node.region;
    if (region.turns == 0)
      return Error{ErrorCode::kUnsupported, node.name,
                   "loops without a largest number of turns are only supported on processors"};
    if (region.turns > kMostTurns)
      return Error{ErrorCode::kUnsupported, node.name,
                   "loops of more than " + std::to_string(kMostTurns) +
                       " turns are only supported on processors; this one has " +
                       std::to_string(region.turns)};
    const size_t slices = region.slices_backwards.size(), results = region.results_backwards.size();
    const size_t lead = region.leading_inputs();
    std::vector<ValueId> given(node.inputs.begin() + static_cast<ptrdiff_t>(lead), node.inputs.end());
    ValueId active;  // whether the turn runs, if that is only known at run time
    if (region.conditional) {
      TS_ASSIGN_OR_RETURN(active, add(node, "Reshape", {node.inputs[lead - 1], integers({})}));
    }
    const std::vector<ValueId> tensors(given.begin() + static_cast<ptrdiff_t>(region.states),
                                       given.begin() + static_cast<ptrdiff_t>(region.states + slices));
    std::vector<std::vector<ValueId>> collected(results);
    for (int64_t turn = 0; turn < region.turns; ++turn) {
      for (size_t i = 0; i < slices; ++i) {
        const int64_t place = region.slices_backwards[i] ? region.turns - 1 - turn : turn;
        TS_ASSIGN_OR_RETURN(given[region.states + i],
                            add(node, "Gather", {tensors[i], number(place)}, {{"axis", int64_t{0}}}));
      }
      ValueId runs = active;
      if (region.counted) {
        TS_ASSIGN_OR_RETURN(runs, add(node, "Less", {number(turn), node.inputs[0]}));
        TS_ASSIGN_OR_RETURN(runs, add(node, "Reshape", {runs, integers({})}));
        if (active != kNoValue) {
          TS_ASSIGN_OR_RETURN(runs, add(node, "And", {runs, active}));
        }
      }
      TS_ASSIGN_OR_RETURN(std::vector<ValueId> made, inline_body(region.bodies[0], given));
      if (region.conditional) {
        TS_ASSIGN_OR_RETURN(const ValueId next, add(node, "Reshape", {made[0], integers({})}));
        TS_ASSIGN_OR_RETURN(active, add(node, "And", {runs, next}));
        made.erase(made.begin());
      }
      for (size_t s = 0; s < region.states; ++s) {
        if (runs == kNoValue) {
          given[s] = made[s];
        } else {
          TS_ASSIGN_OR_RETURN(given[s], add(node, "Where", {runs, made[s], given[s]}));
        }
      }
      for (size_t r = 0; r < results; ++r) {
        if (node.outputs[region.states + r] == kNoValue) continue;
        TS_ASSIGN_OR_RETURN(const ValueId slice,
                            add(node, "Unsqueeze", {made[region.states + r], integers({0})}));
        collected[r].push_back(slice);
      }
    }
    for (size_t s = 0; s < region.states; ++s) name_output(node, s, given[s]);
    for (size_t r = 0; r < results; ++r) {
      if (collected[r].empty()) continue;
      if (region.results_backwards[r]) std::ranges::reverse(collected[r]);
      TS_ASSIGN_OR_RETURN(const ValueId joined, add(node, "Concat", collected[r], {{"axis", int64_t{0}}}));
      name_output(node, region.states + r, joined);
    }
    return {};
  }

  Graph& graph_;
  const bool all_;
  std::unordered_map<const lower::Tensor*, ValueId> constants_;
};

}  // namespace

Status unroll_regions(Graph& graph, bool all) { return Unroller(graph, all).run(); }

}  // namespace tensorsmith::graph
