#include "space/estimate/gpu_machine.h"

#include <algorithm>

#include "sched/tensor_cores.h"

namespace tensorsmith::space {

namespace {

// Compilers allocate registers in units of this size.
constexpr int64_t kRegisterUnit = 8;

// Takes the value from the device file if it has one.
template <class Member, class Figure>
void take(Member& member, Figure figure) {
  if (figure > 0) member = static_cast<Member>(figure);
}

}  // namespace

GpuMachine GpuMachine::of(const target::Device& device) {
  GpuMachine m;
  take(m.warp, device.warp_size);
  take(m.max_threads, device.max_threads_per_block);
  take(m.max_vthreads, device.max_vthread_extent);
  take(m.shared_bytes, device.shared_memory_per_block);
  m.registers_per_thread = std::max<int64_t>(device.vector_registers, 32);
  take(m.registers_per_block, device.registers_per_block);
  take(m.cores, device.cores);
  m.core_threads = static_cast<double>(m.max_threads);
  m.core_shared_bytes = static_cast<double>(m.shared_bytes);
  m.core_registers = static_cast<double>(m.registers_per_block);
  take(m.core_threads, device.max_threads_per_core);
  take(m.core_blocks, device.max_blocks_per_core);
  take(m.core_shared_bytes, device.shared_memory_per_core);
  take(m.core_registers, device.registers_per_core);
  take(m.lanes, device.fma_per_cycle);
  m.capability = sched::compute_capability(device);
  if (device.clock_ghz > 0) m.seconds_per_cycle = 1e-9 / device.clock_ghz;
  take(m.memory_bytes_per_second, 1e9 * device.memory_bandwidth_gbs);
  take(m.l2_bytes, device.l2_bytes);
  take(m.l1_bytes, device.l1_bytes);
  take(m.launch_seconds, 1e-6 * device.launch_overhead_us);
  return m;
}

int64_t GpuMachine::register_limit(int64_t threads) const {
  const int64_t whole_warps = (threads + warp - 1) / warp * warp;
  const int64_t share =
      registers_per_block / std::max<int64_t>(whole_warps, 1) / kRegisterUnit * kRegisterUnit;
  return std::min(registers_per_thread, share);
}

}  // namespace tensorsmith::space
