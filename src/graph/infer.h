// A node as a workload of its own: shape inference and evaluation.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

struct NodeWorkload {
  ir::Workload workload;           // a placeholder an input that is present, in order; then the node's stages
  std::vector<ir::Buffer> inputs;  // by node input, null for an omitted one
  std::vector<ir::Buffer> outputs;  // by node output; may be one of inputs
};
Result<NodeWorkload> node_workload(const Graph& graph, const Node& node);

// Sum over the stages of the product of all extents: a measure of the time that evaluating it takes.
double evaluation_cost(const ir::Workload& workload);

// Values of the node's outputs. inputs: by node input, null for an omitted one.
Result<std::vector<std::shared_ptr<const lower::Tensor>>> evaluate_node(
    const NodeWorkload& node, std::span<const std::shared_ptr<const lower::Tensor>> inputs);

struct FoldLimits {
  double max_cost = 1 << 20;                       // evaluation_cost() of one node
  int64_t max_bytes = int64_t{1} << 16;            // of one node's outputs
  int64_t max_fill_bytes = int64_t{1} << 30;       // ConstantOfShape, Reshape, ...: no evaluation needed
  int64_t constant_bytes_left = int64_t{8} << 30;  // for all nodes together; lowered by each fold
  bool fail_when_exhausted = true;                 // else nodes are not folded any more
};

// Sets dtype and shape of the node's outputs; sets their contents if they can be known within the limits. The
// outputs' values must exist.
Status infer_node(Graph& graph, const Node& node, FoldLimits& limits);

}  // namespace tensorsmith::graph
