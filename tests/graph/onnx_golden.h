// Small ONNX models with outputs computed by ONNX Runtime 1.32 (without optimizations) or, if it
// does not support the node, by ONNX's reference evaluator 1.23. They cover operators and
// attributes that ONNX's packaged cases lack.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace tensorsmith::graph::testing {

struct GoldenCase {
  std::string name;
  std::string model;  // the file's bytes
  bool bounded = false;
  std::vector<lower::Tensor> inputs;  // in the model's order
  std::vector<lower::Tensor> outputs;
};

std::vector<GoldenCase> golden_cases();

// ((7 i + 3 seed) mod 23 - 11) / 8 for element i.
lower::Tensor ramp(std::vector<int64_t> shape, int64_t seed = 0);
lower::Tensor tensor_of(ir::DType dtype, std::vector<int64_t> shape, const std::vector<double>& values);

}  // namespace tensorsmith::graph::testing
