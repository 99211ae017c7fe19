// A GPU as its space and estimate see it: limits that a legal block keeps, and rates. Figures of the device's
// file; where it leaves one out, that of a small device.
#pragma once

#include <cstdint>

#include "target/target.h"

namespace tensorsmith::space {

inline double as_double(int64_t n) { return static_cast<double>(n); }

// Bytes of one access of device memory.
inline constexpr double kSectorBytes = 32;
// The widest access of a thread.
inline constexpr int64_t kMaxVectorBytes = 16;
// Of a thread: addresses and counters.
inline constexpr double kLeastRegisters = 24;
// Of a warp, on any device, and of one access of device memory.
inline constexpr int64_t kMostLanes = 64, kAccessLanes = 32;
inline constexpr double kLineBytes = 128;
// Of shared memory: neighbouring words lie in neighbouring banks.
inline constexpr int64_t kBanks = 32, kBankBytes = 4;

struct GpuMachine {
  // Of a block.
  int64_t warp = 32;  // threads that run in step
  int64_t max_threads = 256;
  int64_t max_vthreads = 8;
  int64_t shared_bytes = 32 << 10;
  int64_t registers_per_thread = 64, registers_per_block = 16384;
  // Of a multiprocessor, which resident blocks share.
  double cores = 1;
  double core_threads = 1024, core_blocks = 16, core_shared_bytes = 32 << 10, core_registers = 16384;
  double lanes = 64;   // FMAs a cycle
  int capability = 0;  // of NVIDIA's GPUs (sched/tensor_cores.h), 0: no tensor cores
  double seconds_per_cycle = 1e-9;
  // Of the device.
  double memory_bytes_per_second = 100e9, l2_bytes = 1 << 20, l1_bytes = 16 << 10;
  double launch_seconds = 5e-6;

  static GpuMachine of(const target::Device& device);
  // That a thread of a block can have.
  int64_t register_limit(int64_t threads) const;
  double warps(int64_t threads) const { return static_cast<double>((threads + warp - 1) / warp); }
};

}  // namespace tensorsmith::space
