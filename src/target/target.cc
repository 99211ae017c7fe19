#include "target/target.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace tensorsmith::target {

// The name, description, sources and memory size do not change how long a program runs. The base
// and boost clocks and the limits per multiprocessor follow from the other attributes. Features are
// sorted, because their order means nothing. The power limits the clock that is reached; it is
// hashed where it is known.
std::string Device::key() const {
  std::vector<std::string> sorted = features;
  std::sort(sorted.begin(), sorted.end());
  Hasher h;
  h.add("tensorsmith device 1").add(static_cast<uint64_t>(kind)).add(arch).add(cpu);
  h.add(sorted.size());
  for (const std::string& f : sorted) h.add(f);
  for (int64_t v : {static_cast<int64_t>(cores), static_cast<int64_t>(vector_bytes),
                    static_cast<int64_t>(vector_registers), l1_bytes, l2_bytes, l3_bytes,
                    static_cast<int64_t>(cacheline_bytes), static_cast<int64_t>(warp_size),
                    static_cast<int64_t>(max_threads_per_block), shared_memory_per_block, registers_per_block,
                    static_cast<int64_t>(max_vthread_extent)}) {
    h.add(static_cast<uint64_t>(v));
  }
  for (double v : {clock_ghz, fma_per_cycle, memory_bandwidth_gbs, peak_f32_gflops})
    h.add(std::bit_cast<uint64_t>(v));
  if (power_watts > 0) h.add(std::bit_cast<uint64_t>(power_watts));
  return h.hex128();
}

bool Device::has_feature(std::string_view feature) const {
  return std::any_of(features.begin(), features.end(), [&](const std::string& f) {
    return f.size() == feature.size() + 1 && f[0] == '+' && f.compare(1, std::string::npos, feature) == 0;
  });
}

double peak_gflops(int cores, double clock_ghz, double fma_per_cycle, int vector_bytes) {
  return cores * clock_ghz * fma_per_cycle * 2 * (vector_bytes / 4.0);
}
double computed_peak_gflops(const Device& device) {
  return peak_gflops(device.cores, device.clock_ghz, device.fma_per_cycle, device.vector_bytes);
}

bool has_dot4(const Device& device) {
  if (device.vector_bytes > 32) return device.has_feature("avx512vnni");
  return device.has_feature("avxvnni") ||
         (device.has_feature("avx512vnni") && device.has_feature("avx512vl"));
}

bool has_dot2(const Device& device) {
  return device.has_feature("avx512bf16") && (device.vector_bytes > 32 || device.has_feature("avx512vl"));
}

bool has_matrix_dot4(const Device& device) {
  return device.has_feature("amx-tile") && device.has_feature("amx-int8");
}

bool has_matrix_dot2(const Device& device) {
  return device.has_feature("amx-tile") && device.has_feature("amx-bf16");
}

bool has_masked_memory(const Device& device) {
  return device.has_feature("avx512vl") && device.has_feature("avx512bw");
}

}  // namespace tensorsmith::target
