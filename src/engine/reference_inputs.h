// Inputs that show what a compiled model gets wrong.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::engine {

enum class Spread : uint8_t {
  kWide,  // integers of their type's whole range, most of them small; floats of magnitudes 2^-6 to 2^2, and 0
  kNarrow  // 0 and 1; floats in [-1, 1): what stays finite in networks that multiply a mask by -1e9
};

// For each input of the graph, in order: what its values must stay below because they choose an element, a
// class or a length (Gather, Scatter, OneHot, ...), directly or through other operators; 0 = no limit. An
// index out of range has no meaning in ONNX.
std::vector<int64_t> index_limits(const graph::Graph& graph);

// Seeded contents of the graph's inputs; limited ones are in [0, limit), booleans are both.
std::vector<lower::Tensor> reference_inputs(const graph::Graph& graph, uint64_t seed,
                                            Spread spread = Spread::kWide);

// Whether most of the floating-point elements are finite (true where there are none): among infinities and
// NaN little can be wrong.
bool mostly_finite(const std::vector<lower::Tensor>& tensors);

}  // namespace tensorsmith::engine
