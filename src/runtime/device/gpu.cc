#include "runtime/device/gpu.h"

#include "runtime/device/cuda.h"
#include "runtime/device/opencl.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime {

std::string_view to_string(GpuApi api) { return api == GpuApi::kCuda ? "cuda" : "opencl"; }

int64_t Gpu::workspace_scale(std::span<const Launch> launches, int64_t alignment) {
  for (const Launch& launch : launches) {
    for (const LaunchArgument& argument : launch.arguments) {
      if (argument.buffer < 0 && argument.workspace_offset % alignment != 0)
        return alignment / TENSORSMITH_BUFFER_ALIGNMENT;
    }
  }
  return 1;
}

Result<std::vector<GpuProperties>> list_gpus(GpuApi api, const std::string& library) {
  return api == GpuApi::kCuda ? list_cuda(library) : list_opencl(library);
}

Result<std::unique_ptr<Gpu>> open_gpu(GpuApi api, int index, const std::string& library) {
  return api == GpuApi::kCuda ? open_cuda(index, library) : open_opencl(index, library);
}

}  // namespace tensorsmith::runtime
