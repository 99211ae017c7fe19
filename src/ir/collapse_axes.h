// Fewer, longer axes for a workload.
#pragma once

#include "ir/workload.h"

namespace tensorsmith::ir {

// Merges neighbouring axes that are only ever walked together: A[i, j] read and written nowhere but at [i, j]
// over its full extents is the same storage as A[ij], as tensors are dense and row-major. A 1x1 convolution
// of stride 1 gets one axis of pixels and so becomes a matrix product, an elementwise operation gets one
// axis. The axes merged are the most there can be; reduction axes merge too, in their order. Every value
// stays where it was in memory, but the shapes of placeholders and outputs change (not their order, names or
// dtypes). Returns the workload itself if nothing merges. The workload must verify.
Workload collapse_axes(const Workload& workload);

}  // namespace tensorsmith::ir
