// Queries NVIDIA's driver for its devices.
#pragma once

#include "runtime/device/cuda_api.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::runtime::cuda {

// Returns kNotFound, with the number of devices, if there is no such device.
Result<GpuProperties> describe(const Api& api, int index);

}  // namespace tensorsmith::runtime::cuda
