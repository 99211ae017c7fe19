// NVIDIA's driver. A module is a cubin; workspaces and offsets are addresses. The device's primary context is used, so
// that memory and kernels of a program's own CUDA code can be beside ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

Result<std::vector<GpuProperties>> list_cuda(const std::string& library);
Result<std::unique_ptr<Gpu>> open_cuda(int index, const std::string& library);

}  // namespace tensorsmith::runtime
