// Generates inputs that reveal errors of a compiled model.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::engine {

enum class Spread : uint8_t {
  kWide,   // integers of the full range, mostly small; floats with magnitudes 2^-6 to 2^2, and 0
  kNarrow  // 0 and 1; floats in [-1, 1), which stay finite in networks that multiply a mask by -1e9
};

// Returns for each input of the graph, in order, the exclusive upper bound of its values if they
// select an element, a class or a length (Gather, Scatter, OneHot, ...), directly or through other
// operators; 0 = no limit. ONNX gives no meaning to an index out of range.
std::vector<int64_t> index_limits(const graph::Graph& graph);

// Generates the graph's inputs from a seed. Limited inputs are in [0, limit); booleans take both
// values.
std::vector<lower::Tensor> reference_inputs(const graph::Graph& graph, uint64_t seed,
                                            Spread spread = Spread::kWide);

// Whether most floating-point elements are finite (true if there are none). A comparison of
// infinities and NaN reveals few errors.
bool mostly_finite(const std::vector<lower::Tensor>& tensors);

}  // namespace tensorsmith::engine
