// Inputs of quantized workloads over the whole range of bytes; some tensors hold only an extreme
// value.
#pragma once

#include <vector>

#include "base/rng.h"
#include "lower/interpreter.h"

namespace tensorsmith::test {

inline std::vector<lower::Tensor> random_bytes(const ir::Workload& workload, Rng& rng) {
  std::vector<lower::Tensor> inputs;
  for (const auto& op : workload.operations) {
    if (!op->is_placeholder()) continue;
    const ir::Buffer& input = op->output();
    lower::Tensor t = lower::Tensor::zeros(input->dtype, input->shape);
    const bool is_signed = input->dtype == ir::DType::kI8;
    const int64_t low = op->reduced_range ? (is_signed ? -64 : 0) : is_signed ? -128 : 0;
    const int64_t high = op->reduced_range ? (is_signed ? 64 : 128) : is_signed ? 127 : 255;
    const int64_t constant = rng.bernoulli(0.25) ? (rng.bernoulli(0.5) ? low : high) : high + 1;
    for (int64_t i = 0; i < t.num_elements(); ++i)
      t.set(i, ir::scalar_int(input->dtype, constant <= high ? constant : rng.uniform_int(low, high)));
    inputs.push_back(std::move(t));
  }
  return inputs;
}

}  // namespace tensorsmith::test
