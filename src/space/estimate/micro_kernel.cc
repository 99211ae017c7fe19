#include "space/estimate/micro_kernel.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::space {

double step_cycles(const EstimateMachine& m, const RegisterTile& tile) {
  const Constants& k = m.fitted();
  const double registers = m.registers;
  // Units that split a whole vector into two halves process two short vectors instead.
  const double fma_per_cycle = m.fma_per_cycle < 2 && 2 * tile.lanes * tile.element_bytes <= m.vector_bytes
                                   ? 2 * m.fma_per_cycle
                                   : m.fma_per_cycle;
  // Short sums overlap with the sums after them, as far as the reorder buffer reaches.
  const double sums_at_once =
      1 + k.looked_ahead * m.rates.reorder_buffer / (tile.chain * (tile.products + tile.loads));
  // Shuffles use the same units as products.
  const double broadcasts = tile.broadcasts * m.broadcast_instructions;
  const double shuffles = tile.shuffles + broadcasts;
  double cycles = std::max(
      {tile.products / fma_per_cycle, (tile.products + shuffles) / (k.vector_operations * fma_per_cycle),
       tile.loads / m.rates.loads_per_cycle,
       (tile.products * m.product_instructions + tile.loads + broadcasts) / m.rates.issue_per_cycle,
       k.latency_slack * tile.latency / sums_at_once});
  const double excess = tile.accumulators + tile.operands - registers;
  // An accumulator that is spilled also waits for its store to be forwarded.
  if (excess > 0)
    cycles =
        std::max(cycles, k.latency_slack * (tile.latency + k.forwarded) / sums_at_once) + k.spill * excess;
  // Few registers are left for loads that run ahead.
  const double crowded = tile.accumulators + tile.vectors - (registers - k.registers_crowded);
  if (crowded > 0) cycles *= 1 + k.crowded * crowded;
  // Accumulators that do not fit alongside the vectors that they are multiplied by are stored and
  // loaded in every step.
  if (tile.accumulators + tile.vectors > registers) cycles += k.stored_each_step * tile.accumulators;
  // Vectors whose number of lanes is not a power of two (3, 5, 14, ...) are loaded and stored under
  // masks or in pieces.
  if ((tile.lanes & (tile.lanes - 1)) != 0) cycles *= m.masked_memory ? k.odd_lanes_masked : k.odd_lanes;
  // Long code is slower to fetch.
  return (cycles + tile.loop_cycles) * (1 + tile.instructions / k.code_size);
}

void set_tile_parts(const EstimateMachine& m, const RegisterTile& tile, double cycles, EstimateParts& parts) {
  parts.products = tile.products;
  parts.loads = tile.loads;
  parts.broadcasts = tile.broadcasts;
  parts.shuffles = tile.shuffles;
  parts.accumulators = tile.accumulators;
  parts.free_registers = static_cast<double>(m.registers) - tile.accumulators - tile.operands;
  const auto lanes = static_cast<double>(tile.lanes);
  parts.lanes = lanes;
  parts.lane_share = std::min(1.0, lanes * tile.element_bytes / static_cast<double>(m.vector_bytes));
  parts.chain = std::isfinite(tile.chain) ? std::log2(std::max(1.0, tile.chain)) : 0;
  parts.instructions = std::log2(std::max(1.0, tile.instructions));
  parts.efficiency = tile.products / m.fma_per_cycle / cycles;
}

double overlapped(double a, double b, double not_hidden) {
  return std::max(a, b) + not_hidden * std::min(a, b);
}

}  // namespace tensorsmith::space
