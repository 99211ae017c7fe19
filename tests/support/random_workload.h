// Random small valid workloads for property tests.
#pragma once

#include <cstdint>

#include "ir/workload.h"

namespace tensorsmith::test {

struct RandomWorkloadOptions {
  int max_operations = 6;          // compute operations, at least 1
  int64_t max_elements = 2048;     // of one tensor
  int64_t max_iterations = 20000;  // of one operation, spatial times reduce
  bool other_dtypes = true;        // i32, i8, u8, i64 and bool besides f32
  bool arg_reductions = true;      // argmax and argmin, which have two outputs
  bool zero_rank = true;           // reductions to a scalar
  bool gathers = true;             // loads as indices
};

// The same seed gives the same workload. All reads are provably in range for every input. Float
// values stay moderate (|x| < 1e4) for inputs in [-1, 1]. Integers and index outputs depend only on
// values that a schedule cannot perturb by rounding, so they can be compared exactly. Inputs of i64
// tensors used as indices may hold any value.
ir::Workload random_workload(uint64_t seed, const RandomWorkloadOptions& options = {});

}  // namespace tensorsmith::test
