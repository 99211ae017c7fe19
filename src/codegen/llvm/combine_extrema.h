// Combines several values of a minimum or maximum before the accumulator is updated.
#pragma once

#include "ir/stmt.h"

namespace tensorsmith::codegen {

// Unrolled loops of a minimum or maximum become one expression, row by row:
//
//   unrolled p in 3 { unrolled q in 3 { vectorized j in 16 { m[j] = max(m[j], x[i+p, j+q]) } } }
// =>
//   vectorized j in 16 {
//     m[j] = max(m[j], max(max(max(max(x[i, j], x[i, j+1]), x[i, j+2]), max(max(x[i+1, j], ...
//   }
//
// If the code is also unrolled over i, vertically adjacent windows share the maxima of their rows:
// four instructions per result instead of nine. In a serial loop, a few steps are combined:
//
//   for k in 64 { m[0] = max(m[0], x[k]) }
// =>
//   for k in 16 { m[0] = max(m[0], max(max(x[4*k], x[4*k+1]), max(x[4*k+2], x[4*k+3]))) }
//
// so that the loop waits for the accumulator a quarter as often. The result is the same, NaN
// included, because minima and maxima may be taken in any order.
ir::Program combine_extrema(const ir::Program& program);

}  // namespace tensorsmith::codegen
