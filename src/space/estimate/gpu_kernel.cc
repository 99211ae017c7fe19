#include "space/estimate/gpu_kernel.h"

#include <algorithm>
#include <cmath>

#include "space/estimate/gpu_constants.h"

namespace tensorsmith::space {

Status check_block(const GpuMachine& m, const GpuBlock& block, const std::string& stage, double points) {
  const auto refuse = [&](std::string reason) {
    return Error{ErrorCode::kResourceExhausted, stage, std::move(reason)};
  };
  const auto number = [](int64_t n) { return std::to_string(n); };
  if (block.threads > m.max_threads)
    return refuse(number(block.threads) + " threads a block, the device has " + number(m.max_threads));
  const int64_t lanes = (block.threads + m.warp - 1) / m.warp * m.warp;
  if (2 * block.threads <= lanes && 2 * static_cast<double>(block.threads) <= points)
    return refuse(number(block.threads) + " threads leave half of a warp's lanes idle");
  if (block.vthreads > m.max_vthreads)
    return refuse(number(block.vthreads) + " virtual threads, the device's limit is " +
                  number(m.max_vthreads));
  if (block.shared_bytes > m.shared_bytes)
    return refuse(number(block.shared_bytes) + " bytes of shared memory a block, the device has " +
                  number(m.shared_bytes));
  if (block.registers > static_cast<double>(m.register_limit(block.threads)))
    return refuse("a thread needs " + number(static_cast<int64_t>(std::ceil(block.registers))) +
                  " registers, the device has " + number(m.register_limit(block.threads)) +
                  " for each of the block's");
  return {};
}

double resident_blocks(const GpuMachine& m, const GpuBlock& block) {
  const double warps = std::ceil(static_cast<double>(block.threads) / static_cast<double>(m.warp));
  const double threads = warps * static_cast<double>(m.warp);
  const double registers = std::ceil(block.registers / 8) * 8 * threads;
  double blocks = std::min(
      {m.core_blocks, std::floor(m.core_threads / threads), std::floor(m.core_registers / registers)});
  if (block.shared_bytes > 0)
    blocks = std::min(blocks, std::floor(m.core_shared_bytes / static_cast<double>(block.shared_bytes)));
  return std::max(blocks, 1.0);
}

double gpu_seconds(const GpuMachine& m, const GpuKernel& kernel) {
  const GpuConstants& k = gpu_constants();
  const double resident = resident_blocks(m, kernel.block);
  // The multiprocessor with the most blocks.
  const double most = std::ceil(kernel.blocks / m.cores);
  const double together = std::min(resident, most);
  const double rounds = std::ceil(most / together);
  const double warp = static_cast<double>(m.warp);
  const double warps = together * std::ceil(static_cast<double>(kernel.block.threads) / warp);
  // Arithmetic waits for its own results unless enough warps or independent instructions are there.
  const double issue_width = std::max(1.0, m.lanes / warp);
  const double in_flight = warps * std::max(1.0, kernel.independent);
  const double busy = std::min(1.0, in_flight / (issue_width * k.fma_latency));
  const double arithmetic = kernel.fma_instructions * warp / m.lanes / busy;
  const double issue =
      (kernel.fma_instructions + kernel.other_instructions) / std::max(issue_width, k.issue_width);
  const double memory_pipe = kernel.global_accesses * k.access_cycles + kernel.shared_cycles;
  const double block_cycles =
      std::max({arithmetic, issue, memory_pipe}) + k.not_hidden * (std::min(arithmetic, memory_pipe));
  const double waiting = kernel.waits * k.memory_latency;
  const double core_cycles =
      std::max(most * block_cycles, rounds * (block_cycles + waiting)) + rounds * k.block_start;
  const double l2_cycles = most * kernel.l2_bytes / k.l2_bytes_per_cycle;
  const double core_seconds = std::max(core_cycles, l2_cycles) * m.seconds_per_cycle;
  const double used = std::min(1.0, kernel.blocks / m.cores);
  const double reach = std::min(1.0, std::max(used * warps, 1.0) / k.warps_for_bandwidth);
  const double dram = kernel.dram_bytes / (m.memory_bytes_per_second * k.memory_share * reach);
  return m.launch_seconds + std::max(core_seconds, dram) + k.not_hidden * std::min(core_seconds, dram);
}

}  // namespace tensorsmith::space
