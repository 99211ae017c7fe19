// Names of a GPU of this machine: "cuda", "cuda:1", "opencl", "opencl:0".
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

inline constexpr GpuApi kGpuApis[] = {GpuApi::kCuda, GpuApi::kOpenCl};

struct GpuPlace {
  GpuApi api = GpuApi::kCuda;
  int index = 0;  // number of the device within the interface
  friend bool operator==(const GpuPlace&, const GpuPlace&) = default;
};

// Parses a name as --device takes it. Returns nothing if it does not name a GPU of this machine,
// and kInvalidArgument if it begins like one but is malformed.
Result<std::optional<GpuPlace>> parse_gpu_place(std::string_view spec);
// Parses a name that must be a GPU's; any other name is kInvalidArgument, too.
Result<GpuPlace> require_gpu_place(std::string_view spec);

}  // namespace tensorsmith::runtime
