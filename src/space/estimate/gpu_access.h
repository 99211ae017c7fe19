// What accesses of device memory and of shared memory move, warp by warp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "space/estimate/gpu_machine.h"
#include "space/plan_context.h"

namespace tensorsmith::space {

struct GpuAccess {
  double instructions = 0;  // of warps
  double sectors = 0;       // of kSectorBytes that the lanes touch, instruction by instruction
  double lines = 0;         // of kLineBytes, each once

  void add(const GpuAccess& other, double times = 1);
};

// Lanes side by side in memory, `vector` elements each.
GpuAccess contiguous_access(int64_t warp, int64_t vector, int element_bytes);

// The lanes of a warp compute `vector` neighbours each of a stage's outputs, in row-major order.
GpuAccess warp_access(const PlanContext& context, const StageInfo& reader, const Read& read, int64_t warp,
                      int64_t vector);

// The lanes lie `stride` elements apart.
GpuAccess strided_access(int64_t warp, int64_t stride, int element_bytes);

// The threads of a block copy elements of which `run` lie side by side each.
GpuAccess copy_access(const GpuMachine& machine, int64_t threads, double elements, double run, int64_t vector,
                      int element_bytes);

// The first element that each lane of a warp accesses.
struct WarpAddresses {
  std::array<int64_t, kMostLanes> at;
  size_t count = 0;
};

// Cycles of an access to shared memory, `vector` elements a lane: different words in one bank wait for each
// other.
double bank_cycles(const WarpAddresses& lanes, int64_t vector, int element_bytes);
// Sectors of device memory that an access touches.
double distinct_sectors(const WarpAddresses& lanes, int64_t vector, int element_bytes);

}  // namespace tensorsmith::space
