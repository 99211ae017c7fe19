// Lists the devices of all OpenCL platforms with the properties that they report.
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

// Returns GPUs first, otherwise in the order of the platforms. Devices without a compiler are left
// out. Returns kNotFound if there are none.
Result<std::vector<FoundDevice>> find_devices(const Api& api);

}  // namespace tensorsmith::runtime::opencl
