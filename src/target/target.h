// The description of a device as data; a further device needs no code. The search space uses it (the
// sizes of registers and caches guide the sampling), as do code generation (features), the cost
// models (features of the device) and the records (key of the device). docs/devices.md documents
// the file format; target/attributes.h maps its attributes to these members.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tensorsmith::target {

// The values are the indices of the alternatives of Device::figures.
enum class DeviceKind : uint8_t { kCpu, kGpu };

// Rates that a CPU core sustains, 0 = unknown (see assumed.h). They are used to choose among
// schedules and to summarize our own programs for the cost models.
struct CoreRates {
  double loads_per_cycle = 0;
  double issue_per_cycle = 0;  // instructions of all kinds
  double fma_latency = 0;      // cycles until an instruction can use the result of a vector FMA
  double dot2_latency = 0;  // cycles until an instruction can use the result of a dot product of bf16 pairs
  int reorder_buffer = 0;   // capacity in instructions
  double l2_bytes_per_cycle = 0, l3_bytes_per_cycle = 0;  // transfer rates from L2 to L1 and from L3 to L2
  int l2_ways = 0;                                        // associativity of L2
  int64_t tlb_bytes = 0;                                  // memory covered by the second-level TLB
  double parallel_overhead_us = 0;  // time to start and join a parallel loop on all cores
};

// Assumed sizes of caches.
inline constexpr int64_t kUsualL1Bytes = 32 << 10, kUsualL2Bytes = 256 << 10;

struct CpuFigures {
  int cores = 1;          // cores that a program may use
  int vector_bytes = 16;  // bytes of the widest vector register that kernels use
  int vector_registers = 16;
  double fma_per_cycle = 1;  // vector FMAs that a core issues per cycle
  CoreRates rates;
};

struct GpuFigures {
  int multiprocessors = 1;
  double lanes = 1;               // f32 FMAs that a multiprocessor issues per cycle
  int lane_bytes = 4;             // bytes of a thread's register
  int registers_per_thread = 16;  // 32-bit registers that one thread may use
  // Limits, 0 = not known.
  int warp_size = 0;
  int max_threads_per_block = 0;
  int64_t shared_memory_per_block = 0;  // bytes, the largest size that a kernel can request
  int64_t registers_per_block = 0;      // 32-bit
  int max_vthread_extent = 0;           // largest number of virtual threads that the search tries on one axis
  // Limits for all blocks that are resident on a multiprocessor together, 0 = not known.
  int max_threads_per_core = 0;
  int max_blocks_per_core = 0;
  int64_t shared_memory_per_core = 0;  // bytes
  int64_t registers_per_core = 0;      // 32-bit
  double block_start_cycles = 0;       // cycles between the starts of two blocks of a kernel, 0 = not known
};

struct Device {
  std::string name;                   // registry key: "xeon-8358", "v100", or "local"
  std::string description;            // for people
  std::string arch;                   // "x86-64", "aarch64", "nvptx", "amdgcn", "opencl"
  std::string processor;              // LLVM's name of the processor: "znver5", "sm_80"; empty = generic
  std::vector<std::string> features;  // LLVM feature strings that matter: "+avx512f", ...
  std::variant<CpuFigures, GpuFigures> figures;
  double clock_ghz = 0;              // sustained under vector load; the peak is computed from it
  double base_clock_ghz = 0;         // guaranteed by the vendor, 0 = unknown
  double boost_clock_ghz = 0;        // highest clock; on CPUs that of a single core
  int64_t l1_bytes = kUsualL1Bytes;  // L1 data cache of a compute unit
  int64_t l2_bytes = kUsualL2Bytes;  // L2 cache of a core; GPUs: of the whole device
  int64_t l3_bytes = 0;              // shared, 0 = none
  int cacheline_bytes = 64;
  double memory_bandwidth_gbs = 0;   // 10^9 bytes per second, all channels together
  double memory_gb = 0;              // 2^30 bytes
  double peak_f32_gflops = 0;        // all compute units, vector units only (no matrix units)
  double launch_overhead_us = 0;     // least time between two dependent kernels, 0 = not known
  double power_watts = 0;            // thermal design power, 0 = not known
  std::vector<std::string> sources;  // sources of the figures

