// Generates CUDA C, and machine code for NVIDIA's GPUs.
#pragma once

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// Objects are cubins for the device's architecture (target::Device::cpu: "sm_80"). NVRTC compiles
// them; without it, compilation fails with kNotFound and a message that says what to install. The
// device itself is not needed.
const Backend& cuda_backend();

// Generates only the text, for machines without NVRTC and for reading.
const Backend& cuda_text_backend();

}  // namespace tensorsmith::codegen
