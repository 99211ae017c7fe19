// Suggests options that give the inputs of a model their shapes.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"

namespace tensorsmith::tools {

// Returns for example "choose the lengths of these dimensions, for instance: tensorsmith tune
// m.onnx --shape x=1x3x224x224". Each length is guessed from the dimension's name and position;
// dimensions of the same name are equal. If many inputs are open and all their dimensions have
// names, it suggests --dim instead of --shape.
// command: the failed command line, to which the options are appended.
std::string shape_advice(std::span<const graph::OpenInput> inputs, const std::string& command);

}  // namespace tensorsmith::tools
