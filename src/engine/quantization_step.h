// How far apart two right results of a quantized network may be.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tensorsmith::engine {

// By output of the graph: one step of its last quantization, in its own unit; 0 for outputs that are not quantized.
// Where a value lies between two steps the order of a sum decides which it becomes. An output is quantized if it
// comes from QuantizeLinear, DequantizeLinear or DynamicQuantizeLinear through operators that move or choose
// elements. Of scales by channel the largest counts; a scale that is not a constant gives 0.
std::vector<double> quantization_steps(const graph::Graph& graph);

}  // namespace tensorsmith::engine
