// Nodes that contain bodies: loops and branches (graph.h, Region).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

// Sets dtype and shape of the outputs of a node with a region. Error: kInvalidArgument if the region does not fit the
// node's inputs, or contradicts itself.
Status infer_region(Graph& graph, const Node& node);

// Computes a node with the reference interpreter. `inputs` are by node input, and so are the results by output, null
// for an omitted one. Error: kResourceExhausted for a loop that has not ended after many turns.
Result<std::vector<std::shared_ptr<const lower::Tensor>>> evaluate_region(
    const Node& node, std::span<const std::shared_ptr<const lower::Tensor>> inputs);

// Makes constants of the inputs that are constants of the network, and drops results that nothing reads, states that
// nothing reads and inputs that no body reads. Then optimizes the bodies.
Status optimize_regions(Graph& graph, const OptimizeOptions& options);

// Replaces loops by their turns one after another, and branches by both bodies and a choice: all of them if `all`,
// otherwise those where a region would cost more than it saves. Errors: kUnsupported for a loop that has too many
// turns, or whose number of turns is not known.
Status unroll_regions(Graph& graph, bool all);

}  // namespace tensorsmith::graph
