#include "space/estimate/machine.h"

#include <algorithm>

namespace tensorsmith::space {

Machine Machine::of(const target::Device& device, const Constants& constants) {
  Machine m;
  m.constants_ = &constants;
  m.vector_bytes = std::max(device.vector_bytes, 8);
  m.registers = std::max(device.vector_registers, 8);
  m.masked_memory = device.has_feature("avx512vl") && device.has_feature("avx512bw");
  m.fma_per_cycle = device.fma_per_cycle > 0 ? device.fma_per_cycle : 1;
  m.dot4_operations = target::has_dot4(device) ? 1 : constants.emulated_dot4;
  // Two FMAs, and halves that are taken apart, mostly once for several products.
  const bool dot2 = target::has_dot2(device);
  m.dot2_operations = dot2 ? 1 : constants.emulated_dot2;
  if (!dot2) m.dot2_latency = 2 * m.fma_latency;
  const double ghz = device.clock_ghz > 0 ? device.clock_ghz : 2.5;
  m.seconds_per_cycle = 1e-9 / ghz;
  if (device.l1_bytes > 0) m.l1_bytes = static_cast<double>(device.l1_bytes);
  if (device.l2_bytes > 0) m.l2_bytes = static_cast<double>(device.l2_bytes);
  m.l3_bytes =
      device.l3_bytes > 0 ? static_cast<double>(device.l3_bytes) / std::max(device.cores, 1) : m.l2_bytes;
  if (device.memory_bandwidth_gbs > 0) m.memory_bytes_per_cycle = device.memory_bandwidth_gbs / ghz;
  m.line_bytes = device.cacheline_bytes;
  return m;
}

}  // namespace tensorsmith::space
