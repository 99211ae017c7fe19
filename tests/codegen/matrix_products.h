// Matrix products in the forms that tensor cores can compute.
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/workload.h"

namespace tensorsmith::test {

struct MatrixProduct {
  ir::DType a = ir::DType::kF16, b = ir::DType::kF16;
  int64_t m = 64, n = 64, k = 64;
  int64_t batch = 1;                                // batch of both; 1: no such axis
  bool one_b = false;                               // B has no batch axis
  bool a_transposed = false, b_transposed = false;  // A: [k, m], B: [n, k]
  bool tf32 = false;                                // f32 values, rounded to TF32
  bool epilogue = false;                            // + 1 and rounded to A's type
};

// Stages "A", "B", "C", and "R" if there is an epilogue. Sums are f32, for bytes i32.
ir::Workload matrix_product(const MatrixProduct& p);

}  // namespace tensorsmith::test
