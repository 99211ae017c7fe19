// Makes a workload of a single node, for shape inference and evaluation.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

struct NodeWorkload {
  ir::Workload workload;  // a placeholder per input that is present, in order; then the node's stages
  std::vector<ir::Buffer> inputs;   // by node input, null for an omitted one
  std::vector<ir::Buffer> outputs;  // by node output; may be one of inputs
};
Result<NodeWorkload> node_workload(const Graph& graph, const Node& node);

// Returns the product of all extents.
double iteration_count(const ir::Operation& op);
// Returns the sum of the stages' iteration counts, as a measure of the evaluation time.
double evaluation_cost(const ir::Workload& workload);

// Returns the values of the node's outputs. `inputs` are by node input, null for an omitted one.
Result<std::vector<std::shared_ptr<const lower::Tensor>>> evaluate_node(
    const NodeWorkload& node, std::span<const std::shared_ptr<const lower::Tensor>> inputs);

struct FoldLimits {
  double max_cost = 1 << 20;                  // evaluation_cost() of one node
  int64_t max_bytes = int64_t{1} << 16;       // outputs of one node
  int64_t max_fill_bytes = int64_t{1} << 30;  // for ConstantOfShape, Reshape, ..., which need no evaluation
  int64_t constant_bytes_left = int64_t{8} << 30;  // for all nodes together; decreased by each fold
  bool fail_when_exhausted = true;                 // otherwise further nodes are not folded
};

// Sets dtype and shape of the node's outputs, and their contents if these can be computed within
// the limits. The outputs' values must exist.
Status infer_node(Graph& graph, const Node& node, FoldLimits& limits);

}  // namespace tensorsmith::graph
