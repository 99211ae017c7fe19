// Kernels as CUDA C, and as machine code of NVIDIA's GPUs.
#pragma once

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// Objects are cubins for the device's architecture (target::Device::cpu: "sm_80"), which NVRTC makes where it is
// installed; kNotFound says what to install. Devices need not be there.
const Backend& cuda_backend();

// The text alone, for machines without NVRTC and to read.
const Backend& cuda_text_backend();

}  // namespace tensorsmith::codegen
