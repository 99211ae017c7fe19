// The figures of a device that estimates, features, cost models and reports calculate with: those of
// its file or of probing it, a default for each that is missing, and what follows from them. Each
// default and each rule is here once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

#include "target/target.h"

namespace tensorsmith::target {

// Compute capabilities of NVIDIA's GPUs from which on their rates or instructions differ.
inline constexpr int kMaxwell = 50, kTuring = 75, kAmpere = 80, kHopper = 90;
// Returns the compute capability, 80 for an A100; 0 for devices that are no GPUs of NVIDIA.
int compute_capability(const Device& device);

// A CPU. All figures are positive except for l3_bytes, which is 0 if there is no such cache.
struct CpuMachine {
  explicit CpuMachine(const Device& device);

  double cores = 1;
  double clock_hz = 0;
  int64_t vector_bytes = 4;
  int registers = 8;         // vector registers
  double fma_per_cycle = 1;  // vector FMAs that a core starts per cycle
  // Vector products that a core accumulates per cycle; more than fma_per_cycle on some cores without
  // FMA (micro_architecture.h).
  double products_per_cycle = 1;
  // Instructions of one product that is accumulated, and of broadcasting an element besides its
  // load. There are more of them without FMA, and without AVX, whose instructions do not overwrite
  // an operand.
  double product_instructions = 1, broadcast_instructions = 0;
  CoreRates rates;                    // none is 0
  double l1_bytes = 0, l2_bytes = 0;  // of one core
  double l3_bytes = 0;                // shared by all cores
  double line_bytes = 64;
  double bytes_per_second = 0;  // memory bandwidth of all cores
  double flops_per_second = 0;  // f32 peak of the vector units of all cores

  double seconds_per_cycle() const { return 1 / clock_hz; }
  // f32 elements of a vector register.
  double lanes() const { return vector_bytes / 4; }
  // f32 elements of one load or of one half of an FMA unit. A core that starts one FMA of its widest
  // vectors per cycle processes them in two halves, also on the path from its caches.
  double port_lanes() const { return fma_per_cycle < 2 && lanes() > 8 ? lanes() / 2 : lanes(); }
  // Products of vectors with `used` f32 elements that a core accumulates per cycle.
  double products(double used) const {
    return used <= port_lanes() ? products_per_cycle * lanes() / port_lanes() : products_per_cycle;
  }
  // Capacity of the last level of cache.
  double last_cache_bytes() const { return std::max(l3_bytes, l2_bytes); }
  // Part of L3 that one core has if all cores use it; without L3, that of L2.
  double l3_bytes_per_core() const { return l3_bytes > 0 ? std::floor(l3_bytes / cores) : l2_bytes; }
  double memory_bytes_per_cycle() const { return bytes_per_second / clock_hz; }
  double fork_seconds() const { return 1e-6 * rates.parallel_overhead_us; }
};

// A GPU. A default is the figure of a small device, so that a legal block stays legal.
struct GpuMachine {
  explicit GpuMachine(const Device& device);

  // Limits of a block.
  int64_t warp = 32;  // threads that execute in lockstep
  int64_t max_threads = 256;
  int64_t max_vthreads = 8;
  int64_t shared_bytes = 32 << 10;
  int64_t registers_per_thread = 64, registers_per_block = 16384;
  // A multiprocessor, which resident blocks share.
  double cores = 1;  // multiprocessors
  double core_threads = 1024, core_blocks = 32, core_shared_bytes = 32 << 10, core_registers = 16384;
  double lanes = 64;   // f32 FMAs per cycle
  int capability = 0;  // compute_capability()
  bool amd = false;
  // The device.
  double clock_hz = 0;
  double bytes_per_second = 0;  // memory bandwidth
  double flops_per_second = 0;  // f32 peak
  double l2_bytes = 1 << 20, l1_bytes = 16 << 10;
  double launch_seconds = 5e-6;
  // Cycles between the starts of two blocks of a kernel. Elementwise kernels of many small blocks run at
  // this rate, regardless of their number of threads. It was measured as 1.0 on an A100 and an RTX 3080,
  // 2.4 on a V100, 3.0 on a K80 and 4.0 on an MI50.
  double block_start_cycles = 3;

  double seconds_per_cycle() const { return 1 / clock_hz; }
  double warps(int64_t threads) const { return (threads + warp - 1) / warp; }
  // Returns the most registers that each thread of a block can use.
  int64_t register_limit(int64_t threads) const;
  // Returns how many blocks a multiprocessor can hold, at least 1, if a block has these threads (in
  // whole warps), bytes of shared memory and registers of each thread.
  double resident_blocks(double threads, double shared_bytes, double registers) const;
  double resident_blocks(double threads) const;  // limited by threads and blocks only

  // Rates and latencies of a multiprocessor, by generation. They are round numbers close to those of
  // microbenchmarks (for example, shared memory of Turing has a latency of 23 cycles) and were not
  // looked up for each device. A model that fits a factor to such a rate corrects the error that all
  // devices have in common.
  double sector_bytes() const { return amd ? 64 : 32; }  // smallest transfer from memory and L2
  double schedulers() const { return 4; }
  // Lanes whose FMAs a multiprocessor can start per cycle. Kepler's four schedulers issue a second
  // instruction of a warp only if it does not depend on the first, so they sustain one FMA of 32
  // lanes each.
  double fma_lanes() const { return std::min(lanes, is_kepler() ? schedulers() * 32 : 1e9); }
  // Lanes that receive a word from shared memory per cycle. Turing's load and store units are half
  // of Volta's.
  double shared_lanes() const { return capability == kTuring ? 16 : 32; }
  double l2_bytes_per_second() const { return 32 * cores * clock_hz; }  // of all multiprocessors
  double shared_latency() const { return (amd ? 64 : is_kepler() ? 40 : 24) * seconds_per_cycle(); }
  double memory_latency() const { return (amd ? 800 : 440) * seconds_per_cycle(); }

  // Registers are allocated to a thread in units of this.
  static constexpr int64_t kRegisterUnit = 8;
  // The most threads of a warp on any device.
  static constexpr int64_t kMostLanes = 64;

 private:
  bool is_kepler() const { return capability > 0 && capability < kMaxwell; }
};

using Machine = std::variant<CpuMachine, GpuMachine>;
Machine machine_of(const Device& device);

}  // namespace tensorsmith::target
