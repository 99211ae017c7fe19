// Quantization steps of a graph's outputs: two correct results of a quantized network may differ by
// one step.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tensorsmith::engine {

// Returns for each output of the graph one step of its last quantization, in the output's unit; 0
// for outputs that are not quantized. If a value lies between two steps, the summation order
// decides which one it is rounded to. An output is quantized if it comes from QuantizeLinear,
// DequantizeLinear or DynamicQuantizeLinear through operators that only move or select elements.
// For per-channel scales the largest one is used; a scale that is not constant gives 0.
std::vector<double> quantization_steps(const graph::Graph& graph);

}  // namespace tensorsmith::engine
