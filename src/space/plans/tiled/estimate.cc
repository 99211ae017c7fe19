// The geometry of a tiled plan for the estimate: its register tile, copies, writes and padding; what crosses the
// caches is in traffic.cc.
#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parallel.h"
#include "space/plan_steps.h"
#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

// Copies of whole operands before the tiles, shared by the threads.
double TiledPlan::copy_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  double cycles = 0;
  for (const auto& operand : operands_) {
    if ((c.copied & operand.bit) == 0) continue;
    const auto& source = context_.stage(operand.read.producer);
    const int axis = source.contiguous_axis < 0
                         ? -1
                         : operand.read.indices[static_cast<size_t>(source.contiguous_axis)].single_axis();
    const bool whole_vectors = axis == c.vector_axis || keeps_rows(c, operand);
    cycles +=
        space::copy_cycles(m, source.spatial_points(), source.element_bytes, whole_vectors, context_.threads);
  }
  return cycles;
}

bool TiledPlan::keeps_rows(const Choice& c, const Operand& operand) const {
  const int dim = context_.stage(operand.read.producer).contiguous_axis;
  if ((c.copied & operand.bit) == 0 || dim < 0 ||
      (c.vector_axis >= 0 && operand.read.depends_on(c.vector_axis)))
    return false;
  const int axis = operand.read.indices[static_cast<size_t>(dim)].single_axis();
  if (axis < spatial_ || c.reduce_order.empty() || c.reduce_order.back() != axis) return false;
  const int64_t length = c.r1[static_cast<size_t>(axis - spatial_)];
  const int64_t lanes = context_.machine.lanes(context_.stage(operand.read.producer).element_bytes);
  return two_level_ && length < extent(static_cast<size_t>(axis)) && vector_lanes(length, lanes) * 4 >= lanes;
}

// Loads a vector of the operand costs: two where it lies across two cache lines. Packed and copied operands
// are aligned; the others are only where each row is a whole number of vectors and no window shifts the
// reads.
double TiledPlan::line_crossings(const Choice& c, const Operand& operand) const {
  if (c.lanes == 1 || rearranged(c, operand)) return 1;
  const auto& producer = context_.stage(operand.read.producer);
  const int64_t bytes = std::min(c.lanes * info_.element_bytes, context_.machine.vector_bytes);
  bool aligned = producer.extents.back() * producer.element_bytes % bytes == 0;
  if (operand.read.affine)
    for (size_t a = 0; a < axes() && !operand.read.indices.empty(); ++a) {
      const int64_t step = std::abs(operand.read.indices.back().coefficients[a]);
      aligned = aligned && (step == 0 || static_cast<int>(a) == c.vector_axis || extent(a) == 1);
    }
  return aligned ? 1 : 1 + static_cast<double>(bytes - producer.element_bytes) / context_.machine.line_bytes;
}

// A short innermost reduction loop is left, and its addresses are set up again, every few steps.
double TiledPlan::loop_exit_cycles(const Choice& c) const {
  const double exit_cycles = context_.machine.fitted().loop_exit;
  if (c.reduce_order.empty()) return 0;
  double trips = 1;
  for (size_t i = c.reduce_order.size(); i-- > 0;) {
    const auto a = static_cast<size_t>(c.reduce_order[i]);
    const int64_t length = two_level_ ? c.r1[a - static_cast<size_t>(spatial_)] : extent(a);
    trips *= static_cast<double>(length);
    // Unrolled loops have no exit; the first one that stays a loop has.
    if (trips > static_cast<double>(c.unroll)) return exit_cycles / trips;
  }
  // All of the inner level is unrolled: the outer one is left, unless several register tiles lie between.
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    if (c.region[a] > c.t3[a]) return exit_cycles / trips;
  }
  if (two_level_)
    trips *= std::ceil(static_cast<double>(extent(static_cast<size_t>(c.reduce_order.back()))) /
                       static_cast<double>(c.r1[static_cast<size_t>(c.reduce_order.back() - spatial_)]));
  return exit_cycles / trips;
}

