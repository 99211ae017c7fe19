// The platforms through which programs use GPUs, one row each, and the names of the GPUs of this
// machine: "cuda", "cuda:1", "opencl:0".
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::runtime {

class Gpu;
struct GpuProperties;

struct GpuPlatform {
  std::string_view name;   // prefix of the names of its devices: "cuda"
  std::string_view title;  // name for people: "CUDA"
  // Architectures of the devices that run its modules (target::Device::arch). Devices that the platform lists
  // and models that are compiled for it have the first architecture.
  std::span<const std::string_view> archs;
  // List all devices and open one of them. `library` is the driver's file; if it is empty, the loader's
  // default is used. Both return kNotFound, with a hint what to install, if no library or device is found.
  Result<std::vector<GpuProperties>> (*list)(const std::string& library);
  Result<std::unique_ptr<Gpu>> (*open)(int index, const std::string& library);
  std::string_view copy_module;    // kernel `copy` of device/probe.cc: each thread copies 16 bytes
  std::string_view canary_module;  // kernel `canary` of device/canary.cc: out[i] = 3 * i + 1
  bool may_be_host = false;        // a device may be this machine's CPU
  bool has_nsight_compute = false;

  bool runs(std::string_view arch) const;
};

// These are defined in cuda.cc and opencl.cc.
extern const GpuPlatform cuda_platform;
extern const GpuPlatform opencl_platform;

std::span<const GpuPlatform* const> gpu_platforms();
// Returns the platform that runs the architecture, or null for an architecture of CPUs or an unknown one.
const GpuPlatform* platform_of(std::string_view arch);
// Lists the names of all platforms: gpu_names("[:N]", " or ") is "cuda[:N] or opencl[:N]".
std::string gpu_names(std::string_view suffix, std::string_view separator);

struct GpuPlace {
  const GpuPlatform* platform = nullptr;
  int index = 0;  // number of the device within the platform
  friend bool operator==(const GpuPlace&, const GpuPlace&) = default;
};

std::string to_string(const GpuPlace& place);  // "cuda:1"
// Parses a name as --device takes it. Returns nothing if the name is not that of a platform's device, or
// kInvalidArgument if it begins with a platform's name but is malformed.
Result<std::optional<GpuPlace>> parse_gpu_place(std::string_view spec);
// Parses a name that must be that of a platform's device. Any other name is kInvalidArgument, too.
Result<GpuPlace> require_gpu_place(std::string_view spec);

}  // namespace tensorsmith::runtime
