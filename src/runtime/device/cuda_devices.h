// What NVIDIA's driver says of its devices.
#pragma once

#include "runtime/device/cuda_api.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::runtime::cuda {

// kNotFound: no such device, with how many there are.
Result<GpuProperties> describe(const Api& api, int index);

}  // namespace tensorsmith::runtime::cuda
