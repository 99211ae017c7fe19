#include "runtime/device/gpu.h"

#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime {

int64_t Gpu::workspace_scale(std::span<const Launch> launches, int64_t alignment) {
  for (const Launch& launch : launches) {
    for (const LaunchArgument& argument : launch.arguments) {
      if (argument.buffer < 0 && argument.workspace_offset % alignment != 0)
        return alignment / TENSORSMITH_BUFFER_ALIGNMENT;
    }
  }
  return 1;
}

}  // namespace tensorsmith::runtime