double TiledPlan::micro_kernel_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double full_lanes = static_cast<double>(m.lanes(info_.element_bytes));
  const double accumulated = accumulators(c);
  const bool vectorized = c.lanes > 1;
  const auto v = static_cast<size_t>(std::max(c.vector_axis, 0));
  const double vector_length = c.vector_axis < 0 ? 1 : static_cast<double>(std::min(c.t3[v], c.region[v]));
  const double vectors_along =
      vector_length / static_cast<double>(c.lanes) * std::ceil(static_cast<double>(c.lanes) / full_lanes);
  // A vector that is twice as wide as the units takes both load ports, and so does an element in all lanes
  // where it is loaded by itself, as it is for products of words.
  const double ports = info_.dot && m.fma_per_cycle < 2 && 2 * c.lanes * info_.element_bytes > m.vector_bytes
                           ? m.loads_per_cycle / m.fitted().broadcasts
                           : 1;
  double loads = 0, shuffles = 0, live_vectors = 0;
  for (const auto& operand : operands_) {
    double count = 1;
    for (int axis : live_) {
      const auto a = static_cast<size_t>(axis);
      if (axis != c.vector_axis && operand.read.depends_on(axis))
        count *= static_cast<double>(std::min(c.t3[a], c.region[a]));
    }
    double cost = ports;
    if (c.vector_axis >= 0 && operand.read.depends_on(c.vector_axis)) {
      const bool unit =
          (operand.read.affine && std::abs(operand.read.strides[v]) == 1) || rearranged(c, operand);
      cost = unit || !vectorized   ? vectors_along * line_crossings(c, operand) * ports
             : operand.read.affine ? read_cycles(m, operand.read.strides[v], vector_length,
                                                 std::min(full_lanes, static_cast<double>(c.lanes)))
                                   : vector_length * m.fitted().gathered_element;
      if (!unit && vectorized) shuffles += count * (cost - vectors_along);
      live_vectors += vectors_along;
    } else {
      live_vectors += 1;
    }
    const bool guarded =
        operand.read.guarded ||
        (operand.pad >= 0 && c.pads[static_cast<size_t>(operand.pad)] == PadLocation::kInline);
    // Conditions of the border are decided lane by lane, and keep the compiler from sharing loads.
    if (guarded) cost = cost * m.fitted().guarded_load + m.fitted().guarded_setup;
    // Scalars of an unpacked constant or strided operand come from as many cache lines.
    loads += count * cost;
  }
  RegisterTile tile;
  tile.accumulators = accumulated;
  tile.products =
      accumulated * (info_.dot ? m.operations_of(*info_.dot) : std::max(1.0, info_.flops_per_point / 2));
  tile.loads = loads;
  tile.shuffles = shuffles;
  tile.operands = live_vectors;
  tile.vectors = vectors_along;
  tile.lanes = c.lanes;
  tile.element_bytes = info_.element_bytes;
  tile.latency = info_.dot == ir::Intrinsic::kDot2 ? m.dot2_latency : m.fma_latency;
  tile.instructions = unrolled_instructions(c);
  tile.loop_cycles = loop_exit_cycles(c) + m.fitted().loop_step / static_cast<double>(c.unroll);
  return step_cycles(m, tile);
}

// The rows of the local tile lie apart by a multiple of the distance at which addresses share a set of the
// cache.
bool TiledPlan::aliased_rows(const Choice& c) const {
  if (c.vector_axis < 0) return false;
  const auto distance = static_cast<int64_t>(context_.machine.fitted().alias_bytes);
  return c.region[static_cast<size_t>(c.vector_axis)] * info_.element_bytes % distance == 0;
}

double TiledPlan::write_cycles(const Choice& c) const {
  const Constants& k = context_.machine.fitted();
  const double points = info_.spatial_points();
  const double lanes = static_cast<double>(context_.machine.lanes(info_.element_bytes));
  const double epilogue = self_ ? 0 : context_.stage(output_).flops_per_point;
  if (contiguous_ < 0) return points * (1 + epilogue);
  const double width = std::min(lanes, static_cast<double>(c.region[static_cast<size_t>(contiguous_)]));
  // A transposed write gathers single elements of the accumulators.
  const double gather = contiguous_ == c.vector_axis || c.lanes == 1
                            ? 0
                            : points * (aliased_rows(c) ? k.aliased_store : k.scattered_store);
  return points / width * (k.written_vector + epilogue) + gather;
}

double TiledPlan::pad_cycles(const Choice& c) const {
  double cycles = 0;
  for (size_t p = 0; p < pads_.size(); ++p) {
    if (c.pads[p] == PadLocation::kInline) continue;
    const auto& pad = context_.stage(pads_[p]);
    if (c.pads[p] == PadLocation::kRoot) {
      cycles +=
          space::pad_cycles(context_.machine, pad.spatial_points(), pad.element_bytes, context_.threads);
      continue;
    }
    // Once a tile: the region times the number of tiles.
    std::vector<double> ranges(axes(), 1);
    double tiles = 1;
    const bool reduce_tile = c.pads[p] == PadLocation::kReduceTile;
    for (size_t a = 0; a < axes(); ++a) {
      double length = 1;
      if (a < static_cast<size_t>(spatial_)) {
        length =
            static_cast<double>(reduce_tile ? c.region[a] : std::min(extent(a), c.t1[a] * c.t2[a] * c.t3[a]));
      } else {
        length = static_cast<double>(reduce_tile && two_level_ ? c.r1[a - static_cast<size_t>(spatial_)]
                                                               : extent(a));
      }
      ranges[a] = length;
      tiles *= std::ceil(static_cast<double>(extent(a)) / length);
    }
    for (const auto& operand : operands_) {
      if (operand.pad != static_cast<int>(p)) continue;
      double region = 1;
      const auto touched = footprint(operand.read, ranges);
      for (double t : touched) region *= t;
      const double row = touched.empty() ? 1 : touched.back();
      const auto& m = context_.machine;
      cycles += tiles * region / row * std::ceil(row / static_cast<double>(m.lanes(pad.element_bytes))) *
                m.fitted().padded_vector_tile;
      if (region * pad.element_bytes > m.fitted().usable_once * m.l2_bytes)
        cycles += tiles * region * pad.element_bytes / m.l3_bytes_per_cycle;
    }
  }
  return cycles;
}

