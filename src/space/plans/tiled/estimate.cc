// The estimate of a tiled plan: its register tile, copies, writes and padding. Traffic between the
// caches is in traffic.cc.
#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parallel.h"
#include "space/estimate/plan_number.h"
#include "space/plan_steps.h"
#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

// Returns the cycles to copy whole operands before the tiles; the threads share this work.
double TiledPlan::copy_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  double cycles = 0;
  for (const auto& operand : operands_) {
    if ((c.copied & operand.bit) == 0) continue;
    const auto& source = context_.stage(operand.read.producer);
    const AxisId axis = source.contiguous_axis.valid()
                            ? operand.read.indices[source.contiguous_axis].single_axis()
                            : AxisId();
    const bool whole_vectors = axis == c.vector_axis || keeps_rows(c, operand);
    cycles += space::copy_cycles(m, source.spatial_points(), source.element_bytes, whole_vectors,
                                 context_.threads());
  }
  return cycles;
}

bool TiledPlan::keeps_rows(const Choice& c, const Operand& operand) const {
  // Rows of a packed tile are contiguous along the reduction.
  if (operand.packable && c.pack) {
    const bool varies = !c.vector_axis.valid() || operand.read.depends_on(c.vector_axis);
    return !varies && !c.reduce_order.empty() && operand.read.depends_on(c.reduce_order.back()) &&
           matrix_tile(c);
  }
  const AxisId dim = context_.stage(operand.read.producer).contiguous_axis;
  if ((c.copied & operand.bit) == 0 || !dim.valid() ||
      (c.vector_axis.valid() && operand.read.depends_on(c.vector_axis)))
    return false;
  const AxisId axis = operand.read.indices[dim].single_axis();
  if (c.reduce_order.empty() || c.reduce_order.back() != axis) return false;
  const int64_t length = c.r1[axis];
  const int64_t lanes = context_.machine.lanes(context_.stage(operand.read.producer).element_bytes);
  return two_level_ && length < extent(axis) && vector_lanes(length, lanes) * 4 >= lanes;
}

// Returns the mean number of loads per vector of the operand: a vector that crosses a cache line
// takes two. Packed and copied operands are aligned. Others are only aligned if each row is a whole
// number of vectors and no window shifts the reads.
double TiledPlan::line_crossings(const Choice& c, const Operand& operand) const {
  if (c.lanes == 1 || rearranged(c, operand)) return 1;
  const auto& producer = context_.stage(operand.read.producer);
  const int64_t bytes = std::min(c.lanes * info_.element_bytes, context_.machine.vector_bytes);
  bool aligned = producer.row_extent() * producer.element_bytes % bytes == 0;
  if (operand.read.affine)
    for (const AxisId a : info_.axes()) {
      if (operand.read.indices.empty()) break;
      const int64_t step = std::abs(operand.read.indices.back().coefficients[a]);
      aligned = aligned && (step == 0 || a == c.vector_axis || extent(a) == 1);
    }
  return aligned ? 1 : 1 + (bytes - producer.element_bytes) / context_.machine.line_bytes;
}

// Returns the cycles per step for leaving a short innermost reduction loop and setting up its
// addresses again.
double TiledPlan::loop_exit_cycles(const Choice& c) const {
  const double exit_cycles = context_.machine.fitted().loop_exit;
  if (c.reduce_order.empty()) return 0;
  double trips = 1;
  for (size_t i = c.reduce_order.size(); i-- > 0;) {
    trips *= inner_steps(c, c.reduce_order[i]);
    // Unrolled loops have no exit; the first one that stays a loop has.
    if (trips > c.unroll) return exit_cycles / trips;
  }
  // If all of the inner level is unrolled, the outer loop is left, unless several register tiles
  // are between the two.
  for (const AxisId a : live_)
    if (c.region[a] > c.t3[a]) return exit_cycles / trips;
  if (two_level_) {
    const double steps = extent(c.reduce_order.back());
    trips *= std::ceil(steps / c.r1[c.reduce_order.back()]);
  }
  return exit_cycles / trips;
}

// Returns the steps of the reduction that a register tile goes through before the next one begins.
double TiledPlan::steps_of_a_sum(const Choice& c) const {
  bool several_tiles = false;
  for (const AxisId a : live_) several_tiles = several_tiles || c.region[a] > c.t3[a];
  double steps = 1;
  for (const AxisId r : info_.reduce_axes()) steps *= several_tiles ? inner_steps(c, r) : extent(r);
  return steps;
}

