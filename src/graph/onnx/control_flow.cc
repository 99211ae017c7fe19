// If, Loop, Scan and SequenceMap: their bodies are inlined. A condition that is known during the
// import is decided. For a condition that is known only at run time, both branches are computed, or
// all iterations of the loop, of which the last may be unused.
#include <algorithm>

#include "graph/onnx/importer.h"

namespace tensorsmith::graph {

namespace {

// Most iterations of one loop, each of which is separate code.
constexpr int64_t kMaxTurns = 4096;
// Most nodes that one loop may expand to.
constexpr int64_t kMaxUnrolledNodes = 200'000;

const onnx::AttributeProto* find_attribute(const onnx::NodeProto& proto, const std::string& name) {
  for (const auto& attribute : proto.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

int64_t count_nodes(const onnx::GraphProto& graph) {
  int64_t total = graph.node_size();
  for (const auto& node : graph.node())
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) total += count_nodes(attribute.g());
  return total;
}

// Returns whether the body passes the condition on unchanged, so that all iterations run.
bool keeps_condition(const onnx::GraphProto& body) {
  if (body.output_size() < 1 || body.input_size() < 2) return false;
  std::string name = body.output(0).name();
  for (int i = body.node_size(); i-- > 0;) {
    const auto& node = body.node(i);
    if (node.output_size() == 1 && node.output(0) == name && node.op_type() == "Identity" &&
        node.input_size() == 1)
      name = node.input(0);
  }
  return name == body.input(1).name();
}

// Returns whether so many iterations should not become nodes of their own: they would take long to compile.
bool cheaper_as_region(int64_t turns, const onnx::GraphProto& body) {
  constexpr int64_t kMostNodes = 256;
  return turns * std::max<int64_t>(count_nodes(body), 1) > kMostNodes;
}

std::vector<int64_t> integers(const onnx::NodeProto& proto, const std::string& name, size_t count) {
  const auto* attribute = find_attribute(proto, name);
  std::vector<int64_t> values;
  if (attribute != nullptr) values.assign(attribute->ints().begin(), attribute->ints().end());
  values.resize(count, 0);
  return values;
}

}  // namespace

Status Importer::check_unrolled(const onnx::NodeProto& proto, int64_t times, const onnx::GraphProto& body,
                                const std::string& why) const {
  if (times <= kMaxTurns && times * std::max<int64_t>(count_nodes(body), 1) <= kMaxUnrolledNodes) return {};
  return at_node(proto, ErrorCode::kUnsupported,
                 proto.op_type() + ": its " + std::to_string(times) + " iterations of " +
                     std::to_string(count_nodes(body)) + " nodes are too many to unroll (at most " +
                     std::to_string(kMaxTurns) + " iterations, " + std::to_string(kMaxUnrolledNodes) +
                     " nodes)" + (why.empty() ? "" : ", and it must be: " + why));
}

Result<ValueId> Importer::add_one(const std::string& name, const std::string& op, std::vector<ValueId> inputs,
                                  std::map<std::string, Attribute> attributes) {
  constexpr int kOpset = 18;
  Node node{name + "/" + op + "_" + std::to_string(graph_.values.size()),
            op,
            kOpset,
            std::move(attributes),
            std::move(inputs),
            {}};
  TS_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, add(std::move(node), 1));
  return outputs[0];
}

Result<std::vector<Item>> Importer::inline_body(const onnx::NodeProto& proto, const onnx::GraphProto& body,
                                                std::span<const Item> inputs, const Scope& scope, int depth) {
  Scope inner;
  inner.parent = &scope;
  inner.level = frames_.size();
  inner.opset = scope.opset;
  inner.arguments = scope.arguments;
  if (body.input_size() != std::ssize(inputs)) {
    return at_node(proto, ErrorCode::kCorrupt,
                   proto.op_type() + ": the body has " + std::to_string(body.input_size()) +
                       " inputs instead of " + std::to_string(inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    TS_RETURN_IF_ERROR(define(body.input(i).name(), inputs[i], inner));
  TS_RETURN_IF_ERROR(add_initializers(body, inner));
  TS_RETURN_IF_ERROR(add_nodes(body.node(), inner, depth + 1));
  std::vector<Item> outputs;
  for (const auto& output : body.output()) {
    TS_ASSIGN_OR_RETURN(std::optional<Item> item, find_item(output.name(), inner));
    if (!item || (item->is_tensor() && item->id == kNoValue))
      return at_node(proto, ErrorCode::kCorrupt, "an output of the body is not defined");
    outputs.push_back(*std::move(item));
  }
  return outputs;
}

// Returns condition ? yes : no for tensors of the same shape or sequences of such tensors.
Result<Item> Importer::choose(const onnx::NodeProto& proto, ValueId condition, const Item& yes,
                              const Item& no, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    return at_node(proto, ErrorCode::kUnsupported,
                   proto.op_type() + ": input (condition) must be constant, because " + what + " " + why);
  };
  if (yes.kind != no.kind || yes.elements.size() != no.elements.size())
    return refuse("may have different kinds or lengths");
  if (yes.kind == Item::Kind::kNone) return yes;
  if (yes.is_tensor() && (yes.id == kNoValue || no.id == kNoValue)) return refuse("may be missing");
  std::vector<ValueId> chosen;
  const std::vector<ValueId> a = yes.is_tensor() ? std::vector{yes.id} : yes.elements;
  const std::vector<ValueId> b = no.is_tensor() ? std::vector{no.id} : no.elements;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) {
      chosen.push_back(a[i]);
      continue;
    }
    const Value& x = value(a[i]);
    const Value& y = value(b[i]);
    if (x.dtype != y.dtype || x.shape != y.shape) {
      return refuse("is " + describe(x.dtype, x.shape) + " or " + describe(y.dtype, y.shape) +
                    ", and shapes are fixed");
    }
    TS_ASSIGN_OR_RETURN(const ValueId id, add_one(name_of(proto), "Where", {condition, a[i], b[i]}));
    chosen.push_back(id);
  }
  return yes.is_tensor() ? Item(chosen[0]) : Item::sequence(std::move(chosen));
}

Status Importer::inline_if(const onnx::NodeProto& proto, Scope& scope, int depth) {
  if (proto.input_size() != 1) return at_node(proto, ErrorCode::kCorrupt, "If needs one input");
  TS_ASSIGN_OR_RETURN(ValueId condition, input_value(proto, proto.input(0), scope));
  if (condition == kNoValue || value(condition).dtype != ir::DType::kBool ||
      product(value(condition).shape) != 1) {
    return at_node(proto, ErrorCode::kCorrupt, "If: input 0 (condition) must be one bool");
  }
  const lower::Tensor* known = constant_of(condition);
  const onnx::GraphProto* branches[2] = {};
  for (size_t b = 0; b < 2; ++b) {
    const std::string name = b == 0 ? "then_branch" : "else_branch";
    const auto* attribute = find_attribute(proto, name);
    const bool needed = known == nullptr || (known->at(0).i != 0) == (b == 0);
    if (attribute != nullptr && attribute->has_g()) branches[b] = &attribute->g();
    if (needed && branches[b] == nullptr) return at_node(proto, ErrorCode::kCorrupt, "If has no " + name);
  }
  const auto branch = [&](size_t b) -> Result<std::vector<Item>> {
    TS_ASSIGN_OR_RETURN(std::vector<Item> outputs, inline_body(proto, *branches[b], {}, scope, depth));
    if (std::ssize(outputs) < proto.output_size())
      return at_node(proto, ErrorCode::kCorrupt, "the branch has fewer outputs than the node");
    return outputs;
  };
  std::vector<Item> outputs;
  if (known != nullptr) {
    TS_ASSIGN_OR_RETURN(outputs, branch(known->at(0).i != 0 ? 0 : 1));
  } else {
    // Computing both branches costs little if they are small, and they may become part of other kernels.
    constexpr int64_t kSmall = 6;
    if (count_nodes(*branches[0]) + count_nodes(*branches[1]) > kSmall &&
        region_if(proto, branches, condition, scope, depth).ok())
      return {};
    TS_ASSIGN_OR_RETURN(outputs, branch(0));
    TS_ASSIGN_OR_RETURN(const std::vector<Item> others, branch(1));
    if (!value(condition).shape.empty()) {
      TS_ASSIGN_OR_RETURN(condition, add_one(name_of(proto), "Reshape", {condition, constant(vector({}))}));
    }
    for (int i = 0; i < proto.output_size(); ++i) {
      TS_ASSIGN_OR_RETURN(outputs[i],
                          choose(proto, condition, outputs[i], others[i], "output " + std::to_string(i)));
    }
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (!proto.output(i).empty()) TS_RETURN_IF_ERROR(define(proto.output(i), outputs[i], scope));
  }
  return {};
}

// A Concat of many inputs becomes an expression with as many selects, so at most 64 are joined at a
// time.
Result<ValueId> Importer::join(const std::string& name, std::vector<ValueId> parts, int64_t axis) {
  constexpr size_t kTogether = 64;
  while (parts.size() > 1) {
    std::vector<ValueId> joined;
    for (size_t i = 0; i < parts.size(); i += kTogether) {
      const auto begin = parts.begin() + i;
      const auto end = parts.begin() + std::min(i + kTogether, parts.size());
      if (end - begin == 1) {
        joined.push_back(*begin);
        continue;
      }
      TS_ASSIGN_OR_RETURN(const ValueId id,
                          add_one(name, "Concat", std::vector<ValueId>(begin, end), {{"axis", axis}}));
      joined.push_back(id);
    }
    parts = std::move(joined);
  }
  return parts[0];
}

// Returns the slices as one tensor with a new dimension at `axis` (a negative axis counts from the
// end of the result).
Result<ValueId> Importer::stack(const onnx::NodeProto& proto, std::span<const ValueId> slices, int64_t axis) {
  const auto rank = std::ssize(value(slices[0]).shape) + 1;
  if (axis < -rank || axis >= rank)
    return at_node(proto, ErrorCode::kInvalidArgument,
                   proto.op_type() + ": axis " + std::to_string(axis) + " is out of range for rank " +
                       std::to_string(rank));
  if (axis < 0) axis += rank;
  std::vector<ValueId> parts;
  const ValueId axes = constant(vector({axis}));
  for (ValueId slice : slices) {
    if (value(slice).shape != value(slices[0]).shape || value(slice).dtype != value(slices[0]).dtype)
      return at_node(
          proto, ErrorCode::kUnsupported,
          proto.op_type() + ": an output that is collected has different shapes in different iterations");
    TS_ASSIGN_OR_RETURN(const ValueId part, add_one(name_of(proto), "Unsqueeze", {slice, axes}));
    parts.push_back(part);
  }
  return join(name_of(proto), std::move(parts), axis);
}

Result<ValueId> Importer::slice_at(const onnx::NodeProto& proto, ValueId tensor, int64_t axis,
                                   int64_t place) {
  return add_one(name_of(proto), "Gather", {tensor, constant(scalar(ir::DType::kI64, place))},
                 {{"axis", axis}});
}

struct Importer::LoopState {
  std::vector<Item> carried;
  std::vector<std::vector<ValueId>> slices;  // by collected output and iteration
  // Whether the next iteration runs, as far as the importer knows. Once that depends on run-time values,
  // `active` is the value that decides.
  bool known_active = true;
  ValueId active = kNoValue;
  ValueId count = kNoValue;  // number of iterations that were active
};

// Makes the next iterations depend on this condition, too.
Status Importer::require(const onnx::NodeProto& proto, ValueId condition, LoopState& loop) {
  if (value(condition).dtype != ir::DType::kBool || product(value(condition).shape) != 1)
    return at_node(proto, ErrorCode::kCorrupt, "Loop: the condition must be one bool");
  if (const lower::Tensor* known = constant_of(condition); known != nullptr) {
    loop.known_active = known->at(0).i != 0;
    return {};
  }
  if (!value(condition).shape.empty()) {
    TS_ASSIGN_OR_RETURN(condition, add_one(name_of(proto), "Reshape", {condition, constant(vector({}))}));
  }
  if (loop.active == kNoValue) {
    loop.active = condition;
  } else {
    TS_ASSIGN_OR_RETURN(loop.active, add_one(name_of(proto), "And", {loop.active, condition}));
  }
  return {};
}

Status Importer::inline_iteration(const onnx::NodeProto& proto, const onnx::GraphProto& body, int64_t turn,
                                  const Scope& scope, int depth, LoopState& loop) {
  const bool masked = loop.active != kNoValue;
  std::vector<Item> arguments = {constant(scalar(ir::DType::kI64, turn)),
                                 masked ? loop.active : constant(scalar(ir::DType::kBool, 1))};
  arguments.insert(arguments.end(), loop.carried.begin(), loop.carried.end());
  TS_ASSIGN_OR_RETURN(const std::vector<Item> results, inline_body(proto, body, arguments, scope, depth));
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    Item& carried = loop.carried[i];
    const Item& next = results[1 + i];
    if (!masked) {
      carried = next;
    } else {
      TS_ASSIGN_OR_RETURN(carried,
                          choose(proto, loop.active, next, carried, "carried value " + std::to_string(i)));
    }
  }
  for (size_t i = 0; i < loop.slices.size(); ++i) {
    const Item& item = results[1 + loop.carried.size() + i];
    if (!item.is_tensor())
      return at_node(proto, ErrorCode::kUnsupported, "Loop: an output that is collected is not a tensor");
    loop.slices[i].push_back(item.id);
  }
  if (masked && !loop.slices.empty()) {
    TS_ASSIGN_OR_RETURN(const ValueId one,
                        add_one(name_of(proto), "Cast", {loop.active}, {{"to", int64_t{7}}}));
    TS_ASSIGN_OR_RETURN(loop.count, add_one(name_of(proto), "Add", {loop.count, one}));
  }
  if (!results[0].is_tensor())
    return at_node(proto, ErrorCode::kCorrupt, "Loop: the condition must be one bool");
  return require(proto, results[0].id, loop);
}

