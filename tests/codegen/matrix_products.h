// Products of matrices in the forms that tensor cores take.
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/workload.h"

namespace tensorsmith::test {

struct MatrixProduct {
  ir::DType a = ir::DType::kF16, b = ir::DType::kF16;
  int64_t m = 64, n = 64, k = 64;
  int64_t batch = 1;                                // of both; 1: no such axis
  bool one_b = false;                               // B has no axis of the batch
  bool a_transposed = false, b_transposed = false;  // A: [k, m], B: [n, k]
  bool tf32 = false;                                // values of f32, rounded to TF32
  bool epilogue = false;                            // + 1 and rounded to A's type
};

// "A", "B", "C" and with an epilogue "R". Sums are f32, of bytes i32.
ir::Workload matrix_product(const MatrixProduct& p);

}  // namespace tensorsmith::test
