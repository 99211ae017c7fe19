#include "runtime/device/gpu_place.h"

#include <charconv>
#include <string>

namespace tensorsmith::runtime {

Result<std::optional<GpuPlace>> parse_gpu_place(std::string_view spec) {
  const size_t colon = spec.find(':');
  for (const GpuApi api : kGpuApis) {
    if (spec.substr(0, colon) != to_string(api)) continue;
    if (colon == std::string_view::npos) return std::optional(GpuPlace{api, 0});
    const std::string_view number = spec.substr(colon + 1);
    int index = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error == std::errc() && end == number.data() + number.size() && index >= 0)
      return std::optional(GpuPlace{api, index});
    return Error{ErrorCode::kInvalidArgument, "device '" + std::string(spec) + "'",
                 "write it as " + std::string(to_string(api)) +
                     ":N, where N is the number of the device, counted from 0"};
  }
  return std::optional<GpuPlace>();
}

Result<GpuPlace> require_gpu_place(std::string_view spec) {
  TS_ASSIGN_OR_RETURN(const auto place, parse_gpu_place(spec));
  if (place) return *place;
  return Error{ErrorCode::kInvalidArgument, "device '" + std::string(spec) + "'",
               "is not a GPU of this machine; name one as cuda[:N] or opencl[:N], or leave the device out "
               "for a model that was compiled for CPUs"};
}

}  // namespace tensorsmith::runtime
