// Data movement as a composition of index maps: the combined effect of chains of Reshape,
// Transpose, Slice and Gather at constant indices.
#pragma once

#include <optional>
#include <vector>

#include "graph/ops/index.h"

namespace tensorsmith::graph {

// One step, from a tensor of one shape to a tensor of shape `to`.
struct MoveStep {
  Shape to;
  // Empty for a reshape. Otherwise, for each dimension of the source, index = output index[dim] *
  // factor + offset, or just the offset if dim is -1.
  struct Index {
    int64_t dim = -1;
    int64_t factor = 0;
    int64_t offset = 0;
  };
  std::vector<Index> source;
  bool is_reshape = false;
};

// Returns the step that a node applies to input 0, if it is one; the node's other inputs must be
// constants.
std::optional<MoveStep> move_step(const Graph& graph, const Node& node);

// Returns the indices into a tensor of shape `from` that hold the element at the indices of the
// last step's tensor, simplified for variables of the given axes.
Exprs compose_moves(const Shape& from, std::span<const MoveStep> steps, std::span<const ir::Axis> axes);

// Convert a step to a node attribute and back; nullopt if the numbers are no step for a source of
// this shape.
std::vector<int64_t> encode_step(const MoveStep& step);
std::optional<MoveStep> decode_step(std::span<const int64_t> numbers, const Shape& from);

}  // namespace tensorsmith::graph
