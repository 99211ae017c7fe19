#include "target/machine.h"

#include "target/assumed.h"
#include "target/micro_architecture.h"

namespace tensorsmith::target {
namespace {

// Replaces the default by the figure of the device, if it has one.
template <class Member, class Figure>
void take(Member& member, Figure figure) {
  if (figure > 0) member = static_cast<Member>(figure);
}

}  // namespace

CpuMachine::CpuMachine(const Device& device) {
  const Figures figures = with_assumed(Figures(device));
  cores = std::max(device.compute_units(), 1);
  clock_hz = 1e9 * figures.clock_ghz;
  vector_bytes = std::max(device.register_bytes(), 4);
  registers = std::max(device.register_count(), 8);
  take(fma_per_cycle, figures.fma_per_cycle);
  products_per_cycle = device.fma_per_cycle() > 0 ? target::products_per_cycle(device) : fma_per_cycle;
  const bool x86 = device.arch == "x86-64";
  if (x86 && !device.has_feature("fma")) product_instructions = 2;
  if (x86 && !device.has_feature("avx")) {
    product_instructions = 3;
    broadcast_instructions = 1;
  }
  rates = figures.rates;
  l1_bytes = figures.l1_bytes;
  l2_bytes = figures.l2_bytes;
  l3_bytes = device.l3_bytes;
  line_bytes = std::max(device.cacheline_bytes, 16);
  bytes_per_second = 1e9 * figures.bandwidth_gbs;
  flops_per_second = 1e9 * figures.peak_f32_gflops;
}

GpuMachine::GpuMachine(const Device& device) {
  const Figures figures = with_assumed(Figures(device));
  const GpuFigures& gpu = gpu_or_no_limits(device);
  take(warp, gpu.warp_size);
  warp = std::min(warp, kMostLanes);
  take(max_threads, gpu.max_threads_per_block);
  take(max_vthreads, gpu.max_vthread_extent);
  take(shared_bytes, gpu.shared_memory_per_block);
  registers_per_thread = std::max<int64_t>(device.register_count(), 32);
  take(registers_per_block, gpu.registers_per_block);
  take(cores, device.compute_units());
  core_threads = max_threads;
  core_shared_bytes = shared_bytes;
  core_registers = registers_per_block;
  take(core_threads, gpu.max_threads_per_core);
  // A block has at least one warp.
  core_blocks = std::floor(core_threads / warp);
  take(core_blocks, gpu.max_blocks_per_core);
  take(core_shared_bytes, gpu.shared_memory_per_core);
  take(core_registers, gpu.registers_per_core);
  take(lanes, device.fma_per_cycle());
  capability = compute_capability(device);
  amd = device.arch == "amdgcn";
  clock_hz = 1e9 * figures.clock_ghz;
  bytes_per_second = 1e9 * figures.bandwidth_gbs;
  flops_per_second = 1e9 * figures.peak_f32_gflops;
  take(l2_bytes, device.l2_bytes);
  take(l1_bytes, device.l1_bytes);
  take(launch_seconds, 1e-6 * device.launch_overhead_us);
  take(block_start_cycles, gpu.block_start_cycles);
}

int64_t GpuMachine::register_limit(int64_t threads) const {
  const int64_t whole_warps = (threads + warp - 1) / warp * warp;
  const int64_t share =
      registers_per_block / std::max<int64_t>(whole_warps, 1) / kRegisterUnit * kRegisterUnit;
  return std::min(registers_per_thread, share);
}

double GpuMachine::resident_blocks(double threads) const {
  return std::max(1.0, std::min(core_blocks, std::floor(core_threads / threads)));
}

double GpuMachine::resident_blocks(double threads, double block_shared_bytes, double registers) const {
  const double unit = kRegisterUnit;
  const double of_block = std::ceil(registers / unit) * unit * threads;
  return std::max(1.0, std::min({resident_blocks(threads),
                                 std::floor(core_shared_bytes / std::max(block_shared_bytes, 1.0)),
                                 std::floor(core_registers / of_block)}));
}

Machine machine_of(const Device& device) {
  if (device.kind() == DeviceKind::kGpu) return GpuMachine(device);
  return CpuMachine(device);
}

int compute_capability(const Device& device) {
  const std::string_view name = device.processor;
  if (device.arch != "nvptx" || !name.starts_with("sm_")) return 0;
  int number = 0;
  for (const char c : name.substr(3)) {
    if (c < '0' || c > '9') break;
    number = 10 * number + (c - '0');
  }
  return number;
}

}  // namespace tensorsmith::target
