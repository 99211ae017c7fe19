#include "runtime/device/gpu_platform.h"

#include <algorithm>
#include <charconv>

namespace tensorsmith::runtime {

bool GpuPlatform::runs(std::string_view arch) const {
  return std::find(archs.begin(), archs.end(), arch) != archs.end();
}

std::span<const GpuPlatform* const> gpu_platforms() {
  static constexpr const GpuPlatform* kAll[] = {&cuda_platform, &opencl_platform};
  return kAll;
}

const GpuPlatform* platform_of(std::string_view arch) {
  for (const GpuPlatform* platform : gpu_platforms()) {
    if (platform->runs(arch)) return platform;
  }
  return nullptr;
}

std::string gpu_names(std::string_view suffix, std::string_view separator) {
  std::string names;
  for (const GpuPlatform* platform : gpu_platforms()) {
    if (!names.empty()) names += separator;
    names.append(platform->name).append(suffix);
  }
  return names;
}

std::string to_string(const GpuPlace& place) {
  return std::string(place.platform->name) + ":" + std::to_string(place.index);
}

Result<std::optional<GpuPlace>> parse_gpu_place(std::string_view spec) {
  const size_t colon = spec.find(':');
  for (const GpuPlatform* platform : gpu_platforms()) {
    if (spec.substr(0, colon) != platform->name) continue;
    if (colon == std::string_view::npos) return std::optional(GpuPlace{platform, 0});
    const std::string_view number = spec.substr(colon + 1);
    int index = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error == std::errc() && end == number.data() + number.size() && index >= 0)
      return std::optional(GpuPlace{platform, index});
    return Error{ErrorCode::kInvalidArgument, "device '" + std::string(spec) + "'",
                 "write it as " + std::string(platform->name) +
                     ":N, where N is the number of the device, counted from 0"};
  }
  return std::optional<GpuPlace>();
}

Result<GpuPlace> require_gpu_place(std::string_view spec) {
  TS_ASSIGN_OR_RETURN(const auto place, parse_gpu_place(spec));
  if (place) return *place;
  return Error{ErrorCode::kInvalidArgument, "device '" + std::string(spec) + "'",
               "is not a GPU of this machine; name one as " + gpu_names("[:N]", " or ") +
                   ", or leave the device out for a model that was compiled for CPUs"};
}

}  // namespace tensorsmith::runtime
