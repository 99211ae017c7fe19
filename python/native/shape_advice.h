// Advice in Python terms on how to give shapes to inputs that lack one.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"

namespace tensorsmith::python {

// Returns the advice for graph::ImportOptions: the arguments `dims` and `shapes` that give the
// inputs a shape, with 1 for each open length.
std::string shape_advice(std::span<const graph::OpenInput> inputs);

}  // namespace tensorsmith::python
