// GPUs through NVIDIA's driver. A module is a cubin; workspaces and offsets are addresses. The
// device's primary context is used, so that kernels can share memory with a program's own CUDA
// code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

Result<std::vector<GpuProperties>> list_cuda(const std::string& library);
Result<std::unique_ptr<Gpu>> open_cuda(int index, const std::string& library);

}  // namespace tensorsmith::runtime
