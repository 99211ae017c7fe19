// Whether a kernel's index arithmetic fits 32 bits, which GPUs compute with at half or a quarter of the cost of 64.
#pragma once

#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// All indices, lengths and conditions, with all their intermediate results.
bool indices_fit_32_bits(const GpuKernel& kernel);

}  // namespace tensorsmith::codegen
