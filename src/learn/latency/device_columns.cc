#include "learn/latency/device_columns.h"

#include <cmath>

namespace tensorsmith::learn {

namespace {

constexpr double kib(int64_t bytes) { return bytes / 1024.0; }

}  // namespace

const feature::Schema& device_schema() {
  static const feature::Schema kSchema = {"device", "A device", kDeviceSchema};
  return kSchema;
}

std::array<float, kDeviceColumns> device_columns(const target::Device& device) {
  const target::GpuFigures& gpu = target::gpu_or_no_limits(device);
  feature::Quantities<kDeviceSchema> figures;
  figures.set("device.cores", device.compute_units());
  figures.set("device.clock_mhz", device.clock_ghz * 1e3);
  figures.set("device.peak_f32_gflops", device.peak_f32_gflops);
  figures.set("device.memory_bandwidth_gbs", device.memory_bandwidth_gbs);
  figures.set("device.vector_bytes", device.register_bytes());
  figures.set("device.fma_per_cycle", device.fma_per_cycle());
  figures.set("device.l1_kib", kib(device.l1_bytes));
  figures.set("device.l2_kib", kib(device.l2_bytes));
  figures.set("device.l3_kib", kib(device.l3_bytes));
  figures.set("device.cacheline_bytes", device.cacheline_bytes);
  figures.set("device.launch_overhead_us", device.launch_overhead_us);
  figures.set("device.warp_size", gpu.warp_size);
  figures.set("device.max_threads_per_core", gpu.max_threads_per_core);
  figures.set("device.shared_kib_per_core", kib(gpu.shared_memory_per_core));
  figures.set("device.registers_per_core", gpu.registers_per_core);
  figures.set("device.gpu", device.kind() == target::DeviceKind::kGpu ? 1 : 0);
  std::array<float, kDeviceColumns> out{};
  for (size_t c = 0; c < out.size(); ++c) {
    const double x = figures.values()[c];
    out[c] = static_cast<float>(kDeviceSchema[c].scale == feature::Scale::kPlain ? x : std::log2(x + 1));
  }
  return out;
}

}  // namespace tensorsmith::learn