  DeviceKind kind() const { return static_cast<DeviceKind>(figures.index()); }
  // Return the figures of a CPU and of a GPU. A call for a device of the other kind is an internal error.
  const CpuFigures& cpu() const;
  CpuFigures& cpu();
  const GpuFigures& gpu() const;
  GpuFigures& gpu();

  // Return figures that devices of both kinds have. A compute unit is a core or a multiprocessor. The
  // registers are those that one thread computes with: vector registers of a CPU, 32-bit registers of a GPU.
  int compute_units() const;
  int register_bytes() const;
  int register_count() const;
  double fma_per_cycle() const;  // FMAs of whole registers that a compute unit issues

  // Returns a hash of all attributes that can change a measurement. The hash is part of the key of
  // a record.
  std::string key() const;
  bool has_feature(std::string_view feature) const;  // `feature` has no "+"
};

// Returns the figures of a GPU. For a CPU, returns figures whose limits are all 0.
const GpuFigures& gpu_or_no_limits(const Device& device);

// Returns the peak of the vector units in 10^9 operations per second, which follows from the compute
// units, their clock, their FMAs and the lanes of a register.
double peak_gflops(int compute_units, double clock_ghz, double fma_per_cycle, int register_bytes);
// Returns the same for the figures of a device.
double computed_peak_gflops(const Device& device);

// Returns whether one instruction adds a dot4 of two vectors of packed elements
// (ir::Intrinsic::kDot4) to every 32-bit lane of the widest vectors: AVX-512 VNNI, or AVX-VNNI for
// vectors of up to 32 bytes.
bool has_dot4(const Device& device);
// Returns the same for ir::Intrinsic::kDot2 (pairs of bf16), and thereby whether one instruction
// rounds such vectors to bf16: AVX-512 BF16.
bool has_dot2(const Device& device);
// Return whether the device has matrix units (AMX) for tiles of the packed elements of kDot4 and
// kDot2.
bool has_matrix_dot4(const Device& device);
bool has_matrix_dot2(const Device& device);
// Returns whether a masked load or store of any number of lanes costs as much as that of a whole
// vector: AVX-512 VL and BW.
bool has_masked_memory(const Device& device);

// Describes the machine that this process runs on, from CPUID and sysfs; measures nothing.
// `threads` becomes the number of cores; 0 stands for Processors::usable (base/processors.h), one
// thread per core.
Result<Device> probe_local(int threads = 0);
// Returns the rate in 10^9 bytes per second at which this machine reads memory with one thread per core of
// the device: the best of several passes over a buffer that is larger than the caches. Takes a few tenths
// of a second.
double measure_memory_bandwidth(const Device& device);
// Returns the share (0 to 1) of a program's data that the last-level cache still holds after the
// program has not touched the data for kCacheRetentionSeconds. It is below 1 if others use the
// cache, as on virtual machines. Takes a few tenths of a second.
inline constexpr double kCacheRetentionSeconds = 2e-3;
double measure_cache_retention(const Device& device);
// Returns a variant of an x86-64 device with a weaker instruction set, with the same caches and
// cores: `isa` is "native" or the name of a level (isa.h).
Result<Device> with_isa(const Device& device, std::string_view isa);

// Returns the device as the text of a JSON file, which parse_device reads back unchanged.
// Attributes that are zero or empty are left out.
std::string to_json(const Device& device);
// Reads the text of a device file; `place` names the file in errors. Errors (kCorrupt): not JSON,
// an attribute that is unknown or of the other kind of device, a required one missing or one of the
// wrong type, and values that contradict each other (check_device).
Result<Device> parse_device(std::string_view text, std::string_view place);
// Checks that the values are consistent: the peak is cores x clock x FMAs x 2 x lanes within 1 %,
// L1 <= L2 <= L3, base clock <= clock <= boost clock, and the limits of a block do not exceed those
// of its multiprocessor. The error names the attributes.
Status check_device(const Device& device);

// The known devices, compiled in from src/target/devices/*.json. Their names are unique even
// without dashes.
const std::vector<Device>& registry();
// Finds a device by its specification: "local", a name in the registry, or a device file (contains
// '/' or ends in ".json"), followed by options that start with ':', e.g.
// "local:isa=avx2:threads=1". Dashes, underscores and case of registry names are ignored:
// "xeon8358" is xeon-8358. The error for an unknown name lists the known ones.
Result<Device> find_device(std::string_view spec);

}  // namespace tensorsmith::target
