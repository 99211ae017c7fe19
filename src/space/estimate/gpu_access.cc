#include "space/estimate/gpu_access.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "space/estimate/gpu_kernel.h"

namespace tensorsmith::space {

namespace {

// The places that lanes access, in units of `bytes`, each once.
struct Places {
  std::array<int64_t, 4 * WarpAddresses::kMaxLanes> at;
  size_t count = 0;

  Places(const WarpAddresses& lanes, int64_t vector, int element_bytes, int64_t bytes) {
    for (size_t i = 0; i < lanes.count; ++i) {
      const int64_t first = lanes.at[i] * element_bytes / bytes;
      const int64_t last = ((lanes.at[i] + vector) * element_bytes - 1) / bytes;
      for (int64_t p = first; p <= last && count < at.size(); ++p) at[count++] = p;
    }
    const auto end = at.begin() + static_cast<std::ptrdiff_t>(count);
    std::sort(at.begin(), end);
    count = static_cast<size_t>(std::unique(at.begin(), end) - at.begin());
  }
};

}  // namespace

double bank_cycles(const WarpAddresses& lanes, int64_t vector, int element_bytes) {
  const Places words(lanes, vector, element_bytes, kBankBytes);
  std::array<int, kBanks> waiting{};
  for (size_t i = 0; i < words.count; ++i) ++waiting[static_cast<size_t>(words.at[i] & (kBanks - 1))];
  return *std::max_element(waiting.begin(), waiting.end());
}

double distinct_sectors(const WarpAddresses& lanes, int64_t vector, int element_bytes) {
  return static_cast<double>(Places(lanes, vector, element_bytes, static_cast<int64_t>(kSectorBytes)).count);
}

GpuAccess contiguous_access(int64_t warp, int64_t vector, int element_bytes) {
  return {1, std::ceil(static_cast<double>(warp * vector * element_bytes) / kSectorBytes)};
}

GpuAccess strided_access(int64_t warp, int64_t stride, int element_bytes) {
  const double bytes = static_cast<double>(std::abs(stride) * element_bytes);
  const auto lanes = static_cast<double>(warp);
  return {1, std::ceil(std::max(1.0, lanes * std::min(1.0, bytes / kSectorBytes)))};
}

GpuAccess warp_access(const PlanContext& context, const StageInfo& reader, const Read& read, int64_t warp,
                      int64_t vector) {
  const int bytes = context.stage(read.producer).element_bytes;
  const auto v = static_cast<double>(vector);
  if (read.strides.empty()) return {v, v * static_cast<double>(warp)};
  const AxisId last = reader.contiguous_axis;
  if (!last.valid()) return {1, 1};
  const int64_t stride = std::abs(read.stride(last));
  if (stride == 1 && !read.guarded) {
    // Rows that are shorter than the warp's piece begin elsewhere.
    const auto rows = std::max(
        1.0, std::ceil(static_cast<double>(warp * vector) / static_cast<double>(reader.extent(last))));
    GpuAccess access = contiguous_access(warp, vector, bytes);
    access.sectors += rows - 1;
    return access;
  }
  GpuAccess access = strided_access(warp * vector, stride, bytes);
  access.instructions = v;
  // Neighbours of a lane lie in sectors that it has touched.
  return access;
}

}  // namespace tensorsmith::space
