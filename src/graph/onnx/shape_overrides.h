// Inputs that get another shape than the fixed one in the file, and nodes that do not support that:
// exporters write the shape that they saw into constants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace tensorsmith::graph {

struct ShapeOverride {
  std::string input;
  std::vector<int64_t> declared;  // dimensions that the file leaves open have the given lengths
  std::vector<int64_t> given;
};

// Returns, for example, "input 'x' is 4x3x224x224 here, 1x3x224x224 in the model".
std::string describe(const ShapeOverride& override_);

// Returns kInvalidArgument for a node that would distribute the rows of another batch over the rows
// of the declared one: a Reshape whose constant shape begins with the declared batch (where a -1 or
// 0 elsewhere would absorb the rest), or a Flatten of all dimensions. Their results would be wrong,
// although no other node fails.
Status check_batch(const std::vector<ShapeOverride>& overrides, const Graph& graph, const Node& node);

// Returns the text that is appended to the error of a node that works for the declared shapes, but
// not for the given ones.
std::string explain(const std::vector<ShapeOverride>& overrides);

}  // namespace tensorsmith::graph
