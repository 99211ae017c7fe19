// Kernels as OpenCL C.
#pragma once

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// Objects are text, which the driver of a device compiles (runtime/device); CompiledKernel::launches says what a call
// launches.
const Backend& opencl_backend();

}  // namespace tensorsmith::codegen
