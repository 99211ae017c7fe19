#include "graph/onnx/shape_overrides.h"

#include <algorithm>

#include "graph/ops/op_context.h"

namespace tensorsmith::graph {
namespace {

std::string dims_text(const Shape& shape, const char* between = "x") {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : between) + std::to_string(extent);
  return text;
}

const Value* input_of(const Graph& graph, const Node& node, size_t i) {
  const ValueId id = node.input(i);
  return id == kNoValue ? nullptr : &graph.values[id];
}

// Returns the constant shape of a Reshape as it is in the model; empty if there is none.
Shape constant_shape(const Graph& graph, const Node& node) {
  if (const auto* dims = node.find<std::vector<int64_t>>("shape")) return *dims;
  const Value* shape = input_of(graph, node, 1);
  if (shape == nullptr || shape->constant == nullptr || ir::is_float(shape->dtype)) return {};
  Shape dims;
  for (int64_t i = 0; i < shape->constant->num_elements(); ++i) dims.push_back(shape->constant->at(i).i);
  return dims;
}

// Returns whether the shape adapts to any number of elements, or does not match the input's number
// of elements. A shape that was computed from the input's does neither.
bool takes_the_rest_or_fails(const Shape& wanted, const Value& data) {
  return std::any_of(wanted.begin(), wanted.end(), [](int64_t d) { return d <= 0; }) ||
         !is_reasonable(wanted) || product(wanted) != product(data.shape);
}

}  // namespace

std::string describe(const ShapeOverride& override_) {
  return "input '" + override_.input + "' is " + dims_text(override_.given) + " here, " +
         dims_text(override_.declared) + " in the model";
}

Status check_batch(const std::vector<ShapeOverride>& overrides, const Graph& graph, const Node& node) {
  const Value* data = input_of(graph, node, 0);
  if (data == nullptr || data->constant != nullptr || data->shape.empty()) return {};
  for (const ShapeOverride& o : overrides) {
    if (o.declared.empty() || o.declared[0] == o.given[0] || data->shape[0] != o.given[0]) continue;
    const std::string batches = "for a batch of " + std::to_string(o.declared[0]) + ", and its input is " +
                                describe(data->dtype, data->shape);
    if (node.op == "Reshape") {
      const Shape wanted = constant_shape(graph, node);
      if (wanted.empty() || wanted[0] != o.declared[0] || !takes_the_rest_or_fails(wanted, *data)) continue;
      return Error{ErrorCode::kInvalidArgument, node.name,
                   "Reshape: its constant shape [" + dims_text(wanted, ",") + "] is " + batches};
    }
    const int64_t axis = node.op == "Flatten" ? node.integer("axis", 1) : 1;
    if (o.declared[0] == 1 && (axis == 0 || axis == -std::ssize(data->shape))) {
      return Error{
          ErrorCode::kInvalidArgument, node.name,
          "Flatten: with axis 0 it puts the whole input into one row, which is right only " + batches};
    }
  }
  return {};
}

std::string explain(const std::vector<ShapeOverride>& overrides) {
  std::string shapes;
  for (const ShapeOverride& o : overrides)
    shapes += (shapes.empty() ? "'" : ", '") + o.input + "' of " + dims_text(o.declared);
  return "; the model was exported for " + shapes +
         ", and this node depends on that; export it for the shape that you need, or with symbolic "
         "dimensions";
}

}  // namespace tensorsmith::graph
