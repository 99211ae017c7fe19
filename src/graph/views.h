// Where values lie in the memory of others. Internal to graph.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph {

struct Views {
  // By node: costs nothing, its outputs have the same memory as its inputs.
  std::vector<bool> is_view;
  // By ValueId: the value whose memory holds it, and the place of its first byte there.
  std::vector<ValueId> storage_of;
  std::vector<int64_t> offset;
};

// Reshape and its like give a whole value another shape. Split, Slice and their like are no work if each
// output is a range of the input's memory that starts at a multiple of a kernel buffer's alignment (channels
// of one image), and that memory belongs to the model. A Concat along the outermost dimension of extent > 1
// is no work if its inputs' producers write to their places in its output:
//   a = Conv(x); b = Conv(y); c = Concat(a, b)  =>  a lies in c at 0, b at bytes(a)
// provided that every input is made by a kernel, lies in no other Concat's output, and starts at a multiple
// of a kernel buffer's alignment; and that the output belongs to the model's working memory, not to its user.
// The parts of a value in their order count as that value:
//   a, b = Split(x); y = Conv(b); c = Concat(a, b, y)  =>  x lies in c at 0, y at bytes(x)
// alignment: of the places, bytes.
Views find_views(const Graph& graph, int64_t alignment);

}  // namespace tensorsmith::graph
