// If, Loop and Scan as regions (graph.h): their bodies become graphs of their own, which run as often as the model says.
#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/onnx/importer.h"
#include "graph/passes/passes.h"

namespace tensorsmith::graph {

namespace {

bool is_true(const lower::Tensor* known) { return known != nullptr && known->at(0).i != 0; }

}  // namespace

// The graph under import is that of a body until leave_body().
void Importer::enter_body() {
  frames_.push_back({std::exchange(graph_, {}), std::exchange(bounds_, {}), std::exchange(narrow_, {}),
                     std::exchange(captured_, {})});
}

Importer::ImportedBody Importer::leave_body() {
  ImportedBody body{std::move(graph_), std::move(captured_)};
  Frame& frame = frames_.back();
  graph_ = std::move(frame.graph);
  bounds_ = std::move(frame.bounds);
  narrow_ = std::move(frame.narrow);
  captured_ = std::move(frame.captured);
  frames_.pop_back();
  return body;
}

// Returns the value of the graph that is `level` bodies deep as a value of the present graph: a constant is shared, any
// other value becomes an input of all bodies in between.
Result<ValueId> Importer::captured_value(ValueId id, size_t level) {
  if (id == kNoValue || level == frames_.size()) return id;
  for (size_t inner = level + 1; inner <= frames_.size(); ++inner) {
    const Frame& outer = frames_[inner - 1];
    const bool last = inner == frames_.size();
    Graph& graph = last ? graph_ : frames_[inner].graph;
    Captured& captured = last ? captured_ : frames_[inner].captured;
    NarrowValues& narrow = last ? narrow_ : frames_[inner].narrow;
    const auto known = std::ranges::find(captured, id, &Captured::value_type::first);
    if (known != captured.end()) {
      id = known->second;
      continue;
    }
    if (outer.bounds.of(id) != nullptr)
      return Error{ErrorCode::kUnsupported, place_,
                   "a body reads a value that is padded to its largest length"};
    const ValueId made = graph.values.push_back(outer.graph.values[id]);
    narrow.mark(made, outer.narrow.find(id));
    captured.emplace_back(id, made);
    id = made;
  }
  return id;
}

Result<Item> Importer::captured_item(Item item, size_t level) {
  if (item.is_tensor()) {
    TS_ASSIGN_OR_RETURN(item.id, captured_value(item.id, level));
  }
  for (ValueId& element : item.elements) {
    TS_ASSIGN_OR_RETURN(element, captured_value(element, level));
  }
  return item;
}

// Imports a body and returns its outputs, which are tensors.
Result<std::vector<ValueId>> Importer::region_body(const onnx::NodeProto& proto, const onnx::GraphProto& body,
                                                   std::span<const Item> arguments, const Scope& scope,
                                                   int depth) {
  TS_ASSIGN_OR_RETURN(const std::vector<Item> items, inline_body(proto, body, arguments, scope, depth));
  std::vector<ValueId> outputs;
  for (const Item& item : items) {
    if (!item.is_tensor() || bounds_.of(item.id) != nullptr || narrow_.find(item.id) != nullptr)
      return at_node(proto, ErrorCode::kUnsupported,
                     proto.op_type() + ": an output of the body is not a plain tensor");
    outputs.push_back(item.id);
  }
  return outputs;
}

// Adds the node, and the names of its outputs.
Status Importer::add_region(const onnx::NodeProto& proto, Node node, size_t outputs, Scope& scope) {
  node.name = name_of(proto) + "_" + std::to_string(graph_.nodes.size());
  TS_ASSIGN_OR_RETURN(const std::vector<ValueId> made, add(std::move(node), outputs));
  const size_t first = made.size() - proto.output_size();  // behind states that the model does not have
  for (int i = 0; i < proto.output_size(); ++i)
    if (!proto.output(i).empty()) TS_RETURN_IF_ERROR(define(proto.output(i), made[first + i], scope));
  return {};
}

ValueId Importer::body_input(const Value& like) {
  Value value = like;
  value.constant = nullptr;
  graph_.inputs.push_back(graph_.values.push_back(std::move(value)));
  return graph_.inputs.back();
}

Status Importer::region_if(const onnx::NodeProto& proto, const onnx::GraphProto* const (&branches)[2],
                           ValueId condition, Scope& scope, int depth) {
  auto region = std::make_shared<Region>();
  std::vector<Captured> captured;
  std::optional<Error> refused[2];
  for (size_t b = 0; b < 2; ++b) {
    enter_body();
    auto outputs = region_body(proto, *branches[b], {}, scope, depth);
    ImportedBody body = leave_body();
    if (outputs.ok() && std::ssize(*outputs) < proto.output_size())
      return at_node(proto, ErrorCode::kCorrupt, "the branch has fewer outputs than the node");
    if (outputs.ok()) {
      outputs->resize(proto.output_size());
      body.graph.outputs = *std::move(outputs);
    } else if (const ErrorCode code = outputs.error().code;
               code == ErrorCode::kUnsupported || code == ErrorCode::kInvalidArgument) {
      refused[b] = outputs.error();
    } else {
      return outputs.error();
    }
    region->bodies.push_back(std::move(body.graph));
    captured.push_back(std::move(body.captured));
  }
  if (refused[0] && refused[1]) return *refused[0];
  for (size_t b = 0; b < 2; ++b) {
    if (!refused[b]) continue;
    // A branch that does not fit the inputs' shapes is an error only if the model takes it.
    Graph& body = region->bodies[b];
    const Graph& other = region->bodies[1 - b];
    body = Graph();
    captured[b].clear();
    for (const ValueId output : other.outputs) {
      const Value& like = other.values[output];
      body.outputs.push_back(body.values.push_back({like.name, like.dtype, like.shape, nullptr}));
    }
    region->refused[b] = refused[b]->message();
  }
  // Both bodies get all values that one of them reads.
  Node node{"", kBranchOperator, 0, {}, {condition}, {}};
  for (size_t b = 0; b < 2; ++b) {
    for (const auto& [outer, inner] : captured[b]) {
      const Value& like = value(outer);
      if (like.constant != nullptr ||
          std::ranges::find(node.inputs.begin() + 1, node.inputs.end(), outer) != node.inputs.end())
        continue;
      node.inputs.push_back(outer);
      for (size_t i = 0; i < 2; ++i) {
        Graph& body = region->bodies[i];
        const auto known = std::ranges::find(captured[i], outer, &Captured::value_type::first);
        body.inputs.push_back(known != captured[i].end()
                                  ? known->second
                                  : body.values.push_back({like.name, like.dtype, like.shape, nullptr}));
      }
    }
  }
  node.region = std::move(region);
  TS_RETURN_IF_ERROR(add_region(proto, std::move(node), proto.output_size(), scope));
  for (size_t b = 0; b < 2; ++b) {
    if (!refused[b]) continue;
    Graph& network = frames_.empty() ? graph_ : frames_.front().graph;
    network.notes.push_back("the " + std::string(b == 0 ? "then" : "else") + " branch of '" +
                            shown(name_of(proto)) +
                            "' cannot be compiled, and a run that takes it fails: " + refused[b]->message());
  }
  return {};
}

// Appends the values that the body reads to the inputs of the body and of the node.
void Importer::add_captured(const Captured& captured, Graph& body, Node& node) const {
  for (const auto& [outer, inner] : captured) {
    if (value(outer).constant != nullptr) continue;
    body.inputs.push_back(inner);
    node.inputs.push_back(outer);
  }
}

Status Importer::region_loop(const onnx::NodeProto& proto, const onnx::GraphProto& body_proto,
                             std::span<const Item> inputs, Scope& scope, int depth) {
  const auto unsupported = [&](const std::string& why) {
    return at_node(proto, ErrorCode::kUnsupported, "Loop: " + why);
  };
  auto region = std::make_shared<Region>();
  Node node{"", kLoopOperator, 0, {}, {}, {}};
  const ValueId count = inputs[0].id, condition = inputs[1].id;
  if (count != kNoValue && constant_of(count) == nullptr) {
    if (value(count).dtype != ir::DType::kI64) return unsupported("the trip count is not an i64");
    region->counted = true;
    node.inputs.push_back(count);
  } else if (count != kNoValue) {
    region->turns = constant_of(count)->at(0).i;
    if (region->turns < 1) return unsupported("there is no iteration");
    // Exporters write the largest integer for a loop that only its condition ends.
    constexpr int64_t kNoLimit = int64_t{1} << 40;
    if (region->turns > kNoLimit) region->turns = 0;
  }
  const auto carried = inputs.subspan(2);
  std::vector<ValueId> first_states = {constant(scalar(ir::DType::kI64, 0))};
  for (const Item& item : carried) {
    if (!item.is_tensor() || item.id == kNoValue || bounds_.of(item.id) != nullptr ||
        narrow_.find(item.id) != nullptr)
      return unsupported("a carried value is not a plain tensor");
    first_states.push_back(item.id);
  }
  std::vector<Value> types;
  for (const ValueId id : first_states) types.push_back(value(id));

  enter_body();
  for (const Value& type : types) body_input(type);
  const std::vector<ValueId> states = graph_.inputs;
  std::vector<Item> arguments = {states[0], constant(scalar(ir::DType::kBool, 1))};
  for (size_t s = 1; s < states.size(); ++s) arguments.emplace_back(states[s]);
  auto made = region_body(proto, body_proto, arguments, scope, depth);
  std::vector<ValueId> outputs;
  bool forever = false;  // whether the body's condition is true in all turns
  if (made.ok()) {
    const lower::Tensor* next = constant_of((*made)[0]);
    forever = is_true(next);
    if (!forever) outputs.push_back((*made)[0]);
    const auto turn = add_one(name_of(proto), "Add", {states[0], constant(scalar(ir::DType::kI64, 1))});
    if (!turn.ok()) {
      made = turn.error();
    } else {
      outputs.push_back(*turn);
      outputs.insert(outputs.end(), made->begin() + 1, made->end());
    }
  }
  ImportedBody body = leave_body();
  if (!made.ok()) return made.error();
  const bool conditional = !forever || (condition != kNoValue && constant_of(condition) == nullptr);
  if (condition != kNoValue && constant_of(condition) != nullptr && !is_true(constant_of(condition)))
    return unsupported("there is no iteration");
  if (conditional) {
    region->conditional = true;
    node.inputs.push_back(condition != kNoValue ? condition : constant(scalar(ir::DType::kBool, 1)));
    if (forever)
      outputs.insert(outputs.begin(), add_constant(body.graph, "true", scalar(ir::DType::kBool, 1)));
    const Value& next = body.graph.values[outputs[0]];
    if (next.dtype != ir::DType::kBool || product(next.shape) != 1)
      return at_node(proto, ErrorCode::kCorrupt, "Loop: the condition must be one bool");
  } else if (count == kNoValue) {
    return at_node(proto, ErrorCode::kInvalidArgument,
                   "Loop: it never ends: it has neither a trip count nor a condition");
  }
  const size_t conditions = region->conditional ? 1 : 0;
  region->states = states.size();
  for (size_t s = 1; s < states.size(); ++s) {
    const Value& now = types[s];
    const Value& next = body.graph.values[outputs[conditions + s]];
    if (now.dtype != next.dtype || now.shape != next.shape)
      return unsupported("carried value " + std::to_string(s - 1) + " is " + describe(now.dtype, now.shape) +
                         ", and " + describe(next.dtype, next.shape) + " after an iteration");
  }
  const size_t results = outputs.size() - conditions - states.size();
  if (results > 0 && (region->conditional || region->counted))
    return unsupported("the length of a collected output depends on the data");
  region->results_backwards.assign(results, false);
  node.inputs.insert(node.inputs.end(), first_states.begin(), first_states.end());
  body.graph.outputs = std::move(outputs);
  add_captured(body.captured, body.graph, node);
  // The number of the turn is a state only if the body reads it.
  if (count_uses(body.graph)[states[0]] == 1) {
    body.graph.inputs.erase(body.graph.inputs.begin());
    body.graph.outputs.erase(body.graph.outputs.begin() + static_cast<ptrdiff_t>(conditions));
    node.inputs.erase(node.inputs.begin() + static_cast<ptrdiff_t>(region->leading_inputs()));
    --region->states;
    eliminate_dead_nodes(body.graph);
  }
  const size_t total = region->states + results;
  region->bodies.push_back(std::move(body.graph));
  node.region = std::move(region);
  return add_region(proto, std::move(node), total, scope);
}

// Returns the tensor with an axis moved to another place.
Result<ValueId> Importer::with_axis_moved(const onnx::NodeProto& proto, ValueId tensor, int64_t from,
                                          int64_t to) {
  if (from == to) return tensor;
  std::vector<int64_t> order(value(tensor).shape.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return add_one(name_of(proto), "Transpose", {tensor}, {{"perm", std::move(order)}});
}

Status Importer::region_scan(const onnx::NodeProto& proto, const onnx::GraphProto& body_proto,
                             const ScanForm& form, Scope& scope, int depth) {
  auto region = std::make_shared<Region>();
  Node node{"", kLoopOperator, 0, {}, {}, {}};
  const size_t states = form.states.size(), results = form.result_axes.size();
  region->turns = form.turns;
  region->states = states;
  region->slices_backwards = form.slices_backwards;
  region->results_backwards = form.results_backwards;
  node.inputs = form.states;
  for (size_t i = 0; i < form.tensors.size(); ++i) {
    TS_ASSIGN_OR_RETURN(const ValueId tensor,
                        with_axis_moved(proto, form.tensors[i], form.tensor_axes[i], 0));
    node.inputs.push_back(tensor);
  }
  std::vector<Value> types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    types.push_back(value(node.inputs[i]));
    if (i >= states) types.back().shape.erase(types.back().shape.begin());
  }
  enter_body();
  std::vector<Item> arguments;
  for (const Value& type : types) arguments.emplace_back(body_input(type));
  auto outputs = region_body(proto, body_proto, arguments, scope, depth);
  ImportedBody body = leave_body();
  if (!outputs.ok()) return outputs.error();
  body.graph.outputs = *std::move(outputs);
  add_captured(body.captured, body.graph, node);
  region->bodies.push_back(std::move(body.graph));
  node.region = std::move(region);
  node.name = name_of(proto) + "_" + std::to_string(graph_.nodes.size());
  TS_ASSIGN_OR_RETURN(std::vector<ValueId> made, add(std::move(node), states + results));
  for (size_t r = 0; r < results; ++r) {
    const auto rank = std::ssize(value(made[states + r]).shape);
    int64_t axis = form.result_axes[r];
    if (axis < -rank || axis >= rank)
      return at_node(proto, ErrorCode::kInvalidArgument, "Scan: an axis in scan_output_axes is out of range");
    if (axis < 0) axis += rank;
    TS_ASSIGN_OR_RETURN(made[states + r], with_axis_moved(proto, made[states + r], 0, axis));
  }
  for (int i = 0; i < proto.output_size(); ++i)
    if (!proto.output(i).empty()) TS_RETURN_IF_ERROR(define(proto.output(i), made[i], scope));
  return {};
}

}  // namespace tensorsmith::graph