double TiledPlan::micro_kernel_cycles(const Choice& c, EstimateParts* parts) const {
  const auto& m = context_.machine;
  const double full_lanes = m.lanes(info_.element_bytes);
  const double accumulated = accumulators(c);
  if (const auto tile = matrix_tile(c)) {
    const Constants& k = m.fitted();
    const auto rows = static_cast<double>(tile->row_tiles), columns = static_cast<double>(tile->column_tiles);
    const double depth = tile->depth, products = rows * columns;
    // Sums are loaded before and stored after; they were set to zero in memory before that.
    const double cycles =
        (std::max(products * k.tile_product, (rows + columns) * k.tile_load) + loop_exit_cycles(c)) / depth +
        3 * products * k.tile_load / steps_of_a_sum(c);
    if (parts != nullptr) {
      parts->products = parts->accumulators = products;
      parts->loads = rows + columns;
      parts->lanes = static_cast<double>(c.lanes);
      parts->efficiency = products * k.tile_product / depth / cycles;
    }
    return cycles;
  }
  const bool vectorized = c.lanes > 1;
  const AxisId v = c.vector_axis;
  const double vector_length = v.valid() ? c.register_length(v) : 1, lanes = c.lanes;
  const double vectors_along = vector_length / lanes * std::ceil(lanes / full_lanes);
  // A vector that is twice as wide as the units takes both load ports. So does a broadcast that is
  // a load by itself, as it is for dot products of packed words.
  const double ports = info_.dot && m.fma_per_cycle < 2 && 2 * c.lanes * info_.element_bytes > m.vector_bytes
                           ? m.rates.loads_per_cycle / m.fitted().broadcasts
                           : 1;
  double loads = 0, broadcasts = 0, shuffles = 0, live_vectors = 0, waits = 0;
  double all_vectors = 0, all_elements = 0;  // that a step multiplies
  for (const auto& operand : operands_) {
    double count = 1;
    for (const AxisId a : live_)
      if (a != v && operand.read.depends_on(a)) count *= c.register_length(a);
    double cost = ports;
    if (v.valid() && operand.read.depends_on(v)) {
      const bool unit =
          (operand.read.affine && std::abs(operand.read.strides[v]) == 1) || rearranged(c, operand);
      cost = unit || !vectorized ? vectors_along * line_crossings(c, operand) * ports
             : operand.read.affine
                 ? read_cycles(m, operand.read.strides[v], vector_length, std::min(full_lanes, lanes))
                 : vector_length * m.fitted().gathered_element;
      if (!unit && vectorized) shuffles += count * (cost - vectors_along);
      live_vectors += vectors_along;
      all_vectors += count * vectors_along;
    } else {
      live_vectors += 1;
      all_elements += count;
      if (vectorized) broadcasts += count;
    }
    const bool guarded =
        operand.read.guarded || (operand.pad != kNone && c.pads[operand.pad] == PadLocation::kInline);
    // Conditions at the border are evaluated for each lane and keep the compiler from sharing
    // loads.
    if (guarded) {
      const bool strided = vectorized && operand.read.affine && std::abs(operand.read.stride(v)) > 1;
      cost = cost * m.fitted().guarded_load + m.fitted().guarded_setup;
      if (strided) waits += count * m.fitted().guarded_strided;
    }
    // Scalars of an unpacked constant or of a strided operand come from separate cache lines.
    loads += count * cost;
  }
  RegisterTile tile;
  tile.accumulators = accumulated;
  tile.products =
      accumulated * (info_.dot ? m.operations_of(*info_.dot) : std::max(1.0, info_.flops_per_point / 2));
  tile.loads = loads;
  tile.broadcasts = broadcasts;
  tile.shuffles = shuffles;
  // Each vector is multiplied by each element: one kind stays in registers while the other one
  // passes.
  tile.operands = std::max(live_vectors, 1 + std::min(all_vectors, all_elements));
  tile.vectors = vectors_along;
  tile.lanes = c.lanes;
  tile.element_bytes = info_.element_bytes;
  tile.latency = info_.dot == ir::Intrinsic::kDot2 ? m.dot2_latency : m.rates.fma_latency;
  tile.instructions = unrolled_instructions(c);
  tile.chain = steps_of_a_sum(c);
  tile.loop_cycles = waits + loop_exit_cycles(c) + m.fitted().loop_step / unrolled_steps(c);
  const double cycles = step_cycles(m, tile);
  if (parts != nullptr) set_tile_parts(m, tile, cycles, *parts);
  return cycles;
}

// Returns whether the rows of the local tile are apart by a multiple of the distance at which
// addresses share a set of L1.
bool TiledPlan::aliased_rows(const Choice& c) const {
  if (!c.vector_axis.valid()) return false;
  const auto distance = static_cast<int64_t>(context_.machine.fitted().alias_bytes);
  return c.region[c.vector_axis] * info_.element_bytes % distance == 0;
}

