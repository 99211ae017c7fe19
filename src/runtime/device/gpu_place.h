// Which GPU of this machine: "cuda", "cuda:1", "opencl", "opencl:0".
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {

inline constexpr GpuApi kGpuApis[] = {GpuApi::kCuda, GpuApi::kOpenCl};

struct GpuPlace {
  GpuApi api = GpuApi::kCuda;
  int index = 0;  // among the devices of the interface
  friend bool operator==(const GpuPlace&, const GpuPlace&) = default;
};

// Of a name as --device takes it. Nothing: it names no GPU of a machine. kInvalidArgument: it begins as one and goes on
// wrongly.
Result<std::optional<GpuPlace>> parse_gpu_place(std::string_view spec);
// The same where only a GPU will do: another name is kInvalidArgument too.
Result<GpuPlace> require_gpu_place(std::string_view spec);

}  // namespace tensorsmith::runtime
