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
  // Sums that are short overlap with those after them, as far as the processor looks ahead.
  const double sums_at_once =
      1 + k.looked_ahead * m.reorder_buffer / (tile.chain * (tile.products + tile.loads));
  // Shuffles share units with products.
  const double broadcasts = tile.broadcasts * m.broadcast_instructions;
  const double shuffles = tile.shuffles + broadcasts;
  double cycles = std::max(
      {tile.products / fma_per_cycle, (tile.products + shuffles) / (k.vector_operations * fma_per_cycle),
       tile.loads / m.loads_per_cycle,
       (tile.products * m.product_instructions + tile.loads + broadcasts) / m.issue_per_cycle,
       k.latency_slack * tile.latency / sums_at_once});
  const double excess = tile.accumulators + tile.operands - registers;
  // An accumulator that spills waits for its store, too.
  if (excess > 0)
    cycles =
        std::max(cycles, k.latency_slack * (tile.latency + k.forwarded) / sums_at_once) + k.spill * excess;
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
