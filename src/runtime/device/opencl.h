// GPUs through OpenCL 1.2 and newer. A module is the text of an OpenCL C program; an offset in the
// workspace is a sub-buffer (Gpu::workspace_scale). If Launch::shared_bytes > 0, the kernel's last
// argument is a __local pointer to that many bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

Result<std::vector<GpuProperties>> list_opencl(const std::string& library);
Result<std::unique_ptr<Gpu>> open_opencl(int index, const std::string& library);

}  // namespace tensorsmith::runtime
