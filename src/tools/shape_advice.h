// What a user can write to give the inputs of a model their shapes.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"

namespace tensorsmith::tools {

// "choose the lengths of these dimensions, for instance: tensorsmith tune m.onnx --shape x=1x3x224x224": a guess of each length from
// its name and place. Lengths of the same name are equal. Where many inputs are open, all of whose dimensions have
// names, the names are given (--dim) instead of the inputs.
// command: the command line that failed, to which the options are added.
std::string shape_advice(std::span<const graph::OpenInput> inputs, const std::string& command);

}  // namespace tensorsmith::tools
