// The devices of all OpenCL platforms and what they say of themselves.
#pragma once

#include <vector>

#include "runtime/device/gpu.h"
#include "runtime/device/opencl_api.h"

namespace tensorsmith::runtime::opencl {

struct FoundDevice {
  Device device = nullptr;
  GpuProperties properties;
  int64_t offset_alignment = 1;
};

// GPUs before others, otherwise in the order of the platforms. Devices without a compiler are left out. kNotFound: none.
Result<std::vector<FoundDevice>> find_devices(const Api& api);

}  // namespace tensorsmith::runtime::opencl
