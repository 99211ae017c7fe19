// Promotes accumulators to registers in schedules that accumulate in memory.
#pragma once

#include <cstdint>

#include "ir/stmt.h"
#include "sched/matrix_units.h"

namespace tensorsmith::codegen {

// A serial or unrolled loop that updates elements of a buffer whose indices do not depend on the
// loop works on a local copy of those elements instead:
//
//   for k in 512
//     unrolled i in 4
//       vectorized j in 16
//         C[y*4+i, j] = C[y*4+i, j] + A[y*4+i, k] * B[k, j]
// =>
//   alloc C.acc[4, 16] local
//     unrolled i in 4
//       vectorized j in 16
//         C.acc[i, j] = C[y*4+i, j]
//     for k in 512
//       unrolled i in 4
//         vectorized j in 16
//           C.acc[i, j] = C.acc[i, j] + A[y*4+i, k] * B[k, j]
//     unrolled i in 4
//       vectorized j in 16
//         C[y*4+i, j] = C.acc[i, j]
//
// This is done if the copy fits into the vector registers, and for the outermost loop where it is
// possible. LLVM's own promotion handles neither masked nor scattered stores. Nests that matrix
// units compute (codegen/matrix_nest.h) are left unchanged. The program's meaning does not change.
ir::Program promote_accumulators(const ir::Program& program, int vector_registers, int vector_bytes,
                                 const sched::MatrixUnits& matrix = {});

}  // namespace tensorsmith::codegen