Status Importer::define_outputs(const onnx::NodeProto& proto, const LoopState& loop, Scope& scope) {
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& name = proto.output(i);
    if (name.empty()) continue;
    if (i < std::ssize(loop.carried)) {
      TS_RETURN_IF_ERROR(define(name, loop.carried[i], scope));
      continue;
    }
    if (loop.active != kNoValue && !options_.bounded) {
      return at_node(
          proto, ErrorCode::kUnsupported,
          "Loop: input (condition) must be constant, because the length of output " + std::to_string(i) +
              " depends on it; with --bounded the output is padded to the length of the trip count");
    }
    const std::vector<ValueId>& slices = loop.slices[i - loop.carried.size()];
    if (slices.empty()) {
      return at_node(
          proto, ErrorCode::kUnsupported,
          "Loop: there is no iteration, so the shape of output " + std::to_string(i) + " is unknown");
    }
    TS_ASSIGN_OR_RETURN(const ValueId stacked, stack(proto, slices, 0));
    if (loop.active != kNoValue) bounds_.mark(stacked, 0, loop.count);
    TS_RETURN_IF_ERROR(define(name, stacked, scope));
  }
  return {};
}

// Unrolls the loop. A condition that is known only at run time becomes a mask: from the iteration
// on where it is false, carried values do not change.
Status Importer::inline_loop(const onnx::NodeProto& proto, Scope& scope, int depth) {
  const auto* attribute = find_attribute(proto, "body");
  if (attribute == nullptr || !attribute->has_g() || proto.input_size() < 2)
    return at_node(proto, ErrorCode::kCorrupt, "Loop needs a body and two inputs");
  const onnx::GraphProto& body = attribute->g();
  TS_ASSIGN_OR_RETURN(const std::vector<Item> inputs, items_of(proto, scope));
  const int64_t carried = std::ssize(inputs) - 2;
  if (body.output_size() < 1 + carried)
    return at_node(proto, ErrorCode::kCorrupt, "Loop: the body has too few outputs");
  const int64_t collected = body.output_size() - 1 - carried;
  if (proto.output_size() > carried + collected)
    return at_node(proto, ErrorCode::kCorrupt, "Loop: the node has more outputs than its body");
  for (size_t i = 0; i < 2; ++i) {
    const bool given = inputs[i].is_tensor() && inputs[i].id != kNoValue;
    if (!inputs[i].is_tensor() || (given && product(value(inputs[i].id).shape) != 1))
      return at_node(proto, ErrorCode::kCorrupt, "Loop: input " + std::to_string(i) + " must be one number");
  }
  const bool known_count = inputs[0].id != kNoValue && constant_of(inputs[0].id) != nullptr;
  const bool known_condition = inputs[1].id == kNoValue || constant_of(inputs[1].id) != nullptr;
  std::string why_unrolled;
  if (!known_count || !known_condition || !keeps_condition(body) ||
      cheaper_as_region(constant_of(inputs[0].id)->at(0).i, body)) {
    const Status region = region_loop(proto, body, inputs, scope, depth);
    if (region.ok()) return region;
    why_unrolled = region.error().reason;
    if (!known_count && inputs[0].id != kNoValue)
      return at_node(
          proto, ErrorCode::kUnsupported,
          "Loop: input 0 (trip count) must be constant, because it must be unrolled (" + why_unrolled + ")");
  }
  int64_t turns = kMaxTurns + 1;
  if (inputs[0].id != kNoValue) {
    TS_ASSIGN_OR_RETURN(turns, known_integer(proto, inputs[0], "input 0 (trip count)"));
  }
  LoopState loop;
  loop.count = constant(scalar(ir::DType::kI64, 0));
  if (inputs[1].id != kNoValue) TS_RETURN_IF_ERROR(require(proto, inputs[1].id, loop));
  loop.carried.assign(inputs.begin() + 2, inputs.end());
  loop.slices.resize(collected);
  for (int64_t turn = 0; loop.known_active && turn < turns; ++turn) {
    if (turn == kMaxTurns && inputs[0].id == kNoValue) {
      return at_node(proto, ErrorCode::kUnsupported,
                     "Loop: it has no trip count, and it is unknown whether its condition ends it after " +
                         std::to_string(kMaxTurns) +
                         " iterations; export the model with a constant trip count");
    }
    const bool masked = loop.active != kNoValue;
    if (masked && inputs[0].id == kNoValue) {
      return at_node(proto, ErrorCode::kUnsupported,
                     "Loop: input 0 (trip count) must be constant if the condition is only known at run "
                     "time");
    }
    TS_RETURN_IF_ERROR(
        check_unrolled(proto, masked || keeps_condition(body) ? turns : turn + 1, body, why_unrolled));
    TS_RETURN_IF_ERROR(inline_iteration(proto, body, turn, scope, depth, loop));
  }
  return define_outputs(proto, loop, scope);
}

