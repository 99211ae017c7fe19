// What only a measurement tells of a device.
#pragma once

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

struct GpuMeasurements {
  double memory_bandwidth_gbs = 0;  // 10^9 bytes a second, read and written by a kernel that copies
  double launch_overhead_us = 0;    // from one short kernel to the next that depends on it, in one sequence
};

// Takes a few tenths of a second on a GPU. Errors as of Gpu.
Result<GpuMeasurements> measure_gpu(Gpu& gpu);

}  // namespace tensorsmith::runtime
