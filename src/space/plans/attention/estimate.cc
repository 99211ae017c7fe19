// The analytic model of an attention plan.
#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parallel.h"
#include "space/estimate/plan_number.h"
#include "space/plans/attention/attention_plan.h"

namespace tensorsmith::space {

// Returns the cycles of a contraction for a block. `from_l2`: the columns' operand comes from L2
// for each register tile.
double AttentionPlan::contraction_cycles(const Tile& tile, double rows, double columns, double depth,
                                         bool from_l2) const {
  const auto& m = context_.machine;
  const double across = vectors(tile);
  const Constants& k = m.fitted();
  RegisterTile step;
  step.accumulators = step.products = tile.rows * across;
  step.loads = tile.rows + across;
  step.broadcasts = tile.rows;
  step.operands = across + 1;
  step.vectors = across;
  step.lanes = tile.lanes;
  step.latency = m.rates.fma_latency;
  step.instructions = step.accumulators;
  step.loop_cycles = k.loop_step / tile.unroll;
  double cycles = step_cycles(m, step);
  if (from_l2)
    cycles = overlapped(cycles, across * m.vector_bytes / m.rates.l2_bytes_per_cycle, k.not_hidden_l2);
  const double tiles = rows / tile.rows * std::ceil(columns / tile.columns);
  return tiles *
         (cycles * depth + k.accumulator_move * step.accumulators + k.written_row * tile.rows + k.loop_exit);
}

// Returns the cycles of the softmax of a block: passes for the maximum, the exponentials and the
// sum, of which the second one does the arithmetic.
double AttentionPlan::softmax_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double keys = keys_;
  const double row_vectors = std::ceil(keys / m.lanes(4));
  const double passes = context_.stage(stages_.masked).flops_per_point +
                        context_.stage(stages_.exponential).flops_per_point + 2;
  return c.rows * (row_vectors * (passes / m.fma_per_cycle + m.fitted().row_pass) + m.fitted().row_sum);
}

// Returns the cycles of a block's rows of masks, which come from beyond L2 for each batch. They
// come slowly if a register tile reads only a little of each of its rows.
double AttentionPlan::mask_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  double cycles = 0;
  for (const Mask& mask : masks_) {
    const double row = keys_ * context_.stage(mask.constant).element_bytes;
    const double all = row * queries_;
    cycles += row * c.rows / stream_rate(m, all) * (packs_masks(c) ? 1 : m.fitted().scattered);
  }
  return cycles;
}

// Returns the cycles of a block's traffic: scores and exponentials are written and read twice each,
// keys and values are read once.
double AttentionPlan::traffic_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double block = 8 * (c.rows * keys_);
  const double operands = 4 * (keys_ * (depth_ + width_));
  double cycles = operands / stream_rate(m, block + operands) + mask_cycles(c);
  if (block > m.fitted().usable * m.l1_bytes) cycles += 2 * block / stream_rate(m, block);
  return cycles;
}

double AttentionPlan::estimate(Decisions d, EstimateParts* parts) const {
  const Choice c = decode(d);
  const auto& m = context_.machine;
  const double queries = queries_;
  const double blocks = std::ceil(queries / c.rows);
  // Rows of keys are so far apart that they share sets of L1.
  const bool values_from_l2 = 4 * (keys_ * c.product.columns) > m.fitted().usable * m.l1_bytes;
  const double compute = contraction_cycles(c.scores, c.rows, keys_, depth_, true) +
                         contraction_cycles(c.product, c.rows, width_, keys_, values_from_l2) +
                         softmax_cycles(c);
  const double traffic = traffic_cycles(c);
  double cycles = batch_ * blocks * overlapped(compute, traffic, m.fitted().not_hidden_blocks);
  if (parts != nullptr) {
    parts->plan = plan_number(PlanNumber::kAttention);
    parts->arithmetic = batch_ * blocks * compute;
    parts->from_beyond = batch_ * blocks * traffic;
    parts->moved = batch_ * blocks * softmax_cycles(c);
    parts->tiles = std::log2(batch_ * blocks);
    parts->accumulators = static_cast<double>(c.scores.rows) * vectors(c.scores);
    parts->products = static_cast<double>(c.product.rows) * vectors(c.product);
    parts->lanes = static_cast<double>(c.scores.lanes);
    parts->loads = static_cast<double>(c.product.lanes);
    parts->unrolled = std::log2(static_cast<double>(c.scores.unroll));
    parts->tile_bytes = std::log2(std::max(1.0, static_cast<double>(c.rows) * keys_ * 4));
    parts->packed = packs_masks(c) ? 1 : 0;
    parts->reduced = std::log2(static_cast<double>(keys_));
  }
  double forks = 0;
  if (c.parallel > 0) {
    ParallelLoop loop;
    loop.add_axis(c.parallel == 2 ? batch_ * blocks : batch_, 1, false);
    cycles /= loop.speedup(context_.threads());
    forks = loop.iterations() > 1 ? 1 : 0;
    if (parts != nullptr) set_loop_parts(loop, context_.threads(), *parts);
  }
  return cycles * m.seconds_per_cycle() + forks * m.fork_seconds();
}

}  // namespace tensorsmith::space
