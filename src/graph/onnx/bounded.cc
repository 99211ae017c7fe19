#include "graph/onnx/bounded.h"

#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

const Shape& shape_of(const Graph& graph, ValueId id) { return graph.values[id].shape; }

size_t axis_of(const Node& node, int64_t otherwise, size_t rank) {
  const int64_t axis = node.integer("axis", otherwise);
  return axis < 0 ? axis + rank : axis;
}

// Returns the dimension of `to` that corresponds to dimension `dim` of `from` after a reshape, if
// the product of the preceding dimensions is the same, so that rows stay rows.
std::optional<size_t> same_rows(const Shape& from, size_t dim, const Shape& to) {
  const int64_t before = product(std::span(from).first(dim));
  int64_t passed = 1;
  for (size_t d = 0; d < to.size(); ++d) {
    if (passed == before && to[d] == from[dim]) return d;
    passed *= to[d];
  }
  return std::nullopt;
}

bool add(Bounds::Dims& dims, size_t dim, ValueId count) {
  const auto [at, fresh] = dims.emplace(dim, count);
  return fresh || at->second == count;
}

}  // namespace

Result<Bounds::Dims> Bounds::outputs_of(const Graph& graph, const Node& node) const {
  std::string padded;
  bool data = false;    // input 0 is padded
  bool others = false;  // another input is padded
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || of(node.inputs[i]) == nullptr) continue;
    (i == 0 ? data : others) = true;
    if (padded.empty()) padded = graph.values[node.inputs[i]].name;
  }
  Dims result;
  if (padded.empty()) return result;
  const Error mixes{
      ErrorCode::kUnsupported, node.name,
      node.op + ": reads '" + padded +
          "', whose number of rows depends on the data, in a way that would mix its rows with padding"};
  const ValueId output = node.outputs[0];
  const Shape& to = shape_of(graph, output);
  if (has_trait(node.op, kElementwise)) {
    for (ValueId id : node.inputs) {
      const Dims* dims = id == kNoValue ? nullptr : of(id);
      if (dims == nullptr) continue;
      const size_t shift = to.size() - shape_of(graph, id).size();
      for (const auto& [dim, count] : *dims) {
        const bool broadcast = to[dim + shift] != shape_of(graph, id)[dim];
        if (broadcast || !add(result, dim + shift, count)) return mixes;
      }
    }
    return result;
  }
  const ValueId input = node.inputs[0];
  const Shape& from = input == kNoValue ? to : shape_of(graph, input);
  if (node.op == "Concat") {
    const size_t axis = axis_of(node, 0, to.size());
    for (ValueId id : node.inputs) {
      const Dims* dims = id == kNoValue ? nullptr : of(id);
      if (dims == nullptr) continue;
      for (const auto& [dim, count] : *dims)
        if (dim == axis || !add(result, dim, count)) return mixes;
    }
    return result;
  }
  if (node.op == "Gather") {
    const size_t axis = axis_of(node, 0, from.size());
    const size_t rank = shape_of(graph, node.inputs[1]).size();
    if (data) {
      for (const auto& [dim, count] : *of(input)) {
        if (dim == axis || !add(result, dim < axis ? dim : dim + rank - 1, count)) return mixes;
      }
    }
    if (others) {
      for (const auto& [dim, count] : *of(node.inputs[1]))
        if (!add(result, axis + dim, count)) return mixes;
    }
    return result;
  }
  if (node.op == "GatherND" && !data && node.integer("batch_dims", 0) == 0) {
    const size_t rank = shape_of(graph, node.inputs[1]).size();
    for (const auto& [dim, count] : *of(node.inputs[1]))
      if (dim + 1 == rank || !add(result, dim, count)) return mixes;
    return result;
  }
  if (!data || others) return mixes;
  for (const auto& [dim, count] : *of(input)) {
    std::optional<size_t> place;
    if (node.op == "Transpose") {
      const auto* perm = node.find<std::vector<int64_t>>("perm");
      for (size_t d = 0; d < to.size(); ++d) {
        const size_t source = perm != nullptr ? (*perm)[d] : to.size() - 1 - d;
        if (source == dim) place = d;
      }
    } else if (has_trait(node.op, kReshapes)) {
      place = same_rows(from, dim, to);
    } else if (node.op == "Slice" || node.op == "Split") {
      // Only other dimensions are cut, and no dimension is reversed.
      const auto* steps = node.op == "Slice" ? graph.constant(node.input(4)) : nullptr;
      bool forward = true;
      for (int64_t k = 0; steps != nullptr && k < steps->num_elements(); ++k)
        forward = forward && steps->at(k).i > 0;
      if (from[dim] == to[dim] && forward) place = dim;
      if (node.op == "Split" && axis_of(node, 0, from.size()) == dim) place.reset();
    } else if (has_trait(node.op, kReduces)) {
      // The reduced dimensions are other than the padded one, and are kept.
      if (from.size() == to.size() && from[dim] == to[dim] && from[dim] != 1) place = dim;
    }
    if (!place || !add(result, *place, count)) return mixes;
  }
  return result;
}

Status Bounds::propagate(const Graph& graph, const Node& node) {
  TS_ASSIGN_OR_RETURN(const Dims dims, outputs_of(graph, node));
  if (dims.empty()) return {};
  for (ValueId id : node.outputs)
    if (id != kNoValue) dims_[id] = dims;
  return {};
}

}  // namespace tensorsmith::graph
