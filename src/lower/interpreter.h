// Reference semantics: slow, simple, and independent of any schedule or backend. All other
// implementations are checked against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "ir/scalar.h"
#include "ir/stmt.h"
#include "ir/workload.h"

namespace tensorsmith::lower {

// A dense row-major tensor with its bytes.
struct Tensor {
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  static Tensor zeros(ir::DType dtype, std::vector<int64_t> shape);
  int64_t num_elements() const;
  size_t num_bytes() const;  // bytes of the elements, which is the size of `data`
  ir::Scalar at(int64_t flat) const;
  void set(int64_t flat, ir::Scalar value);
};

// Returns uniformly random contents: floats in [-1, 1); small integers, in [0, index_limit) if
// index_limit > 0.
Tensor random_tensor(ir::DType dtype, std::vector<int64_t> shape, Rng& rng, int64_t index_limit = 0);

// Computes all outputs of the workload directly from its definition. `inputs` are in the order of
// workload.inputs().
Result<std::vector<Tensor>> evaluate(const ir::Workload& workload, std::span<const Tensor> inputs);

// Computes single elements of one output (flat row-major indices) and only the values that they
// depend on: an independent check of kernels that are too large for evaluate().
Result<std::vector<ir::Scalar>> evaluate_points(const ir::Workload& workload, std::span<const Tensor> inputs,
                                                size_t output, std::span<const int64_t> flat_indices);

// Runs a loop program (any ForKind, in serial order). Out-of-range accesses and reads of unwritten
// elements of allocated buffers are errors that name the statement. Returns the outputs.
Result<std::vector<Tensor>> run(const ir::Program& program, std::span<const Tensor> inputs);

}  // namespace tensorsmith::lower
