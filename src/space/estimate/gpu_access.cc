#include "space/estimate/gpu_access.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tensorsmith::space {

namespace {

// The distinct places that the lanes access, in units of `bytes`.
struct Places {
  std::array<int64_t, 4 * target::GpuMachine::kMostLanes> at;
  size_t count = 0;

  Places(const WarpAddresses& lanes, int64_t vector, int element_bytes, int64_t bytes) {
    for (size_t i = 0; i < lanes.count; ++i) {
      const int64_t first = lanes.at[i] * element_bytes / bytes;
      const int64_t last = ((lanes.at[i] + vector) * element_bytes - 1) / bytes;
      for (int64_t p = first; p <= last && count < at.size(); ++p) at[count++] = p;
    }
    const auto end = at.begin() + count;
    std::sort(at.begin(), end);
    count = std::unique(at.begin(), end) - at.begin();
  }
};

}  // namespace

void GpuAccess::add(const GpuAccess& other, double times) {
  instructions += times * other.instructions;
  sectors += times * other.sectors;
  lines += times * other.lines;
}

GpuAccess contiguous_access(int64_t warp, int64_t vector, int element_bytes) {
  const double bytes = warp * vector * element_bytes;
  return {1, std::ceil(bytes / kSectorBytes), std::ceil(bytes / kLineBytes)};
}

GpuAccess strided_access(int64_t warp, int64_t stride, int element_bytes) {
  const auto bytes = static_cast<double>(std::abs(stride) * element_bytes), lanes = static_cast<double>(warp);
  const auto touched = [&](double unit) { return std::max(1.0, lanes * std::min(1.0, bytes / unit)); };
  return {1, touched(kSectorBytes), touched(kLineBytes)};
}

GpuAccess warp_access(const PlanContext& context, const StageInfo& reader, const Read& read, int64_t warp,
                      int64_t vector) {
  const int bytes = context.stage(read.producer).element_bytes;
  const auto v = static_cast<double>(vector), lanes = static_cast<double>(warp);
  if (read.strides.empty()) return {v, v * lanes, v * lanes};
  const AxisId last = reader.contiguous_axis;
  if (!last.valid()) return {1, 1, 1};
  const int64_t stride = std::abs(read.stride(last));
  GpuAccess access;
  if (stride == 1 && !read.guarded) {
    access = contiguous_access(warp, vector, bytes);
  } else {
    access = strided_access(warp * vector, stride, bytes);
    access.instructions = v;
  }
  // Rows shorter than the piece of a warp add sectors and lines, since each row begins elsewhere.
  const double rows = std::ceil(v * lanes / reader.extent(last));
  access.sectors += rows - 1;
  access.lines += rows - 1;
  return access;
}

GpuAccess copy_access(const target::GpuMachine& m, int64_t threads, double elements, double run,
                      int64_t vector, int element_bytes) {
  const double v = vector;
  const double lanes = std::min({kAccessLanes, threads, m.warp});
  GpuAccess access;
  access.instructions = std::ceil(elements / v / threads) * m.warps(threads);
  access.sectors = access.instructions * std::min(lanes * std::max(1.0, v * element_bytes / kSectorBytes),
                                                  lanes * v * element_bytes / kSectorBytes + lanes / run);
  access.lines = elements / run * std::ceil(run * element_bytes / kLineBytes);
  return access;
}

double bank_cycles(const WarpAddresses& lanes, int64_t vector, int element_bytes) {
  const Places words(lanes, vector, element_bytes, kBankBytes);
  std::array<int, kBanks> waiting{};
  for (size_t i = 0; i < words.count; ++i) ++waiting[words.at[i] & (kBanks - 1)];
  return *std::max_element(waiting.begin(), waiting.end());
}

double distinct_sectors(const WarpAddresses& lanes, int64_t vector, int element_bytes) {
  return Places(lanes, vector, element_bytes, static_cast<int64_t>(kSectorBytes)).count;
}

}  // namespace tensorsmith::space