double TiledPlan::write_cycles(const Choice& c) const {
  const Constants& k = context_.machine.fitted();
  const double points = info_.spatial_points();
  const double written = points * info_.element_bytes;
  double bytes = written;
  for (const auto& operand : operands_) bytes += bytes_of(operand);
  const double lines = written_cycles(context_.machine, written, bytes);
  const double lanes = context_.machine.lanes(info_.element_bytes);
  const double epilogue = self_ ? 0 : context_.stage(output_).flops_per_point;
  if (!contiguous_.valid()) return points * (1 + epilogue) + lines;
  const double row = c.region[contiguous_], width = std::min(lanes, row);
  // A transposed write gathers single elements of the accumulators.
  const double gather = contiguous_ == c.vector_axis || c.lanes == 1
                            ? 0
                            : points * (aliased_rows(c) ? k.aliased_store : k.scattered_store);
  return points / width * (k.written_vector + epilogue) + gather + lines;
}

double TiledPlan::pad_cycles(const Choice& c) const {
  double cycles = 0;
  for (size_t p = 0; p < pads_.size(); ++p) {
    if (c.pads[p] == PadLocation::kInline) continue;
    const auto& pad = context_.stage(pads_[p]);
    if (c.pads[p] == PadLocation::kRoot) {
      cycles +=
          space::pad_cycles(context_.machine, pad.spatial_points(), pad.element_bytes, context_.threads());
      continue;
    }
    // Padding once per tile: the region times the number of tiles.
    AxisRanges ranges(info_.num_axes());
    const bool reduce_tile = c.pads[p] == PadLocation::kReduceTile;
    for (const AxisId a : info_.spatial_axes())
      ranges[a] = reduce_tile ? c.region[a] : std::min(extent(a), c.tile(a));
    for (const AxisId r : info_.reduce_axes()) ranges[r] = reduce_tile ? inner_steps(c, r) : extent(r);
    double tiles = 1;
    for (const AxisId a : info_.axes()) tiles *= std::ceil(extent(a) / ranges[a]);
    for (const auto& operand : operands_) {
      if (operand.pad != p) continue;
      double region = 1;
      const auto touched = footprint(operand.read, ranges);
      for (double t : touched) region *= t;
      const double row = touched.empty() ? 1 : touched.back();
      const auto& m = context_.machine;
      cycles +=
          tiles * region / row * std::ceil(row / m.lanes(pad.element_bytes)) * m.fitted().padded_vector_tile;
      if (region * pad.element_bytes > m.fitted().usable_once * m.l2_bytes)
        cycles += tiles * region * pad.element_bytes / m.rates.l3_bytes_per_cycle;
    }
  }
  return cycles;
}

// Returns the number of register tiles along an axis. A peeled tail counts as its share of a tile,
// but at least as long as a chain of products takes.
double TiledPlan::register_tiles(const Choice& c, AxisId a, double micro_cycles) const {
  const int64_t inner = c.t3[a], rest = extent(a) % inner;
  if (c.tail != sched::TailPolicy::kPeel) {
    const double length = extent(a);
    return std::ceil(length / c.tile(a)) * (c.t1[a] * c.t2[a]);
  }
  const int64_t full = extent(a) / inner;
  if (rest == 0) return full;
  const double last = a == c.vector_axis ? (rest + c.lanes - 1) / c.lanes * c.lanes : rest;
  const double least = std::min(
      1.0, context_.machine.fitted().latency_slack * context_.machine.rates.fma_latency / micro_cycles);
  return full + std::clamp(last / inner, least, 1.0);
}

double TiledPlan::tail_cost(const Choice& c, AxisId axis, int64_t tile) const {
  return tail_factor(context_.machine, extent(axis), tile, axis == c.vector_axis, c.tail,
                     context_.machine.fitted().tail_masked);
}

