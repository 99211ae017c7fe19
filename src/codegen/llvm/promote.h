// Accumulators in registers for schedules that accumulate in memory.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "ir/stmt.h"

namespace tensorsmith::codegen {

struct Promoted {
  ir::Program program;
  // Buffers that only say whether an accumulator of the same shape has met a NaN: a number, or NaN.
  std::unordered_set<const ir::BufferNode*> nan_trackers;
};

// A serial or unrolled loop that updates elements of a buffer at places that do not depend on it works on a
// local copy of those elements instead, if the copy fits the vector registers:
//
//   for k in 512 { unrolled i in 4 { vectorized j in 16 { C[y*4+i, j] = C[y*4+i, j] + A[y*4+i, k] * B[k, j] }
//   } }
// =>
//   alloc C.acc[4, 16] local {
//     unrolled i in 4 { vectorized j in 16 { C.acc[i, j] = C[y*4+i, j] } }
//     for k in 512 { unrolled i in 4 { vectorized j in 16 { C.acc[i, j] = C.acc[i, j] + A[y*4+i, k] * B[k, j]
//     } } } unrolled i in 4 { vectorized j in 16 { C[y*4+i, j] = C.acc[i, j] } }
//   }
//
// LLVM's own promotion does less: not masked stores, not scattered ones. The outermost loop for which it
// works is taken. The program's meaning does not change.
//
// A minimum or maximum of f32 or f64 gets a second copy, which holds whether there was a NaN:
//
//   for r in 9 { P[x] = max(P[x], A[x + r]) }
// =>
//   P.acc = P[x]; P.nan = isnan(P[x]) ? P[x] : 1
//   for r in 9 { P.nan = isnan(A[x + r]) ? A[x + r] : P.nan; P.acc = max(P.acc, A[x + r]) }
//   P[x] = isnan(P.nan) ? P.nan : P.acc
//
// Then the processor's own maximum does in the loop, which forgets a NaN: two instructions instead of three.
Promoted promote_accumulators(const ir::Program& program, int vector_registers, int vector_bytes);

}  // namespace tensorsmith::codegen
