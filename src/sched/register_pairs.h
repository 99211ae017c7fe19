// Sums of a thread in pairs of registers: constants that code generation
// (codegen/gpu/register_tile.h) and the GPU estimate share.
#pragma once

#include <cstdint>

namespace tensorsmith::sched {

// With fewer columns, a factor of a row is not reused for long enough.
inline constexpr int64_t kFewestPairColumns = 4;
// Reduction steps of a group if the schedule does not determine them: the elements of a vector of
// f32.
inline constexpr int64_t kPairSteps = 4;

}  // namespace tensorsmith::sched
