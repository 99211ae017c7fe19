// Reference execution of whole graphs.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

// Computes the outputs node by node with the reference interpreter. `inputs` are in the order of
// graph.inputs and must have the values' dtypes and shapes (kInvalidArgument otherwise).
Result<std::vector<lower::Tensor>> evaluate(const Graph& graph, std::span<const lower::Tensor> inputs);

// The whole graph as one workload, for lower::evaluate_points().
struct GraphWorkload {
  ir::Workload workload;
  std::vector<ValueId> inputs;  // the values of workload.inputs(), including constants
};
Result<GraphWorkload> graph_workload(const Graph& graph);

}  // namespace tensorsmith::graph
