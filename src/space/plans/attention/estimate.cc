// The analytic model of an attention plan.
#include <algorithm>
#include <cmath>

#include "space/estimate/parallel.h"
#include "space/plans/attention/attention_plan.h"

namespace tensorsmith::space {

namespace {

constexpr double kTileRowCycles = 4;  // of one more row of a register tile that is written
constexpr double kNotHidden = 0.1;    // of the shorter of two things that go on together
constexpr double kScattered = 3;      // times as long as a stream
constexpr double kRowCycles = 60;     // of adding up lanes, twice a row

}  // namespace

// Of a block. from_l2: the columns' operand comes from the second cache for each register tile.
double AttentionPlan::contraction_cycles(const Tile& tile, int64_t rows, int64_t columns, int64_t depth,
                                         bool from_l2) const {
  const auto& m = context_.machine;
  const double across = static_cast<double>(vectors(tile));
  const double accumulators = static_cast<double>(tile.rows) * across;
  const double loads = static_cast<double>(tile.rows) + across;
  double cycles = std::max({accumulators / m.fma_per_cycle, loads / m.loads_per_cycle,
                            (accumulators + loads) / m.issue_per_cycle, 1.4 * m.fma_latency});
  const double excess = accumulators + across + 1 - static_cast<double>(m.registers);
  if (excess > 0) cycles += 2 * excess;
  if (from_l2) {
    const double lines = across * static_cast<double>(m.vector_bytes) / m.l2_bytes_per_cycle;
    cycles = std::max(cycles, lines) + kNotHidden * std::min(cycles, lines);
  }
  if ((tile.lanes & (tile.lanes - 1)) != 0) cycles *= 2;
  const double tiles = static_cast<double>(rows / tile.rows) *
                       std::ceil(static_cast<double>(columns) / static_cast<double>(tile.columns));
  return tiles * ((cycles + 0.5 / static_cast<double>(tile.unroll)) * static_cast<double>(depth) +
                  2 * accumulators + kTileRowCycles * static_cast<double>(tile.rows) + 20);
}

// Of a block: passes for the maximum, the exponentials and the sum, of which the second computes.
double AttentionPlan::softmax_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double row_vectors = std::ceil(static_cast<double>(keys_) / static_cast<double>(m.lanes(4)));
  const double passes = context_.stage(stages_.masked).flops_per_point +
                        context_.stage(stages_.exponential).flops_per_point + 2;
  return static_cast<double>(c.rows) * (row_vectors * (passes / m.fma_per_cycle + 3) + kRowCycles);
}

// Of a block: its rows of masks, which come from beyond the second cache for each batch; slowly where a
// register tile reads a little of each of its rows.
double AttentionPlan::mask_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  double cycles = 0;
  for (const Mask& mask : masks_) {
    const double row = static_cast<double>(keys_ * context_.stage(mask.constant).element_bytes);
    const double all = row * static_cast<double>(queries_);
    const double rate = all <= 0.5 * m.l2_bytes    ? m.l2_bytes_per_cycle
                        : all <= 0.75 * m.l3_bytes ? m.l3_bytes_per_cycle
                                                   : m.memory_bytes_per_cycle;
    cycles += row * static_cast<double>(c.rows) / rate * (packs_masks(c) ? 1 : kScattered);
  }
  return cycles;
}

// Of a block: its scores and exponentials are written and read twice each, keys and values read once.
double AttentionPlan::traffic_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double block = 8 * static_cast<double>(c.rows * keys_);
  const double operands = 4 * static_cast<double>(keys_ * (depth_ + width_));
  const auto rate = [&](double bytes) {
    return bytes <= 0.75 * m.l2_bytes   ? m.l2_bytes_per_cycle
           : bytes <= 0.75 * m.l3_bytes ? m.l3_bytes_per_cycle
                                        : m.memory_bytes_per_cycle;
  };
  double cycles = operands / rate(block + operands) + mask_cycles(c);
  if (block > 0.5 * m.l1_bytes) cycles += 2 * block / rate(block);
  return cycles;
}

double AttentionPlan::estimate(Decisions d) const {
  const Choice c = decode(d);
  const auto& m = context_.machine;
  const double blocks = std::ceil(static_cast<double>(queries_) / static_cast<double>(c.rows));
  // Rows of keys lie so far apart that they share sets of the first cache.
  const bool values_from_l2 = 4 * static_cast<double>(keys_ * c.product.columns) > 0.5 * m.l1_bytes;
  const double compute = contraction_cycles(c.scores, c.rows, keys_, depth_, true) +
                         contraction_cycles(c.product, c.rows, width_, keys_, values_from_l2) +
                         softmax_cycles(c);
  const double traffic = traffic_cycles(c);
  double cycles = batch_ * blocks * (std::max(compute, traffic) + 0.3 * std::min(compute, traffic));
  double forks = 0;
  if (c.parallel > 0) {
    ParallelLoop loop;
    loop.add_axis(c.parallel == 2 ? batch_ * blocks : batch_, 1, false);
    cycles /= loop.speedup(context_.threads);
    forks = loop.iterations() > 1 ? 1 : 0;
  }
  return cycles * m.seconds_per_cycle + forks * m.fork_seconds;
}

}  // namespace tensorsmith::space
