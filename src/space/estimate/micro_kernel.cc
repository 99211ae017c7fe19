#include "space/estimate/micro_kernel.h"

#include <algorithm>

namespace tensorsmith::space {

double step_cycles(const Machine& m, const RegisterTile& tile) {
  const Constants& k = m.fitted();
  const double registers = m.registers;
  // Units that take a whole vector a cycle in two halves take two short ones.
  const double fma_per_cycle = m.fma_per_cycle < 2 && 2 * tile.lanes * tile.element_bytes <= m.vector_bytes
                                   ? 2 * m.fma_per_cycle
                                   : m.fma_per_cycle;
  // Shuffles share units with products.
  double cycles = std::max({tile.products / fma_per_cycle,
                            (tile.products + tile.shuffles) / (k.vector_operations * fma_per_cycle),
                            tile.loads / m.loads_per_cycle, (tile.products + tile.loads) / m.issue_per_cycle,
                            k.latency_slack * tile.latency});
  // Unrolled steps have their vectors loaded ahead, which takes registers of its own.
  const double ahead = std::min(tile.instructions / std::max(1.0, tile.accumulators), k.loaded_ahead);
  const double excess =
      tile.accumulators + std::min(tile.operands * std::max(1.0, ahead), k.registers_ahead) - registers;
  if (excess > 0) cycles += k.spill * excess;
  // Few registers are left to load ahead into.
  const double crowded = tile.accumulators + tile.vectors - (registers - k.registers_crowded);
  if (crowded > 0) cycles *= 1 + k.crowded * crowded;
  // Accumulators that do not fit beside the vectors they are multiplied by are stored and loaded at each
  // step.
  if (tile.accumulators + tile.vectors > registers) cycles += k.stored_each_step * tile.accumulators;
  // Vectors of 3, 5, 14, ... lanes are loaded and stored under masks or in pieces.
  if ((tile.lanes & (tile.lanes - 1)) != 0) cycles *= m.masked_memory ? k.odd_lanes_masked : k.odd_lanes;
  // Long code is not free either.
  return (cycles + tile.loop_cycles) * (1 + tile.instructions / k.code_size);
}

double overlapped(double a, double b, double not_hidden) {
  return std::max(a, b) + not_hidden * std::min(a, b);
}

}  // namespace tensorsmith::space
