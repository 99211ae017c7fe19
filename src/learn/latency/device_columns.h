// The attributes of a device as numeric columns, for models that learn from several devices.
#pragma once

#include <array>

#include "feature/schema.h"
#include "target/target.h"

namespace tensorsmith::learn {

// The value 0 stands for "none" or "not known".
inline constexpr auto kDeviceSchema = std::to_array<feature::Column>({
    feature::Column::amount("device.cores", "cores", "CPU cores or GPU multiprocessors."),
    feature::Column::amount("device.clock_mhz", "MHz", "Clock frequency under vector load."),
    feature::Column::amount("device.peak_f32_gflops", "10^9 operations/second",
                            "Peak rate of 32-bit floating-point operations on all cores."),
    feature::Column::amount("device.memory_bandwidth_gbs", "10^9 bytes/second", "Memory bandwidth."),
    feature::Column::amount("device.vector_bytes", "bytes",
                            "Bytes of the widest vector register; on GPUs, of a lane."),
    feature::Column::amount(
        "device.fma_per_cycle", "instructions",
        "Vector FMA instructions per cycle and core; on GPUs, lanes of a multiprocessor."),
    feature::Column::amount("device.l1_kib", "KiB", "Size of a core's L1 data cache."),
    feature::Column::amount("device.l2_kib", "KiB", "Size of a core's L2 cache; on GPUs, of the whole L2."),
    feature::Column::amount("device.l3_kib", "KiB", "Size of the L3 cache, shared by the cores."),
    feature::Column::amount("device.cacheline_bytes", "bytes", "Size of a cache line."),
    feature::Column::amount("device.launch_overhead_us", "microseconds",
                            "Least time between two dependent kernels."),
    feature::Column::amount("device.warp_size", "threads", "Threads of a warp."),
    feature::Column::amount("device.max_threads_per_core", "threads",
                            "Threads that a multiprocessor can hold."),
    feature::Column::amount("device.shared_kib_per_core", "KiB", "Size of a multiprocessor's shared memory."),
    feature::Column::amount("device.registers_per_core", "registers",
                            "Number of a multiprocessor's 32-bit registers."),
    feature::Column::flag("device.gpu", "1 for a GPU."),
});

inline constexpr int kDeviceColumns = kDeviceSchema.size();
const feature::Schema& device_schema();
// Returns the device's columns in the order of the schema; all values are finite.
std::array<float, kDeviceColumns> device_columns(const target::Device& device);

}  // namespace tensorsmith::learn
