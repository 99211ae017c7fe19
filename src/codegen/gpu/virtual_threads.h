// Virtual threads (TVM's vthread): one thread does the work of several, interleaved. Each virtual
// thread has its own copy of private values; values that they share are computed once.
#pragma once

#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// Pushes the loops over virtual threads inwards to the statements that differ between them, where
// they become unrolled loops, and gives the private buffers that differ a dimension for the virtual
// threads. Example, with A shared and c private:
//   for v virtual: { c = 0; for k: { A[t] = X[k, t]; c = c + A[v] } Y[v] = c }
//   =>
//   for v unrolled: c[v] = 0;
//   for k: { A[t] = X[k, t]; for v unrolled: c[v] = c[v] + A[v] }
//   for v unrolled: Y[v] = c[v]
// Returns kUnsupported if a value that differs between virtual threads decides whether a shared
// buffer is written.
Status push_virtual_threads(GpuKernel& kernel);

}  // namespace tensorsmith::codegen
