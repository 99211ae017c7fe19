#include "runtime/device/opencl_devices.h"

#include <algorithm>

#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime::opencl {
namespace {

// Returns the value, or 0 if the device does not know the query.
template <typename T>
T number(const Api& api, Device device, DeviceInfo what) {
  T value{};
  if (api.get_device_info(device, what, sizeof value, &value, nullptr) != kSuccess) return T{};
  return value;
}

std::string words(const Api& api, Device device, DeviceInfo what) {
  size_t bytes = 0;
  if (api.get_device_info(device, what, 0, nullptr, &bytes) != kSuccess) return "";
  std::string text(bytes, '\0');
  if (api.get_device_info(device, what, bytes, text.data(), nullptr) != kSuccess) return "";
  return text.c_str();
}

GpuProperties describe(const Api& api, Device device) {
  GpuProperties p;
  p.place.platform = &opencl_platform;
  p.name = words(api, device, kDeviceName);
  p.vendor = words(api, device, kDeviceVendor);
  p.driver = words(api, device, kDriverVersion);
  p.is_gpu = (number<uint64_t>(api, device, kDeviceType) & kTypeGpu) != 0;
  p.multiprocessors = number<uint32_t>(api, device, kMaxComputeUnits);
  p.clock_ghz = 1e-3 * number<uint32_t>(api, device, kMaxClockMhz);
  p.memory_bytes = number<uint64_t>(api, device, kMemoryBytes);
  p.max_buffer_bytes = number<uint64_t>(api, device, kMaxAllocation);
  p.l2_bytes = number<uint64_t>(api, device, kCacheBytes);
  p.cacheline_bytes = number<uint32_t>(api, device, kCachelineBytes);
  p.max_threads_per_block = number<size_t>(api, device, kMaxWorkGroupSize);
  size_t extents[8] = {};
  if (api.get_device_info(device, kMaxWorkItemSizes, sizeof extents, extents, nullptr) == kSuccess) {
    for (size_t i = 0; i < 3; ++i) p.max_block[i] = extents[i];
  }
  p.shared_memory_per_block = number<uint64_t>(api, device, kLocalMemoryBytes);
  p.warp_size = number<uint32_t>(api, device, kNvWarpSize);
  if (p.warp_size == 0) p.warp_size = number<uint32_t>(api, device, kAmdWavefrontWidth);
  p.registers_per_block = number<uint32_t>(api, device, kNvRegistersPerBlock);
  p.compute_major = number<uint32_t>(api, device, kNvComputeMajor);
  p.compute_minor = number<uint32_t>(api, device, kNvComputeMinor);
  const std::string extensions = words(api, device, kDeviceExtensions);
  p.has_f64 = extensions.find("cl_khr_fp64") != std::string::npos;
  p.has_f16 = extensions.find("cl_khr_fp16") != std::string::npos;
  return p;
}

void add_devices(const Api& api, Platform platform, std::vector<FoundDevice>& out) {
  uint32_t count = 0;
  if (api.get_devices(platform, kTypeAll, 0, nullptr, &count) != kSuccess || count == 0) return;
  std::vector<Device> devices(count);
  if (api.get_devices(platform, kTypeAll, count, devices.data(), nullptr) != kSuccess) return;
  for (const Device device : devices) {
    if (number<uint32_t>(api, device, kDeviceAvailable) == 0) continue;
    if (number<uint32_t>(api, device, kCompilerAvailable) == 0) continue;
    const int64_t alignment = number<uint32_t>(api, device, kMemoryBaseAlignBits) / 8;
    out.push_back(
        {device, describe(api, device), std::max<int64_t>(alignment, TENSORSMITH_BUFFER_ALIGNMENT)});
  }
}

}  // namespace

Result<std::vector<FoundDevice>> find_devices(const Api& api) {
  uint32_t count = 0;
  std::vector<FoundDevice> found;
  if (api.get_platforms(0, nullptr, &count) == kSuccess && count > 0) {
    std::vector<Platform> platforms(count);
    if (api.get_platforms(count, platforms.data(), nullptr) != kSuccess) platforms.clear();
    for (const Platform platform : platforms) add_devices(api, platform, found);
  }
  if (found.empty()) {
    return Error{ErrorCode::kNotFound, "OpenCL",
                 "there is no device; install a driver for one (Debian: pocl-opencl-icd for processors)"};
  }
  std::stable_partition(found.begin(), found.end(), [](const FoundDevice& d) { return d.properties.is_gpu; });
  for (size_t i = 0; i < found.size(); ++i) found[i].properties.place.index = i;
  return found;
}

}  // namespace tensorsmith::runtime::opencl