// Opset 8 has a leading batch dimension, which is unrolled, too, and an input with lengths.
Status Importer::inline_scan(const onnx::NodeProto& proto, Scope& scope, int depth) {
  const auto* attribute = find_attribute(proto, "body");
  const auto* number = find_attribute(proto, "num_scan_inputs");
  if (attribute == nullptr || !attribute->has_g() || number == nullptr)
    return at_node(proto, ErrorCode::kCorrupt, "Scan needs a body and num_scan_inputs");
  const onnx::GraphProto& body = attribute->g();
  TS_ASSIGN_OR_RETURN(std::vector<Item> inputs, items_of(proto, scope));
  const bool batched = scope.opset < 9;
  if (batched) {
    if (inputs.empty() || !inputs[0].is_tensor() || inputs[0].id != kNoValue)
      return at_node(proto, ErrorCode::kUnsupported, "Scan of opset 8 with sequence lengths");
    inputs.erase(inputs.begin());
  }
  for (const Item& item : inputs) {
    if (!item.is_tensor() || item.id == kNoValue)
      return at_node(proto, ErrorCode::kCorrupt, "Scan: an input is not a tensor");
  }
  if (number->i() < 1 || number->i() > std::ssize(inputs))
    return at_node(proto, ErrorCode::kCorrupt, "Scan: num_scan_inputs is out of range");
  const int64_t scanned = number->i();
  const int64_t carried = std::ssize(inputs) - scanned;
  if (body.output_size() < carried || proto.output_size() > body.output_size())
    return at_node(proto, ErrorCode::kCorrupt, "Scan: the body has too few outputs");
  const int64_t collected = body.output_size() - carried;
  std::vector<int64_t> axes = integers(proto, "scan_input_axes", scanned);
  const std::vector<int64_t> backwards =
      integers(proto, batched ? "directions" : "scan_input_directions", scanned);
  const std::vector<int64_t> out_axes = integers(proto, "scan_output_axes", collected);
  const std::vector<int64_t> out_backwards = integers(proto, "scan_output_directions", collected);
  int64_t batches = 1;
  if (batched) {
    if (value(inputs[0].id).shape.empty())
      return at_node(proto, ErrorCode::kCorrupt, "Scan: an input has no batch dimension");
    batches = value(inputs[0].id).shape[0];
  }
  std::vector<std::vector<ValueId>> results(body.output_size());  // by output, batch
  for (int64_t batch = 0; batch < batches; ++batch) {
    std::vector<ValueId> own;
    for (const Item& item : inputs) {
      own.push_back(item.id);
      if (!batched) continue;
      const Shape& shape = value(item.id).shape;
      if (shape.empty() || shape[0] != batches)
        return at_node(proto, ErrorCode::kCorrupt, "Scan: the inputs have different batch sizes");
      TS_ASSIGN_OR_RETURN(own.back(), slice_at(proto, item.id, 0, batch));
    }
    int64_t turns = -1;
    for (int64_t i = 0; i < scanned; ++i) {
      const auto rank = std::ssize(value(own[carried + i]).shape);
      if (axes[i] < -rank || axes[i] >= rank)
        return at_node(proto, ErrorCode::kInvalidArgument,
                       "Scan: an axis in scan_input_axes is out of range");
      if (axes[i] < 0) axes[i] += rank;
      const int64_t extent = value(own[carried + i]).shape[axes[i]];
      if (turns >= 0 && extent != turns)
        return at_node(proto, ErrorCode::kInvalidArgument, "Scan: the scanned inputs have different lengths");
      turns = extent;
    }
    if (turns == 0) return at_node(proto, ErrorCode::kUnsupported, "Scan: the scanned inputs have length 0");
    std::string why_unrolled;
    if (!batched && cheaper_as_region(turns, body)) {
      ScanForm form;
      form.turns = turns;
      form.states.assign(own.begin(), own.begin() + carried);
      form.tensors.assign(own.begin() + carried, own.end());
      form.tensor_axes = axes;
      form.result_axes = out_axes;
      for (const int64_t b : backwards) form.slices_backwards.push_back(b != 0);
      for (const int64_t b : out_backwards) form.results_backwards.push_back(b != 0);
      const Status region = region_scan(proto, body, form, scope, depth);
      if (region.ok()) return region;
      why_unrolled = region.error().reason;
    }
    TS_RETURN_IF_ERROR(check_unrolled(proto, std::max(turns, batches), body, why_unrolled));
    TS_RETURN_IF_ERROR(check_unrolled(proto, turns * batches, body, why_unrolled));
    std::vector<Item> state(own.begin(), own.begin() + carried);
    std::vector<std::vector<ValueId>> slices(collected);
    for (int64_t turn = 0; turn < turns; ++turn) {
      std::vector<Item> arguments = state;
      for (int64_t i = 0; i < scanned; ++i) {
        const int64_t place = backwards[i] != 0 ? turns - 1 - turn : turn;
        TS_ASSIGN_OR_RETURN(const ValueId slice, slice_at(proto, own[carried + i], axes[i], place));
        arguments.emplace_back(slice);
      }
      TS_ASSIGN_OR_RETURN(std::vector<Item> made, inline_body(proto, body, arguments, scope, depth));
      for (const Item& item : made)
        if (!item.is_tensor())
          return at_node(proto, ErrorCode::kUnsupported, "Scan: an output is not a tensor");
      for (int64_t i = 0; i < carried; ++i) state[i] = made[i];
      for (int64_t i = 0; i < collected; ++i) slices[i].push_back(made[carried + i].id);
    }
    for (int64_t i = 0; i < carried; ++i) results[i].push_back(state[i].id);
    for (int64_t i = 0; i < collected; ++i) {
      if (out_backwards[i] != 0) std::reverse(slices[i].begin(), slices[i].end());
      TS_ASSIGN_OR_RETURN(const ValueId stacked, stack(proto, slices[i], out_axes[i]));
      results[carried + i].push_back(stacked);
    }
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    const std::string& name = proto.output(i);
    if (name.empty()) continue;
    if (results[i].empty()) return at_node(proto, ErrorCode::kUnsupported, "Scan: the batch size is 0");
    ValueId result = results[i][0];
    if (batched) {
      TS_ASSIGN_OR_RETURN(result, stack(proto, results[i], 0));
    }
    TS_RETURN_IF_ERROR(define(name, result, scope));
  }
  return {};
}

