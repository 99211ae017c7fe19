#include "space/estimate/gpu_kernel.h"

#include <algorithm>
#include <cmath>

#include "space/estimate/gpu_constants.h"

namespace tensorsmith::space {

Status check_block(const target::GpuMachine& m, const GpuBlock& block, const std::string& stage,
                   double points) {
  const auto refuse = [&](std::string reason) {
    return Error{ErrorCode::kResourceExhausted, stage, std::move(reason)};
  };
  const auto number = [](int64_t n) { return std::to_string(n); };
  if (block.threads > m.max_threads)
    return refuse("a block has " + number(block.threads) + " threads, but the device allows " +
                  number(m.max_threads));
  const auto lanes = static_cast<int64_t>(m.warps(block.threads)) * m.warp;
  if (2 * block.threads <= lanes && 2 * static_cast<double>(block.threads) <= points)
    return refuse(number(block.threads) + " threads leave half of a warp's lanes idle");
  if (block.vthreads > m.max_vthreads)
    return refuse(number(block.vthreads) + " virtual threads, but the device's limit is " +
                  number(m.max_vthreads));
  if (block.shared_bytes > m.shared_bytes)
    return refuse("a block needs " + number(block.shared_bytes) +
                  " bytes of shared memory, but the device has " + number(m.shared_bytes));
  if (block.registers > m.register_limit(block.threads))
    return refuse("a thread needs " + number(static_cast<int64_t>(std::ceil(block.registers))) +
                  " registers, but the device has " + number(m.register_limit(block.threads)) +
                  " for each thread of the block");
  return {};
}

double resident_blocks(const target::GpuMachine& m, const GpuBlock& block) {
  const double threads = m.warps(block.threads) * m.warp;
  const double limit = m.register_limit(block.threads);
  return m.resident_blocks(threads, block.shared_bytes,
                           std::max(std::min(block.registers, limit), kLeastRegisters));
}

namespace {

// Returns the slowdown if the live values take more than the share `free` of a thread's registers.
// Values compete for registers long before all registers are in use, since the compiler loads early
// and spills.
double crowding(const target::GpuMachine& m, const GpuKernel& kernel, double free) {
  const GpuConstants& k = gpu_constants();
  const double pressure = kernel.live_values / m.register_limit(kernel.block.threads);
  return pressure > free ? 1 + k.crowded + k.crowded_more * std::min(pressure - free, k.most_crowded) : 1;
}

// Returns the cycles of a block's arithmetic if its operands are in shared memory before they are
// needed. They are the longest of three: the work of the arithmetic units, that of the banks, and
// fetching the instructions of a long loop body, which all warps share. With few warps, each waits
// for its own products.
double cycles_ahead(const target::GpuMachine& m, const GpuKernel& kernel, double warps) {
  const GpuConstants& k = gpu_constants();
  constexpr double kSchedulers = 4;
  const auto& ahead = kernel.ahead;
  // With few warps, a scheduler has no other warp to switch to (`alone`), or no warp at all
  // (`idle`).
  const double alone = k.alone_ahead * std::min(1.0, std::pow(kSchedulers / warps, 4)) * k.usual_products /
                       ahead.thread_products;
  const double idle = std::max(1.0, kSchedulers / warps);
  const double free = ahead.pair_columns > 0 ? k.pressure_pairs : k.pressure_ahead;
  const double issued = kernel.products * idle * (1 + alone) * crowding(m, kernel, free);
  const double beside = ahead.loads + ahead.iterations * k.iteration_ahead / std::max(warps, kSchedulers);
  const double fetched = ahead.body_products > k.long_body ? kernel.products * k.fetch / warps : 0;
  const double a_warp = m.warp / m.lanes;
  const double cycles = ahead.pair_columns > 0
                            ? issued * (k.product_pairs + k.pair_row / ahead.pair_columns) + beside
                            : (issued + beside) * k.product_ahead;
  return std::max({cycles * a_warp, fetched * a_warp, ahead.load_cycles});
}

// Returns the cycles of a block's arithmetic.
double product_cycles(const target::GpuMachine& m, const GpuKernel& kernel, double warps) {
  const GpuConstants& k = gpu_constants();
  if (kernel.ahead.used) return cycles_ahead(m, kernel, warps) + k.value * kernel.values;
  const double factor = k.product * (1 + k.few_warps / warps) * crowding(m, kernel, k.pressure);
  return kernel.products * factor * m.warp / m.lanes + k.value * kernel.values +
         k.bank_wait * kernel.bank_waits + k.step * kernel.steps;
}

// Returns the cycles of a block's accesses to device memory, which few warps cannot hide.
double access_cycles(const GpuKernel& kernel, double warps) {
  const GpuConstants& k = gpu_constants();
  const double cycles = k.access * kernel.memory.instructions + k.sector * kernel.memory.sectors +
                        k.line * kernel.memory.lines + k.moved * kernel.moved + k.guarded * kernel.guarded;
  return cycles * (1 + k.few_accesses / warps) + k.store_sector * kernel.store_sectors;
}

}  // namespace

double gpu_seconds(const target::GpuMachine& m, const GpuKernel& kernel) {
  const GpuConstants& k = gpu_constants();
  // The multiprocessor with the most blocks decides.
  const double most = std::ceil(kernel.blocks / m.cores);
  const double together = std::min(resident_blocks(m, kernel.block), most);
  const double warps = together * m.warps(kernel.block.threads);
  const double cycles = most * (product_cycles(m, kernel, warps) + access_cycles(kernel, warps)) +
                        most / together * (k.wait * kernel.waits + k.block_start);
  const double core = cycles * m.seconds_per_cycle();
  const double used = std::min(1.0, kernel.blocks / m.cores);
  const double reach = std::min(1.0, std::max(1.0, used * warps * kernel.words) / k.warps_for_bandwidth);
  const double memory =
      (k.memory * kernel.bytes_once + k.memory_again * kernel.bytes_again) / (m.bytes_per_second * reach);
  return m.launch_seconds + std::max(core, memory) + k.not_hidden * std::min(core, memory);
}

}  // namespace tensorsmith::space
