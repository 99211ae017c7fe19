// A GPU as the search space and the estimate see it: the limits of a legal block, and rates. The
// values come from the device file; those that it leaves out are those of a small device.
#pragma once

#include <cstdint>

#include "target/target.h"

namespace tensorsmith::space {

inline double as_double(int64_t n) { return static_cast<double>(n); }

// Bytes of one sector, the unit of access to device memory.
inline constexpr double kSectorBytes = 32;
// Bytes of the widest access of a thread.
inline constexpr int64_t kMaxVectorBytes = 16;
// Fewest registers that a thread uses, for addresses and counters.
inline constexpr double kLeastRegisters = 24;
// Most lanes of a warp on any device, and the lanes of one access to device memory.
inline constexpr int64_t kMostLanes = 64, kAccessLanes = 32;
inline constexpr double kLineBytes = 128;
// Banks of shared memory; adjacent words are in adjacent banks.
inline constexpr int64_t kBanks = 32, kBankBytes = 4;

struct GpuMachine {
  // Limits of a thread block.
  int64_t warp = 32;  // threads that execute in lockstep
  int64_t max_threads = 256;
  int64_t max_vthreads = 8;
  int64_t shared_bytes = 32 << 10;
  int64_t registers_per_thread = 64, registers_per_block = 16384;
  // Limits of a multiprocessor, which its resident blocks share.
  double cores = 1;
  double core_threads = 1024, core_blocks = 16, core_shared_bytes = 32 << 10, core_registers = 16384;
  double lanes = 64;   // FMAs per cycle
  int capability = 0;  // compute capability of NVIDIA's GPUs (sched/tensor_cores.h); 0: no tensor cores
  double seconds_per_cycle = 1e-9;
  // Rates and sizes of the whole device.
  double memory_bytes_per_second = 100e9, l2_bytes = 1 << 20, l1_bytes = 16 << 10;
  double launch_seconds = 5e-6;

  static GpuMachine of(const target::Device& device);
  // Returns the most registers that a thread can have in a block of `threads` threads.
  int64_t register_limit(int64_t threads) const;
  double warps(int64_t threads) const { return static_cast<double>((threads + warp - 1) / warp); }
};

}  // namespace tensorsmith::space
