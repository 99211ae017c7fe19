// Puts the calls of a region's bodies among those of the network. Internal to graph.
#pragma once

#include <functional>

#include "graph/tasks.h"

namespace tensorsmith::graph {

// A body by itself, with its own values; `partition` has no tasks, because its calls name those of the network.
struct PartitionedBody {
  Graph graph;
  Partition partition;
};

// Appends the calls of the node's bodies and the copies between them to the partition, and values to the graph's.
// `partition_body` returns the calls of a body, given the number of times that it is expected to run.
//  - A value of the network that a body reads is in the network's memory.
//  - A slice is a part of its tensor that moves with each turn, and so is a result. Those that do not begin at multiples
//    of the alignment are copied.
//  - A state is in the memory of the node's output. The first one is copied there before the first turn, and the next
//    one at the end of each turn.
Status place_region(
    Graph& graph, Partition& partition, const Node& node, int64_t alignment,
    const std::function<Result<PartitionedBody>(const Graph& body, int64_t turns)>& partition_body);

}  // namespace tensorsmith::graph
