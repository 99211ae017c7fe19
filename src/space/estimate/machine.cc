#include "space/estimate/machine.h"

#include <algorithm>

#include "target/assumed.h"

namespace tensorsmith::space {

Machine Machine::of(const target::Device& given, const Constants& constants) {
  const target::Device device = target::with_assumed_rates(given);
  Machine m;
  m.constants_ = &constants;
  m.kind = device.kind;
  if (m.kind == target::DeviceKind::kGpu) m.gpu = GpuMachine::of(device);
  m.vector_bytes = std::max(device.vector_bytes, 8);
  m.registers = std::max(device.vector_registers, 8);
  m.masked_memory = target::has_masked_memory(device);
  m.fma_per_cycle = device.fma_per_cycle;
  m.loads_per_cycle = device.rates.loads_per_cycle;
  m.issue_per_cycle = device.rates.issue_per_cycle;
  m.fma_latency = device.rates.fma_latency;
  m.reorder_buffer = device.rates.reorder_buffer;
  m.multiplies_bytes = target::has_dot4(device);
  m.matrix = sched::MatrixUnits::of(device);
  m.dot4_operations = m.multiplies_bytes ? 1 : constants.emulated_dot4;
  m.dot4_narrow_operations = m.multiplies_bytes ? 1 : constants.emulated_dot4_narrow;
  m.dot2_i16_operations = m.multiplies_bytes ? 1 : constants.emulated_dot2_i16;
  // Emulated by two FMAs and by unpacking the halves, which is mostly shared by several products.
  const bool dot2 = target::has_dot2(device);
  m.dot2_operations = dot2 ? 1 : constants.emulated_dot2;
  m.dot2_latency = dot2 ? device.rates.dot2_latency : 2 * m.fma_latency;
  if (device.arch == "x86-64" && !device.has_feature("fma")) m.product_instructions = 2;
  if (device.arch == "x86-64" && !device.has_feature("avx")) {
    m.product_instructions = 3;
    m.broadcast_instructions = 1;
  }
  m.seconds_per_cycle = 1e-9 / device.clock_ghz;
  m.l1_bytes = device.l1_bytes;
  m.l2_bytes = device.l2_bytes;
  m.l3_bytes = device.l3_bytes > 0 ? device.l3_bytes / std::max(device.cores, 1) : m.l2_bytes;
  m.l2_bytes_per_cycle = device.rates.l2_bytes_per_cycle;
  m.l3_bytes_per_cycle = device.rates.l3_bytes_per_cycle;
  m.memory_bytes_per_cycle = device.memory_bandwidth_gbs / device.clock_ghz;
  m.line_bytes = device.cacheline_bytes;
  m.l2_ways = device.rates.l2_ways;
  m.tlb_bytes = device.rates.tlb_bytes;
  m.fork_seconds = 1e-6 * device.rates.parallel_overhead_us;
  return m;
}

}  // namespace tensorsmith::space
