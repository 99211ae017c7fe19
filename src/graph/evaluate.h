// Reference execution of whole graphs.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

// The outputs, computed node by node with the reference interpreter. inputs: in the order of graph.inputs,
// with the values' dtypes and shapes (kInvalidArgument otherwise).
Result<std::vector<lower::Tensor>> evaluate(const Graph& graph, std::span<const lower::Tensor> inputs);

// The whole graph as one workload, for lower::evaluate_points().
struct GraphWorkload {
  ir::Workload workload;
  std::vector<ValueId> inputs;  // the value behind each of workload.inputs(); constants included
};
Result<GraphWorkload> graph_workload(const Graph& graph);

}  // namespace tensorsmith::graph
