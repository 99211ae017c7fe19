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
  std::string_view name;   // begins the names of its devices
  std::string_view title;  // for people: "CUDA"
  // Architectures of the devices that run its modules (target::Device::arch). The first is that of
  // its own devices and of compiled models.
  std::span<const std::string_view> archs;
  // `library` is the driver's file; empty: the loader's default. Return kNotFound, with a hint what
  // to install, if there is no such library or no device.
  Result<std::vector<GpuProperties>> (*list)(const std::string& library);
  Result<std::unique_ptr<Gpu>> (*open)(int index, const std::string& library);
  std::string_view copy_module;    // kernel `copy` of device/probe.cc: each thread copies 16 bytes
  std::string_view canary_module;  // kernel `canary` of device/canary.cc: out[i] = 3 * i + 1
  bool may_be_host = false;        // a device may be this machine's CPU
  bool has_nsight_compute = false;

  bool runs(std::string_view arch) const;
};

// cuda.cc, opencl.cc
extern const GpuPlatform cuda_platform;
extern const GpuPlatform opencl_platform;

std::span<const GpuPlatform* const> gpu_platforms();
// Returns null for an architecture of CPUs and for one that no platform runs.
const GpuPlatform* platform_of(std::string_view arch);
// Lists the names of all platforms: gpu_names("[:N]", " or ") is "cuda[:N] or opencl[:N]".
std::string gpu_names(std::string_view suffix, std::string_view separator);

struct GpuPlace {
  const GpuPlatform* platform = nullptr;
  int index = 0;  // number of the device within the platform
  friend bool operator==(const GpuPlace&, const GpuPlace&) = default;
};

std::string to_string(const GpuPlace& place);  // "cuda:1"
// Parses a name as --device takes it. Returns nothing if it does not name a GPU of this machine,
// and kInvalidArgument if it begins like one but is malformed.
Result<std::optional<GpuPlace>> parse_gpu_place(std::string_view spec);
// Parses a name that must be a GPU's; any other name is kInvalidArgument, too.
Result<GpuPlace> require_gpu_place(std::string_view spec);

}  // namespace tensorsmith::runtime
