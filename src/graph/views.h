// Values that are stored inside the memory of others. Internal to graph.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

struct Views {
  // Whether the node costs nothing, since its outputs have the same memory as its inputs.
  IdVector<NodeId, bool> is_view;
  // The value whose memory contains this one, and the position of this one's first byte there.
  IdVector<ValueId, ValueId> storage_of;
  IdVector<ValueId, int64_t> offset;
};

// Reshape and similar operators give a whole value another shape. Split, Slice and similar
// operators cost nothing if each output is a range of the input's memory that starts at a multiple
// of a kernel buffer's alignment (channels of one image), and that memory belongs to the model. A
// Concat along the outermost dimension of extent > 1 costs nothing if the producers of its inputs
// write directly to their positions in its output:
//   a = Conv(x); b = Conv(y); c = Concat(a, b)  =>  a is stored in c at 0, b at bytes(a)
// This requires that every input is made by a kernel, is not stored in another Concat's output, and
// starts at a multiple of a kernel buffer's alignment; and that the output belongs to the model's
// working memory, not to its user. Consecutive parts of a value count as that value:
//   a, b = Split(x); y = Conv(b); c = Concat(a, b, y)  =>  x is stored in c at 0, y at bytes(x)
// `alignment` applies to these positions, in bytes.
Views find_views(const Graph& graph, int64_t alignment);

}  // namespace tensorsmith::graph
