// Merges the axes of a workload into fewer, longer ones.
#pragma once

#include "ir/workload.h"

namespace tensorsmith::ir {

// Merges neighbouring axes that are only used together: if A[i, j] is read and written only at [i,
// j] over its full extents, it has the same storage as A[ij], since tensors are dense and
// row-major. A 1x1 convolution of stride 1 gets one axis of pixels and so becomes a matrix product;
// an elementwise operation gets one axis. As many axes as possible are merged. Reduction axes are
// merged, too, in their order. Every value stays at its place in memory, but the shapes of
// placeholders and outputs change (not their order, names or dtypes). Returns the workload itself
// if nothing can be merged. The workload must verify.
Workload collapse_axes(const Workload& workload);

}  // namespace tensorsmith::ir
