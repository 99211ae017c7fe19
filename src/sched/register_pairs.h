// Sums of a thread in pairs of registers: what code generation (codegen/gpu/register_tile.h) and the estimate of GPUs both go by.
#pragma once

#include <cstdint>

namespace tensorsmith::sched {

// With fewer columns a factor of a row is held for too short.
inline constexpr int64_t kFewestPairColumns = 4;
// Steps of the reduction in a group where the schedule does not say: as many as a vector of f32 has elements.
inline constexpr int64_t kPairSteps = 4;

}  // namespace tensorsmith::sched
