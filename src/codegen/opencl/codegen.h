// Generates kernels in OpenCL C.
#pragma once

#include "codegen/backend.h"

namespace tensorsmith::codegen {

// Objects are source text, which the driver of a device compiles (runtime/device);
// CompiledKernel::launches lists the launches of a call.
const Backend& opencl_backend();

}  // namespace tensorsmith::codegen
