// Nodes that a routine of the runtime library computes (runtime/routine.h), because the loops of their definition would do
// many times the operations.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "runtime/routine.h"

namespace tensorsmith::graph {

// A node as the call of a routine. The routine's buffers are these inputs and outputs of the node, in order.
struct RoutineUse {
  runtime::RoutineCall call;
  std::vector<size_t> inputs, outputs;
};

// Returns nothing if the node has no routine, or if its loops are as good. The node's values must have their types and
// shapes. An error of the node's own is left to emit().
std::optional<RoutineUse> routine_of(const Graph& graph, const Node& node);

// Runs the routine on one thread. `inputs` are by node input; returns the outputs by node output, null for
// omitted ones. Errors are those of the routine.
Result<std::vector<std::shared_ptr<const lower::Tensor>>> run_routine(
    const Graph& graph, const Node& node, const RoutineUse& use,
    std::span<const std::shared_ptr<const lower::Tensor>> inputs);

}  // namespace tensorsmith::graph
