// Inputs that get another shape than the fixed one of the file, and nodes that cannot follow: exporters write the shape
// that they saw into constants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace tensorsmith::graph {

struct ShapeOverride {
  std::string input;
  std::vector<int64_t> declared;  // dimensions that the file leaves open as they are given
  std::vector<int64_t> given;
};

// "input 'x' is 4x3x224x224 here, 1x3x224x224 in the model"
std::string describe(const ShapeOverride& override_);

// kInvalidArgument for a node that would put the rows of another batch into the rows of the declared one: a Reshape
// whose constant shape begins with the declared batch (where -1 or 0 elsewhere would take the rest), or a Flatten of
// all dimensions. Their results would be wrong without any other node failing.
Status check_batch(const std::vector<ShapeOverride>& overrides, const Graph& graph, const Node& node);

// Behind the error of a node that works for the declared shapes and does not for the given ones.
std::string explain(const std::vector<ShapeOverride>& overrides);

}  // namespace tensorsmith::graph
