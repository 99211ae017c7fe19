#include "runtime/device/cuda_devices.h"

namespace tensorsmith::runtime::cuda {
namespace {

// NVIDIA's devices transfer 128 bytes between their caches.
constexpr int kCachelineBytes = 128;
constexpr int kFirstWithTensorMaps = 9;  // major compute capability of Hopper

int attribute(const Api& api, Device device, DeviceAttribute what) {
  int value = 0;
  return api.get_device_attribute(&value, what, device) == kSuccess ? value : 0;
}

std::string version_text(int version) {  // 12080 -> "12.8"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void set_limits(const Api& api, Device device, GpuProperties& p) {
  p.warp_size = attribute(api, device, kWarpSize);
  p.max_threads_per_block = attribute(api, device, kMaxThreadsPerBlock);
  p.max_threads_per_core = attribute(api, device, kMaxThreadsPerMultiprocessor);
  p.max_blocks_per_core = attribute(api, device, kMaxBlocksPerMultiprocessor);
  p.max_block = {attribute(api, device, kMaxBlockX), attribute(api, device, kMaxBlockY),
                 attribute(api, device, kMaxBlockZ)};
  p.max_grid = {attribute(api, device, kMaxGridX), attribute(api, device, kMaxGridY),
                attribute(api, device, kMaxGridZ)};
  p.shared_memory_per_block = attribute(api, device, kSharedPerBlockOptin);
  p.shared_memory_per_core = attribute(api, device, kSharedPerMultiprocessor);
  p.registers_per_block = attribute(api, device, kRegistersPerBlock);
  p.registers_per_core = attribute(api, device, kRegistersPerMultiprocessor);
}

}  // namespace

Result<GpuProperties> describe(const Api& api, int index) {
  int count = 0, version = 0;
  Device device = 0;
  if (const int code = api.get_device_count(&count); code != kSuccess)
    return Error{ErrorCode::kIo, "CUDA", "cannot count the devices: " + api.error_text(code)};
  if (index < 0 || index >= count || api.get_device(&device, index) != kSuccess) {
    return Error{ErrorCode::kNotFound, to_string(GpuPlace{&cuda_platform, index}),
                 "no such device; the driver shows " + std::to_string(count) + ", numbered from 0"};
  }
  GpuProperties p;
  p.place = {&cuda_platform, index};
  char name[256] = "";
  if (api.get_device_name(name, sizeof name, device) == kSuccess) p.name = name;
  p.vendor = "NVIDIA";
  if (api.get_driver_version(&version) == kSuccess) p.driver = version_text(version);
  p.compute_major = attribute(api, device, kComputeMajor);
  p.compute_minor = attribute(api, device, kComputeMinor);
  p.multiprocessors = attribute(api, device, kMultiprocessors);
  p.clock_ghz = 1e-6 * attribute(api, device, kClockKhz);
  p.memory_clock_ghz = 1e-6 * attribute(api, device, kMemoryClockKhz);
  p.memory_bus_bits = attribute(api, device, kMemoryBusBits);
  p.memory_bandwidth_gbs = 2 * p.memory_clock_ghz * p.memory_bus_bits / 8;
  size_t bytes = 0;
  if (api.get_total_memory(&bytes, device) == kSuccess) p.memory_bytes = bytes;
  p.max_buffer_bytes = p.memory_bytes;
  p.l2_bytes = attribute(api, device, kL2Bytes);
  p.cacheline_bytes = kCachelineBytes;
  set_limits(api, device, p);
  p.has_f64 = true;
  p.has_f16 = p.compute_major >= 6 || (p.compute_major == 5 && p.compute_minor >= 3);
  p.has_tensor_maps = p.compute_major >= kFirstWithTensorMaps;
  return p;
}

}  // namespace tensorsmith::runtime::cuda
