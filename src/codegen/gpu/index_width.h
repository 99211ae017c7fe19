// Checks whether a kernel's index arithmetic fits 32 bits, which GPUs compute at half or a quarter
// of the cost of 64 bits.
#pragma once

#include "codegen/gpu/kernels.h"

namespace tensorsmith::codegen {

// Returns whether all indices, extents and conditions fit, with all their intermediate results.
bool indices_fit_32_bits(const GpuKernel& kernel);

}  // namespace tensorsmith::codegen
