// Reference semantics: slow, simple, independent of any schedule or backend. Every other way to compute is
// checked against it.
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

// A dense row-major tensor, physical bytes.
struct Tensor {
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  static Tensor zeros(ir::DType dtype, std::vector<int64_t> shape);
  int64_t num_elements() const;
  size_t num_bytes() const;  // of the elements, which data has
  ir::Scalar at(int64_t flat) const;
  void set(int64_t flat, ir::Scalar value);
};

// Uniform random contents: floats in [-1, 1), integers small, in [0, index_limit) if index_limit > 0.
Tensor random_tensor(ir::DType dtype, std::vector<int64_t> shape, Rng& rng, int64_t index_limit = 0);

// All outputs of the workload, straight from its definition. inputs: in the order of workload.inputs().
Result<std::vector<Tensor>> evaluate(const ir::Workload& workload, std::span<const Tensor> inputs);

// Single elements of one output (flat row-major indices), computing no more than they need: the independent
// check of kernels too large for evaluate().
Result<std::vector<ir::Scalar>> evaluate_points(const ir::Workload& workload, std::span<const Tensor> inputs,
                                                size_t output, std::span<const int64_t> flat_indices);

// Runs a loop program (any ForKind, in serial order). Reads and writes out of range, and reads of elements
// never written in allocated buffers, are errors that name the statement. Returns the outputs.
Result<std::vector<Tensor>> run(const ir::Program& program, std::span<const Tensor> inputs);

}  // namespace tensorsmith::lower