void TiledPlan::set_choice_parts(const Choice& c, double tail, EstimateParts& parts) const {
  const auto log2_of = [](double x) { return std::log2(std::max(1.0, x)); };
  parts.plan = plan_number(two_level_ ? PlanNumber::kTiledTwice : PlanNumber::kTiled);
  parts.tail = std::log(tail);
  parts.peeled = c.tail == sched::TailPolicy::kPeel ? 1 : 0;
  double useful = 1;
  for (const AxisId a : live_) {
    const double whole = extent(a), length = c.register_length(a);
    useful *= whole / (std::ceil(whole / length) * length);
  }
  parts.wasted = 1 - useful;
  parts.packed = c.pack ? 1 : 0;
  for (const auto& operand : operands_) parts.copied += (c.copied & operand.bit) != 0 ? 1 : 0;
  parts.buffered = c.cache_write || !self_ ? 1 : 0;
  parts.outer_attached = c.attach_outer ? 1 : 0;
  parts.scattered = !contiguous_.valid() || (contiguous_ != c.vector_axis && c.lanes > 1) ? 1 : 0;
  if (contiguous_.valid())
    parts.row = log2_of(static_cast<double>(c.region[contiguous_] * info_.element_bytes));
  parts.unrolled = log2_of(static_cast<double>(c.unroll));
  AxisRanges ranges(info_.num_axes(), 1);
  for (const AxisId a : info_.spatial_axes()) ranges[a] = static_cast<double>(c.region[a]);
  for (const AxisId r : info_.reduce_axes()) ranges[r] = static_cast<double>(inner_steps(c, r));
  double bytes = 0;
  for (const auto& operand : operands_) {
    double elements = context_.stage(operand.read.producer).element_bytes;
    for (const double touched : footprint(operand.read, ranges)) elements *= touched;
    bytes += elements;
  }
  parts.tile_bytes = log2_of(bytes);
  double all = info_.spatial_points() * info_.element_bytes, rows = 1;
  for (const auto& operand : operands_) all += bytes_of(operand);
  for (const AxisId a : live_) rows *= a == c.vector_axis ? 1.0 : static_cast<double>(c.register_length(a));
  parts.bytes = log2_of(all);
  parts.rows = log2_of(rows);
  parts.streams = broadcast_streams(c);
  parts.epilogue = self_ ? 0 : context_.stage(output_).flops_per_point;
  double reduced = 1;
  for (const AxisId r : info_.reduce_axes()) reduced *= static_cast<double>(extent(r));
  parts.reduced = log2_of(reduced);
}

double TiledPlan::estimate(Decisions d, EstimateParts* parts) const {
  const Choice c = decode(d);
  const Constants& k = context_.machine.fitted();
  const double micro = micro_kernel_cycles(c, parts);
  double steps = 1, tiles = 1;
  for (const AxisId a : live_) tiles *= register_tiles(c, a, micro);
  for (const AxisId r : live_reduce_) {
    const double inner = c.r1[r];
    steps *= c.tail == sched::TailPolicy::kPeel ? extent(r) : std::ceil(extent(r) / inner) * inner;
  }
  double cycles = micro * steps * tiles;
  // Accumulators that do not stay in registers over the whole reduction are loaded and stored again: with
  // several register tiles inside the outer reduction, or without the local tile.
  double tiles_inside = 1, steps_inside = 1;
  for (const AxisId a : live_) {
    const double region = c.region[a];
    tiles_inside *= std::ceil(region / c.t3[a]);
  }
  for (const AxisId r : info_.reduce_axes()) steps_inside *= inner_steps(c, r);
  const bool direct = self_ && !c.cache_write;
  if (tiles_inside > 1 || direct)
    cycles += tiles * steps / std::max(1.0, steps_inside) * accumulators(c) * k.accumulator_move;
  // The output is not a local buffer, so its rows are far apart.
  if (direct) cycles *= k.not_local;
  double tail = 1;
  for (const AxisId a : live_) tail *= tail_cost(c, a, c.tile(a));
  for (const AxisId r : live_reduce_) tail *= tail_cost(c, r, c.r1[r]);
  cycles *= tail;
  const Traffic traffic = traffic_cycles(c);
  if (parts != nullptr) {
    parts->arithmetic = cycles;
    parts->from_l2 = traffic.from_l2;
    parts->from_beyond = traffic.from_beyond;
    parts->tiles = std::log2(std::max(1.0, tiles));
    set_choice_parts(c, tail, *parts);
  }
  cycles = overlapped(cycles, traffic.from_l2, k.not_hidden_l2);
  // All rows of a tile are requested at once.
  const auto tile = matrix_tile(c);
  const double waited = tile ? traffic.waited / tile->depth : traffic.waited;
  const double written = write_cycles(c), copied = copy_cycles(c), padded = pad_cycles(c);
  cycles = overlapped(cycles, traffic.from_beyond, k.not_hidden) + waited + written;
  cycles += copied;
  ParallelLoop parallel;
  for (size_t i = 0; i < std::min(c.parallel, c.outer_order.size()); ++i) {
    const AxisId a = c.outer_order[i];
    parallel.add_axis(extent(a), std::min(extent(a), c.tile(a)), c.tail == sched::TailPolicy::kPeel);
  }
  cycles += padded;
  if (parts != nullptr) {
    parts->waited = waited;
    parts->written = written;
    parts->moved = copied + padded;
    set_loop_parts(parallel, context_.threads(), *parts);
  }
  return cycles * context_.machine.seconds_per_cycle() / parallel.speedup(context_.threads()) +
         (parallel.iterations() > 1 ? context_.machine.fork_seconds() : 0);
}

}  // namespace tensorsmith::space