// Inlines the body once per element of the sequences; tensors are the same for all.
Status Importer::inline_sequence_map(const onnx::NodeProto& proto, Scope& scope, int depth) {
  const auto* attribute = find_attribute(proto, "body");
  TS_ASSIGN_OR_RETURN(const std::vector<Item> inputs, items_of(proto, scope));
  if (attribute == nullptr || !attribute->has_g() || inputs.empty() ||
      inputs[0].kind != Item::Kind::kSequence || attribute->g().output_size() < proto.output_size())
    return at_node(proto, ErrorCode::kCorrupt, "SequenceMap needs a body and a sequence");
  const size_t length = inputs[0].elements.size();
  TS_RETURN_IF_ERROR(check_unrolled(proto, length, attribute->g()));
  std::vector<std::vector<ValueId>> results(attribute->g().output_size());
  for (size_t i = 0; i < length; ++i) {
    std::vector<Item> arguments;
    for (const Item& item : inputs) {
      if (item.kind != Item::Kind::kSequence) {
        arguments.push_back(item);
      } else if (item.elements.size() == length) {
        arguments.emplace_back(item.elements[i]);
      } else {
        return at_node(proto, ErrorCode::kInvalidArgument, "SequenceMap: sequences of different lengths");
      }
    }
    TS_ASSIGN_OR_RETURN(const std::vector<Item> made,
                        inline_body(proto, attribute->g(), arguments, scope, depth));
    for (size_t o = 0; o < made.size(); ++o) {
      if (!made[o].is_tensor())
        return at_node(proto, ErrorCode::kUnsupported, "SequenceMap: an output is not a tensor");
      results[o].push_back(made[o].id);
    }
  }
  for (int o = 0; o < proto.output_size(); ++o) {
    const std::string& name = proto.output(o);
    if (!name.empty()) TS_RETURN_IF_ERROR(define(name, Item::sequence(std::move(results[o])), scope));
  }
  return {};
}

}  // namespace tensorsmith::graph
