// Decides which nodes run together in one kernel. Internal to graph.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/views.h"

namespace tensorsmith::graph {

enum class NodeClass {
  kAlias,        // a view (graph/views.h): Reshape, a Concat of values that are adjacent in memory, ...
  kElementwise,  // every output element needs one element of each input of the output's shape, at the same
                 // indices
  kInjective,    // moves elements (Transpose, Concat, Slice, Gather, Resize, broadcast)
  kReduction,    // contains a reduction
  kRoutine,      // a routine of the runtime library computes it (graph/routines.h), or a region, alone
};

struct Grouping {
  IdVector<NodeId, NodeClass> classes;
  std::vector<std::vector<NodeId>> groups;  // nodes of each kernel, ascending; aliases are in no group
};

// `routines`: calls of the model may be routines.
Result<Grouping> group_nodes(const Graph& graph, const Views& views, bool routines);

}  // namespace tensorsmith::graph