// Register tiles along an axis. A peeled tail takes the time of its share of one, at least that of a chain
// of products.
double TiledPlan::register_tiles(const Choice& c, int axis, double micro_cycles) const {
  const auto a = static_cast<size_t>(axis);
  const int64_t inner = c.t3[a], tile = c.t1[a] * c.t2[a] * inner;
  if (c.tail != sched::TailPolicy::kPeel)
    return std::ceil(static_cast<double>(extent(a)) / static_cast<double>(tile)) *
           static_cast<double>(c.t1[a] * c.t2[a]);
  const int64_t rest = extent(a) % inner;
  if (rest == 0) return static_cast<double>(extent(a) / inner);
  const int64_t whole = axis == c.vector_axis ? (rest + c.lanes - 1) / c.lanes * c.lanes : rest;
  const double least =
      std::min(1.0, context_.machine.fitted().latency_slack * context_.machine.fma_latency / micro_cycles);
  return static_cast<double>(extent(a) / inner) +
         std::clamp(static_cast<double>(whole) / static_cast<double>(inner), least, 1.0);
}

double TiledPlan::tail_cost(const Choice& c, int axis, int64_t tile) const {
  return tail_factor(context_.machine, extent(static_cast<size_t>(axis)), tile, axis == c.vector_axis, c.tail,
                     context_.machine.fitted().tail_masked);
}

double TiledPlan::estimate(Decisions d) const {
  const Choice c = decode(d);
  const Constants& k = context_.machine.fitted();
  const double micro = micro_kernel_cycles(c);
  double steps = 1, tiles = 1;
  for (int axis : live_) tiles *= register_tiles(c, axis, micro);
  for (int axis : live_reduce_) {
    const auto a = static_cast<size_t>(axis);
    const double inner = static_cast<double>(c.r1[a - static_cast<size_t>(spatial_)]);
    steps *= c.tail == sched::TailPolicy::kPeel ? static_cast<double>(extent(a))
                                                : std::ceil(static_cast<double>(extent(a)) / inner) * inner;
  }
  double cycles = micro * steps * tiles;
  // Accumulators that do not stay in registers over the whole reduction are loaded and stored again: with
  // several register tiles inside the outer reduction, or without the local tile.
  double tiles_inside = 1, inner_steps = 1;
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    tiles_inside *= std::ceil(static_cast<double>(c.region[a]) / static_cast<double>(c.t3[a]));
  }
  for (size_t r = 0; r < c.r1.size(); ++r)
    inner_steps *= static_cast<double>(two_level_ ? c.r1[r] : extent(r + static_cast<size_t>(spatial_)));
  const bool direct = self_ && !c.cache_write;
  if (tiles_inside > 1 || direct)
    cycles += tiles * steps / std::max(1.0, inner_steps) * accumulators(c) * k.accumulator_move *
              (aliased_rows(c) ? k.aliased_move : 1);
  // The output is no place of the program's own: its rows lie far apart.
  if (direct) cycles *= k.not_local;
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    cycles *= tail_cost(c, axis, c.t1[a] * c.t2[a] * c.t3[a]);
  }
  for (int axis : live_reduce_) {
    const auto a = static_cast<size_t>(axis);
    cycles *= tail_cost(c, axis, c.r1[a - static_cast<size_t>(spatial_)]);
  }
  const Traffic traffic = traffic_cycles(c);
  cycles = overlapped(cycles, traffic.streamed, k.not_hidden) + traffic.waited + write_cycles(c);
  cycles += copy_cycles(c);
  ParallelLoop parallel;
  for (size_t i = 0; i < std::min(c.parallel, c.outer_order.size()); ++i) {
    const auto a = static_cast<size_t>(c.outer_order[i]);
    parallel.add_axis(static_cast<double>(extent(a)),
                      static_cast<double>(std::min(extent(a), c.t1[a] * c.t2[a] * c.t3[a])),
                      c.tail == sched::TailPolicy::kPeel);
  }
  cycles += pad_cycles(c);
  return cycles * context_.machine.seconds_per_cycle / parallel.speedup(context_.threads) +
         (parallel.iterations() > 1 ? context_.machine.fork_seconds : 0);
}

}  // namespace tensorsmith::space
