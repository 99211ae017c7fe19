// Accesses of warps to device memory and to shared memory: instructions, sectors, cache lines and
// bank conflicts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "space/estimate/gpu_units.h"
#include "space/plan_context.h"

namespace tensorsmith::space {

struct GpuAccess {
  double instructions = 0;  // executed by warps
  double sectors = 0;       // sectors of kSectorBytes that the lanes touch, summed over the instructions
  double lines = 0;         // cache lines of kLineBytes, each counted once

  void add(const GpuAccess& other, double times = 1);
};

// An access of one warp whose lanes are adjacent in memory, with `vector` elements each.
GpuAccess contiguous_access(int64_t warp, int64_t vector, int element_bytes);

// A read by a warp whose lanes each compute `vector` adjacent outputs of stage `reader`, in
// row-major order.
GpuAccess warp_access(const PlanContext& context, const StageInfo& reader, const Read& read, int64_t warp,
                      int64_t vector);

// An access of one warp whose lanes are `stride` elements apart.
GpuAccess strided_access(int64_t warp, int64_t stride, int element_bytes);

// A copy of `elements` by the threads of a block, in contiguous runs of `run` elements.
GpuAccess copy_access(const target::GpuMachine& machine, int64_t threads, double elements, double run,
                      int64_t vector, int element_bytes);

// The first element that each lane of a warp accesses.
struct WarpAddresses {
  std::array<int64_t, target::GpuMachine::kMostLanes> at;
  size_t count = 0;
};

// Returns the cycles of an access to shared memory with `vector` elements per lane. Accesses to
// different words in the same bank are serialized.
double bank_cycles(const WarpAddresses& lanes, int64_t vector, int element_bytes);
// Returns the number of sectors of device memory that an access touches.
double distinct_sectors(const WarpAddresses& lanes, int64_t vector, int element_bytes);

}  // namespace tensorsmith::space
