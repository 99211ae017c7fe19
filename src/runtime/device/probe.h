// Measures properties of a device that its driver does not report.
#pragma once

#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

struct GpuMeasurements {
  double memory_bandwidth_gbs = 0;  // 10^9 bytes per second, read and written by a copying kernel
  double launch_overhead_us = 0;    // time between dependent short kernels of one sequence
};

// Takes a few tenths of a second on a GPU. Errors are those of Gpu.
Result<GpuMeasurements> measure_gpu(Gpu& gpu);

}  // namespace tensorsmith::runtime
