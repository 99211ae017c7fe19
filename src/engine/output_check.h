// Comparing a compiled model's outputs with expected ones.
#pragma once

#include <string>
#include <vector>

#include "lower/interpreter.h"
#include "runtime/model.h"

namespace tensorsmith::engine {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-4;
  double step = 0;  // of the output's quantization (engine/quantization_step.h)
};

struct Comparison {
  bool ok = true;
  int64_t elements = 0;
  int64_t wrong = 0;
  // Off by no more than the step of the quantization; not wrong unless they are too many.
  int64_t one_step = 0;
  double worst_absolute = 0;
  std::string detail;  // the worst element, when not ok
};

// |got - expected| <= atol + rtol * |expected| for floats (NaN equals NaN), where rtol is at least two units
// in the last place of f16 and bf16; equality for integers; or, of quantized outputs, one step for up to a tenth
// of the elements (rounding moves few; a wrong zero point or truncation moves most). Different dtypes or element
// counts are a failed comparison.
Comparison compare(const lower::Tensor& got, const lower::Tensor& expected, const Tolerance& tolerance);

// Runs a model on tensors; checks dtypes and shapes against what the model wants.
Result<std::vector<lower::Tensor>> run_model(runtime::Model& model, const std::vector<lower::Tensor>& inputs);

}  // namespace tensorsmith::engine
