// Operators whose result's shape depends on the data: they are evaluated if their inputs are
// constant; otherwise they are expanded to their largest shape, if the user allows that
// (ImportOptions::bounded).
#include <algorithm>

#include "graph/onnx/importer.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

Status Importer::add_data_dependent(Node node) {
  const bool all_known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return id == kNoValue || constant_of(id) != nullptr;
  });
  const bool has_bound = node.op != "MelWeightMatrix";
  if (all_known || !has_bound) return finish_node(std::move(node));
  if (!options_.bounded) {
    return in_file(Error{ErrorCode::kUnsupported, node.name,
                         node.op + ": its inputs must be constant, because the shape of its result depends "
                                   "on them; with --bounded the result is padded to its largest shape"});
  }
  if (node.op == "NonMaxSuppression") return bounded_non_max_suppression(node);
  // Padded outputs and their padded dimensions; the emitter's last output is the number of rows.
  std::vector<std::pair<size_t, size_t>> padded;
  size_t axis = 0;
  const int64_t rank = node.input(0) == kNoValue ? 0 : value(node.inputs[0]).shape.size();
  const int64_t given = node.integer("axis", 0);
  // The emitter reports an invalid axis.
  if (given >= -rank && given < rank) axis = given < 0 ? given + rank : given;
  size_t outputs = 1;
  if (node.op == "NonZero") {
    padded = {{0, 1}};
  } else if (node.op == "Compress") {
    padded = {{0, axis}};
  } else {
    padded = {{0, axis}, {1, 0}, {3, 0}};
    outputs = 4;
  }
  if (node.outputs.size() > outputs)
    return in_file(Error{ErrorCode::kCorrupt, node.name, node.op + ": the node has too many outputs"});
  node.outputs.resize(outputs, kNoValue);
  const ValueId count = add_value(node.name + ".count");
  node.outputs.push_back(count);
  node.op = "Bounded." + node.op;
  const std::vector<ValueId> made = node.outputs;
  TS_RETURN_IF_ERROR(finish_node(std::move(node)));
  for (const auto& [output, dim] : padded)
    if (made[output] != kNoValue) bounds_.mark(made[output], dim, count);
  return {};
}

// Emits one selection of each batch and class after the other, as many as a class may have boxes.
Status Importer::bounded_non_max_suppression(const Node& node) {
  const auto refuse = [&](ErrorCode code, const std::string& reason) {
    return in_file(Error{code, node.name, node.op + ": " + reason});
  };
  if (node.input(0) == kNoValue || node.input(1) == kNoValue || node.inputs.size() > 5 ||
      node.outputs.size() != 1)
    return refuse(ErrorCode::kCorrupt, "boxes or scores are missing");
  const Value& boxes = value(node.inputs[0]);
  const Value& scores = value(node.inputs[1]);
  if (boxes.shape.size() != 3 || scores.shape.size() != 3 || boxes.shape[2] != 4 ||
      scores.shape[0] != boxes.shape[0] || scores.shape[2] != boxes.shape[1] ||
      boxes.dtype != ir::DType::kF32 || scores.dtype != ir::DType::kF32)
    return refuse(ErrorCode::kInvalidArgument, "boxes " + describe(boxes.dtype, boxes.shape) +
                                                   " and scores " + describe(scores.dtype, scores.shape) +
                                                   " do not fit");
  const Shape shape = scores.shape;
  for (size_t i = 2; i < 5; ++i) {
    if (node.input(i) == kNoValue) continue;
    const Value& given = value(node.input(i));
    const ir::DType wanted = i == 2 ? ir::DType::kI64 : ir::DType::kF32;
    if (product(given.shape) != 1 || given.dtype != wanted)
      return refuse(ErrorCode::kInvalidArgument, "input " + std::to_string(i) + " must be one number");
  }
  for (size_t i = 0; i < 2; ++i)
    if (bounds_.of(node.input(i)) != nullptr)
      return refuse(ErrorCode::kUnsupported, "boxes whose number depends on the data are not supported");
  int64_t most = 0;
  if (node.input(2) != kNoValue) {
    const lower::Tensor* known = constant_of(node.input(2));
    if (known == nullptr)
      return refuse(ErrorCode::kUnsupported, "input 2 (max_output_boxes_per_class) must be constant");
    most = std::clamp<int64_t>(known->at(0).i, 0, shape[2]);
  }
  constexpr int64_t kMaxSelections = 4096;
  if (most > kMaxSelections) {
    return refuse(ErrorCode::kUnsupported,
                  "up to " + std::to_string(most) + " boxes per class at run time; at most " +
                      std::to_string(kMaxSelections) + " (lower max_output_boxes_per_class)");
  }
  if (!is_reasonable(std::vector<int64_t>{shape[0], shape[1], std::max<int64_t>(most, 1), 3}))
    return refuse(ErrorCode::kInvalidArgument, "the result would be too large");
  Value& output = graph_.values[node.outputs[0]];
  if (most == 0 || product(shape) == 0) {
    output.dtype = ir::DType::kI64;
    output.shape = {0, 3};
    output.constant = std::make_shared<const lower::Tensor>(lower::Tensor::zeros(ir::DType::kI64, {0, 3}));
    return {};
  }
  ValueId threshold = node.input(3);
  if (threshold == kNoValue) threshold = constant(lower::Tensor::zeros(ir::DType::kF32, {}));
  std::vector<ValueId> first = {node.input(1)};
  if (node.input(4) != kNoValue) first.push_back(node.input(4));
  TS_ASSIGN_OR_RETURN(ValueId left, add_one(node.name, "Bounded.NmsScores", std::move(first)));
  std::vector<ValueId> selected;
  const ValueId axes = constant(vector({2}));
  for (int64_t k = 0; k < most; ++k) {
    Node step{node.name + "/step_" + std::to_string(k),
              "Bounded.NmsStep",
              node.opset,
              node.attributes,
              {left, node.input(0), threshold},
              {}};
    TS_ASSIGN_OR_RETURN(const std::vector<ValueId> made, add(std::move(step), 2));
    TS_ASSIGN_OR_RETURN(const ValueId column, add_one(node.name, "Unsqueeze", {made[0], axes}));
    selected.push_back(column);
    left = made[1];
  }
  TS_ASSIGN_OR_RETURN(const ValueId all, join(node.name, std::move(selected), 2));
  const ValueId count = add_value(node.name + ".count");
  TS_RETURN_IF_ERROR(
      finish_node(Node{node.name, "Bounded.NmsSelect", node.opset, {}, {all}, {node.outputs[0], count}}));
  bounds_.mark(node.outputs[0], 0, count);
  return {};
}

}  // namespace tensorsmith::graph
