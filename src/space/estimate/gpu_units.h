// Sizes that all GPUs share: the units in which threads access memory and registers.
#pragma once

#include <cstdint>

namespace tensorsmith::space {

inline double as_double(int64_t n) { return static_cast<double>(n); }

// Bytes of one sector, the unit of access to device memory.
inline constexpr double kSectorBytes = 32;
// Bytes of the widest access of a thread.
inline constexpr int64_t kMaxVectorBytes = 16;
// Fewest registers that a thread uses, for addresses and counters.
inline constexpr double kLeastRegisters = 24;
// Lanes of one access to device memory.
inline constexpr int64_t kAccessLanes = 32;
inline constexpr double kLineBytes = 128;
// Banks of shared memory; adjacent words are in adjacent banks.
inline constexpr int64_t kBanks = 32, kBankBytes = 4;

}  // namespace tensorsmith::space
