// What a device is, as data: never code per device. Used by the space (register and cache sizes shape the
// sampling), by code generation (features), by the cost models (device features) and by the records (device
// key).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::target {

enum class DeviceKind : uint8_t { kCpu, kGpu };

struct Device {
  std::string name;         // registry key: "xeon-8358", "v100", or "local"
  std::string description;  // for people
  DeviceKind kind = DeviceKind::kCpu;
  std::string arch;                   // "x86-64", "aarch64", "nvptx", "amdgcn"
  std::string cpu;                    // LLVM CPU name, e.g. "znver5"; empty = generic
  std::vector<std::string> features;  // LLVM feature strings that matter: "+avx512f", ...
  int cores = 1;                      // CPU cores or GPU multiprocessors that a program may use
  double clock_ghz = 0;               // sustained under vector load
  int vector_bytes = 16;              // widest vector register used
  int vector_registers = 16;
  double fma_per_cycle = 1;      // vector FMA instructions issued a cycle and core
  int64_t l1_bytes = 32 << 10;   // data, per core
  int64_t l2_bytes = 256 << 10;  // per core (GPU: whole)
  int64_t l3_bytes = 0;          // shared, 0 = none
  int cacheline_bytes = 64;
  double memory_bandwidth_gbs = 0;
  double memory_gb = 0;
  double peak_f32_gflops = 0;  // all cores
  // GPU limits (0 on CPUs).
  int warp_size = 0;
  int max_threads_per_block = 0;
  int64_t shared_memory_per_block = 0;
  int64_t registers_per_block = 0;
  int max_vthread_extent = 0;

  // Hash of every attribute that can change a measurement; part of the record key.
  std::string key() const;
  bool has_feature(std::string_view feature) const;  // without the "+"
};

// The machine this process runs on: CPUID/sysfs for structure; no timing. threads = 0: all cores in the
// affinity mask.
Result<Device> probe_local(int threads = 0);
// A weaker variant of the local machine: isa is "native", "avx512", "avx2", "sse4.2".
Result<Device> with_isa(const Device& device, std::string_view isa);

// Known devices, compiled in from src/target/devices/*.json. Names are unique.
const std::vector<Device>& registry();
// By name: "local", "local:isa=avx2", "local:threads=1" (options joined by ':'), or a registry name. The
// error lists the names.
Result<Device> find_device(std::string_view spec);

}  // namespace tensorsmith::target
