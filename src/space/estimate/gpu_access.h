// What a warp's access of device memory moves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "space/estimate/gpu_machine.h"
#include "space/plan_context.h"

namespace tensorsmith::space {

struct GpuAccess {
  double instructions = 1;  // of the warp
  double sectors = 0;       // of kSectorBytes that the lanes touch together
};

// Lanes side by side in memory, `vector` elements each.
GpuAccess contiguous_access(int64_t warp, int64_t vector, int element_bytes);

// The lanes of a warp compute `vector` neighbours each of a stage's outputs, in row-major order.
GpuAccess warp_access(const PlanContext& context, const StageInfo& reader, const Read& read, int64_t warp,
                      int64_t vector);

// The lanes lie `stride` elements apart.
GpuAccess strided_access(int64_t warp, int64_t stride, int element_bytes);

// The first element that each lane of a warp accesses.
struct WarpAddresses {
  static constexpr int64_t kMaxLanes = kMostLanes;
  std::array<int64_t, kMaxLanes> at;
  size_t count = 0;
};

// Cycles of an access to shared memory, `vector` elements a lane: different words in one bank wait for each
// other.
double bank_cycles(const WarpAddresses& lanes, int64_t vector, int element_bytes);
// Sectors of device memory that an access touches.
double distinct_sectors(const WarpAddresses& lanes, int64_t vector, int element_bytes);

}  // namespace tensorsmith::space
