// Loop nests that multiply tiles in the form that matrix units compute (AMX).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/stmt.h"
#include "sched/matrix_units.h"

namespace tensorsmith::codegen {

//   for k0 ..                        (sums: serial or unrolled, none of them in C's indices)
//     for k in K
//       unrolled i in R              (rows: in A's and C's indices)
//         vectorized j in N          (columns: in B's and C's)
//           C[i, j] = C[i, j] + dot(A[i, k], B[k, j])
//
// A is contiguous along k, B and C along j; the rows of each have a constant stride. K and the
// tiles of A, B and C are within the limits of the units (sched/matrix_units.h).
struct MatrixNest {
  const ir::Store* store = nullptr;
  const ir::Load *a = nullptr, *b = nullptr;
  ir::Intrinsic dot = ir::Intrinsic::kDot4;
  bool b_is_first = false;                           // B is the first argument of the intrinsic
  std::vector<const ir::For*> sums, rows, columns;   // the last loops of rows and columns are cut
                                                     // into tiles
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;  // elements between rows
};

// Matches the nest whose outermost loop is `loop`.
std::optional<MatrixNest> match_matrix_nest(const ir::For& loop, const sched::MatrixUnits& units);

}  // namespace tensorsmith::codegen
