// Compiles loop programs that were scheduled for a GPU as OpenCL C, and runs them on the OpenCL device of this machine.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "codegen/backend.h"
#include "lower/interpreter.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::test {

// Returns a device as large as any GPU, with the limits of the OpenCL device.
target::Device gpu_for(const runtime::Gpu& gpu);

// Returns the outputs, which contain garbage before the call, as does the workspace.
Result<std::vector<lower::Tensor>> compile_and_run(runtime::Gpu& gpu, const ir::Program& program,
                                                   const target::Device& device,
                                                   std::span<const lower::Tensor> inputs);

}  // namespace tensorsmith::test
