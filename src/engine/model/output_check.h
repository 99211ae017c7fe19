// Compares a compiled model's outputs with expected ones.
#pragma once

#include <string>
#include <vector>

#include "lower/interpreter.h"
#include "runtime/model.h"

namespace tensorsmith::engine {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-4;
  double step = 0;  // quantization step of the output (engine/model/quantization_step.h)
};

struct Comparison {
  bool ok = true;
  int64_t elements = 0;
  int64_t wrong = 0;
  // Elements that differ by at most the quantization step; not wrong unless there are too many of
  // them.
  int64_t one_step = 0;
  double worst_absolute = 0;
  std::string detail;  // describes the worst element if not ok
};

// For floats, checks |got - expected| <= atol + rtol * |expected| (NaN equals NaN), where rtol is
// at least two units in the last place of f16 and bf16. Integers must be equal. In quantized
// outputs, up to a tenth of the elements may differ by one step: rounding differences move few
// elements, while a wrong zero point or truncation moves most. Different dtypes or element counts
// fail the comparison.
Comparison compare(const lower::Tensor& got, const lower::Tensor& expected, const Tolerance& tolerance);

// Runs a model on tensors after checking their dtypes and shapes against its inputs.
Result<std::vector<lower::Tensor>> run_model(runtime::Model& model, const std::vector<lower::Tensor>& inputs);

}  // namespace tensorsmith::engine
