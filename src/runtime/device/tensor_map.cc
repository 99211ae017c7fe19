// Rules for maps of the tensor memory accelerator (CUDA driver API, cuTensorMapEncodeTiled).
#include "runtime/launch.h"

namespace tensorsmith::runtime {

namespace {

constexpr size_t kMostDimensions = 5;
constexpr int64_t kMostExtent = int64_t{1} << 32, kMostStride = int64_t{1} << 40, kMostBox = 256;
constexpr int64_t kStrideUnit = 16;

}  // namespace

std::string broken_rule(const TensorMap& map) {
  const size_t dimensions = map.extents.size();
  if (dimensions < 1 || dimensions > kMostDimensions) return "a tensor map must have one to five dimensions";
  if (map.box.size() != dimensions || map.strides.size() + 1 != dimensions)
    return "the lists of a tensor map do not have one entry per dimension";
  if (map.element_bytes != 1 && map.element_bytes != 2)
    return "elements of a tensor map must have one or two bytes";
  if (map.swizzle_bytes != 32 && map.swizzle_bytes != 64 && map.swizzle_bytes != 128)
    return "the swizzle of a tensor map must be 32, 64 or 128 bytes";
  for (size_t d = 0; d < dimensions; ++d) {
    if (map.extents[d] < 1 || map.extents[d] > kMostExtent)
      return "an extent of a tensor map is out of range";
    if (map.box[d] < 1 || map.box[d] > kMostBox) return "a box must have 1 to 256 elements per dimension";
  }
  for (const int64_t stride : map.strides)
    if (stride <= 0 || stride >= kMostStride || stride % kStrideUnit != 0)
      return "strides of a tensor map must be multiples of 16 bytes";
  if (map.box.front() * map.element_bytes != map.swizzle_bytes)
    return "lines of a box must be as long as the swizzle";
  return "";
}

}  // namespace tensorsmith::runtime
