// What a device is, as data: never code per device. Used by the space (register and cache sizes shape the
// sampling), by code generation (features), by the cost models (device features) and by the records (device
// key). docs/devices.md documents the file format, which has the members' names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::target {

enum class DeviceKind : uint8_t { kCpu, kGpu };

// What a CPU's core sustains, 0 = not known (assumed.h). The choice among schedules and the summaries of our own programs ask for it.
struct CoreRates {
  double loads_per_cycle = 0;
  double issue_per_cycle = 0;  // instructions of all kinds
  double fma_latency = 0;      // cycles from a vector FMA to one that needs its result
  double dot2_latency = 0;     // the same of a product of bf16 pairs
  int reorder_buffer = 0;      // instructions
  double l2_bytes_per_cycle = 0, l3_bytes_per_cycle = 0;  // that come from there
  int l2_ways = 0;
  int64_t tlb_bytes = 0;            // of pages that the second level of the TLB holds
  double parallel_overhead_us = 0;  // starting and joining a loop on all cores
};

struct Device {
  std::string name;         // registry key: "xeon-8358", "v100", or "local"
  std::string description;  // for people
  DeviceKind kind = DeviceKind::kCpu;
  std::string arch;                   // "x86-64", "aarch64", "nvptx", "amdgcn"
  std::string cpu;                    // LLVM CPU name, e.g. "znver5"; empty = generic
  std::vector<std::string> features;  // LLVM feature strings that matter: "+avx512f", ...
  int cores = 1;                      // CPU cores or GPU multiprocessors that a program may use
  double clock_ghz = 0;               // sustained under vector load; what the peak is computed with
  double base_clock_ghz = 0;          // guaranteed by the vendor
  double boost_clock_ghz = 0;         // highest, of one core on CPUs
  int vector_bytes = 16;              // widest vector register used; GPUs: 4, a lane of one thread
  int vector_registers = 16;          // GPUs: 32-bit registers that one thread may use
  double fma_per_cycle = 1;           // vector FMA instructions issued a cycle and core; GPUs: lanes
  int64_t l1_bytes = 32 << 10;        // data, per core
  int64_t l2_bytes = 256 << 10;       // per core (GPU: whole)
  int64_t l3_bytes = 0;               // shared, 0 = none
  int cacheline_bytes = 64;
  CoreRates rates;                  // CPUs
  double memory_bandwidth_gbs = 0;  // 10^9 bytes a second, of all channels
  double memory_gb = 0;             // 2^30 bytes
  double peak_f32_gflops = 0;       // all cores, vector units only (no matrix units)
  double launch_overhead_us = 0;    // least time between two dependent kernels, 0 = not known
  double power_watts = 0;           // thermal design power, 0 = not known
  // GPU limits (0 on CPUs).
  int warp_size = 0;
  int max_threads_per_block = 0;
  int64_t shared_memory_per_block = 0;  // bytes, the most a kernel can ask for
  int64_t registers_per_block = 0;      // 32-bit
  int max_vthread_extent = 0;
  // What resident blocks share, per multiprocessor (0 on CPUs).
  int max_threads_per_core = 0;
  int max_blocks_per_core = 0;
  int64_t shared_memory_per_core = 0;  // bytes
  int64_t registers_per_core = 0;      // 32-bit
  std::vector<std::string> sources;    // where the figures come from

  // Hash of every attribute that can change a measurement; part of the record key.
  std::string key() const;
  bool has_feature(std::string_view feature) const;  // without the "+"
};

// Whether one instruction adds dot4 of two packed elements (ir::Intrinsic::kDot4) to each 32-bit lane of the widest
// vectors: AVX-512 VNNI, or AVX-VNNI up to 32 bytes.
bool has_dot4(const Device& device);
// The same of ir::Intrinsic::kDot2, and whether one instruction rounds such vectors to bf16: AVX-512 BF16.
bool has_dot2(const Device& device);
// Whether matrix units multiply tiles of such packed elements: AMX.
bool has_matrix_dot4(const Device& device);
bool has_matrix_dot2(const Device& device);
// Whether vectors of any number of lanes are loaded and stored at the price of whole ones: AVX-512 VL and BW.
bool has_masked_memory(const Device& device);

// The machine this process runs on: CPUID/sysfs for structure; no timing. threads = 0: as many
// as Processors::usable says (base/processors.h), one a core.
Result<Device> probe_local(int threads = 0);
// 10^9 bytes a second that device.cores threads of this machine read from memory: the best of a few passes
// over a buffer larger than the device's caches. Takes a few tenths of a second.
double measure_memory_bandwidth(const Device& device);
// What the last cache of this machine still holds of a program's data after kCacheRetentionSeconds in which
// the program did not touch them: 1 = all, 0 = nothing. Less than 1 where others use the cache, as on virtual
// machines. Takes a few tenths of a second.
inline constexpr double kCacheRetentionSeconds = 2e-3;
double measure_cache_retention(const Device& device);
// A weaker variant of the local machine: isa is "native", "avx512", "avx2", "sse4.2".
Result<Device> with_isa(const Device& device, std::string_view isa);

// The device as a JSON file, which parse_device reads back unchanged. Attributes that are zero or empty are
// left out.
std::string to_json(const Device& device);
// Reads such a file's text; place names it in errors (kCorrupt): what is no JSON, an attribute that is
// unknown, missing or of the wrong type, and figures that contradict each other (check_device).
Result<Device> parse_device(std::string_view text, std::string_view place);
// The figures fit together: the peak is cores x clock x FMAs x 2 x lanes within 1 %, caches grow, clocks are
// in order, a block's limits are within its multiprocessor's. The error names the attributes.
Status check_device(const Device& device);

// Known devices, compiled in from src/target/devices/*.json. Names are unique, also without dashes.
const std::vector<Device>& registry();
// By name: "local", a registry name, or a device file (contains '/' or ends in ".json"), with options joined
// by ':': "local:isa=avx2:threads=1". Registry names are compared without dashes, underscores and case:
// "xeon8358" is xeon-8358. The error for an unknown name lists the names.
Result<Device> find_device(std::string_view spec);

}  // namespace tensorsmith::target
