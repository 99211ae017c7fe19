// The analytic model of a tiled plan: cycles of the register tile, bytes that cross each cache level, writes
// and padding. Constants are typical of out-of-order cores with two vector pipes; only the order matters.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "space/tiled_plan.h"

namespace tensorsmith::space {

// Example, 14 rows of a matrix with 1024 columns of 4 bytes: all lie in the same set of a cache whose ways
// have 4096 bytes, so that they take 14 ways.
double TiledPlan::occupied(const Operand& operand, std::span<const double> touched, double bytes,
                           double way_bytes) const {
  if (way_bytes <= 0 || touched.empty()) return bytes;
  constexpr double kLineBytes = 64;
  const auto& producer = context_.stage(operand.read.producer);
  const auto way = static_cast<int64_t>(way_bytes);
  double covered = 0, lines = 1;  // bytes of a way that the rows fall on; lines of the region
  int64_t stride = producer.element_bytes;
  for (size_t d = touched.size(); d-- > 0; stride *= producer.extents[d]) {
    if (covered == 0) {
      covered = std::max(kLineBytes, touched[d] * static_cast<double>(stride));
      lines = covered / kLineBytes;
      continue;
    }
    if (touched[d] <= 1) continue;
    lines *= touched[d];
    const double places = static_cast<double>(way / std::gcd(stride, way));
    covered *= std::min(touched[d], std::max(1.0, places));
  }
  covered = std::min(covered, way_bytes);
  const double ways = lines * kLineBytes / covered;
  return ways > 1.5 ? std::max(bytes, ways * way_bytes) : bytes;
}

// Copies of whole operands before the tiles, shared by the threads.
double TiledPlan::copy_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  double cycles = 0;
  for (const auto& operand : operands_) {
    if ((c.copied & operand.bit) == 0) continue;
    const auto& source = context_.stage(operand.read.producer);
    const double points = source.spatial_points();
    const double bytes = 2 * points * source.element_bytes;
    const int axis = source.contiguous_axis < 0
                         ? -1
                         : operand.read.indices[static_cast<size_t>(source.contiguous_axis)].single_axis();
    const bool whole_vectors = axis == c.vector_axis || keeps_rows(c, operand);
    cycles += points * (whole_vectors ? 3.0 / static_cast<double>(m.lanes(source.element_bytes)) : 1.5);
    cycles += bytes / (bytes < m.l2_bytes   ? m.l2_bytes_per_cycle
                       : bytes < m.l3_bytes ? m.l3_bytes_per_cycle
                                            : m.memory_bytes_per_cycle);
    if (context_.threads > 1) cycles += m.fork_seconds / m.seconds_per_cycle * context_.threads;
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
  constexpr double kLineBytes = 64;
  return aligned ? 1 : 1 + static_cast<double>(bytes - producer.element_bytes) / kLineBytes;
}

// A short innermost reduction loop is left, and its addresses are set up again, every few steps.
double TiledPlan::loop_exit_cycles(const Choice& c) const {
  constexpr double kExitCycles = 12;
  if (c.reduce_order.empty()) return 0;
  double trips = 1;
  for (size_t i = c.reduce_order.size(); i-- > 0;) {
    const auto a = static_cast<size_t>(c.reduce_order[i]);
    const int64_t length = two_level_ ? c.r1[a - static_cast<size_t>(spatial_)] : extent(a);
    trips *= static_cast<double>(length);
    // Unrolled loops have no exit; the first one that stays a loop has.
    if (trips > static_cast<double>(c.unroll)) break;
  }
  return kExitCycles / trips;
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
  // A vector that is twice as wide as the units takes both load ports; products of words leave little room
  // for it.
  const double ports =
      info_.dot && m.fma_per_cycle < 2 && c.lanes * info_.element_bytes > 32 ? m.loads_per_cycle : 1;
  double loads = 0, live_vectors = 0;
  for (const auto& operand : operands_) {
    double count = 1;
    for (int axis : live_) {
      const auto a = static_cast<size_t>(axis);
      if (axis != c.vector_axis && operand.read.depends_on(axis))
        count *= static_cast<double>(std::min(c.t3[a], c.region[a]));
    }
    double cost = 1;
    if (c.vector_axis >= 0 && operand.read.depends_on(c.vector_axis)) {
      const bool unit =
          (operand.read.affine && std::abs(operand.read.strides[v]) == 1) || rearranged(c, operand);
      cost = unit || !vectorized   ? vectors_along * line_crossings(c, operand) * ports
             : operand.read.affine ? read_cycles(operand.read.strides[v], vector_length,
                                                 std::min(full_lanes, static_cast<double>(c.lanes)))
                                   : vector_length * 1.5;
      live_vectors += vectors_along;
    } else {
      live_vectors += 1;
    }
    const bool guarded =
        operand.read.guarded ||
        (operand.pad >= 0 && c.pads[static_cast<size_t>(operand.pad)] == PadLocation::kInline);
    // Conditions of the border are decided lane by lane, and keep the compiler from sharing loads.
    if (guarded) cost = cost * 6 + 4;
    // Scalars of an unpacked constant or strided operand come from as many cache lines.
    loads += count * cost;
  }
  const double latency = info_.dot == ir::Intrinsic::kDot2 ? m.dot2_latency : m.fma_latency;
  const double arithmetic =
      accumulated * (info_.dot ? m.operations_of(*info_.dot) : std::max(1.0, info_.flops_per_point / 2));
  double cycles = std::max({arithmetic / m.fma_per_cycle, loads / m.loads_per_cycle,
                            (arithmetic + loads) / m.issue_per_cycle, 1.4 * latency});
  // Unrolled reduction points have their vectors loaded ahead, which takes registers of its own.
  const double ahead = std::min(unrolled_instructions(c) / std::max(1.0, accumulated), 3.0);
  const double excess =
      accumulated + std::min(live_vectors * std::max(1.0, ahead), 8.0) - static_cast<double>(m.registers);
  if (excess > 0) cycles += 2 * excess;
  // Vectors of 3, 5, 14, ... lanes are loaded and stored under masks or in pieces.
  if ((c.lanes & (c.lanes - 1)) != 0) cycles *= 2;
  // Loop overhead, less where the reduction is unrolled; long code is not free either.
  return (cycles + loop_exit_cycles(c) + 1.0 / static_cast<double>(c.unroll)) *
         (1 + unrolled_instructions(c) / 4000);
}

double TiledPlan::traffic_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  // Loops outer to inner as (axis, trips).
  struct Loop {
    size_t axis;
    double trips;
  };
  std::vector<Loop> loops;
  const auto add = [&](int axis, double trips) {
    if (trips > 1) loops.push_back({static_cast<size_t>(axis), trips});
  };
  for (int axis : c.outer_order) {
    const auto a = static_cast<size_t>(axis);
    const double tile = static_cast<double>(c.t1[a] * c.t2[a] * c.t3[a]);
    add(axis, std::ceil(static_cast<double>(extent(a)) / tile));
  }
  if (!c.attach_outer)
    for (int axis : live_) add(axis, static_cast<double>(c.t1[static_cast<size_t>(axis)]));
  if (two_level_)
    for (int axis : c.reduce_order) {
      const auto a = static_cast<size_t>(axis);
      add(axis, std::ceil(static_cast<double>(extent(a)) /
                          static_cast<double>(c.r1[a - static_cast<size_t>(spatial_)])));
    }
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    add(axis, std::ceil(static_cast<double>(c.region[a]) / static_cast<double>(c.t3[a])));
  }
  for (int axis : c.reduce_order) {
    const auto a = static_cast<size_t>(axis);
    add(axis, static_cast<double>(two_level_ ? c.r1[a - static_cast<size_t>(spatial_)] : extent(a)));
  }
  std::vector<double> inner(axes(), 1);
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    inner[a] = static_cast<double>(std::min(c.t3[a], c.region[a]));
  }
  // Ranges of the axes inside loop i, for all i from the outside.
  std::vector<std::vector<double>> ranges(loops.size() + 1);
  ranges[loops.size()] = inner;
  for (size_t i = loops.size(); i-- > 0;) {
    inner[loops[i].axis] =
        std::min(inner[loops[i].axis] * loops[i].trips, static_cast<double>(extent(loops[i].axis)));
    ranges[i] = inner;
  }
  const auto bytes_of = [&](const Operand& operand, std::span<const double> touched) {
    const double element = context_.stage(operand.read.producer).element_bytes;
    double elements = 1;
    for (size_t k = 0; k < touched.size(); ++k) elements *= touched[k];
    const bool dense = rearranged(c, operand) || touched.empty();
    if (dense) return elements * element;
    // A short row touches a line more than it fills, and no prefetcher runs ahead of it.
    const double row = touched.back() * element;
    const double whole = element * static_cast<double>(context_.stage(operand.read.producer).extents.back());
    if (row >= whole && touched.size() > 1 &&
        touched[touched.size() - 2] >=
            static_cast<double>(context_.stage(operand.read.producer).extents[touched.size() - 2]))
      return elements * element;
    return elements / touched.back() * (row + std::min(64.0, whole));
  };
  // The accumulators go through the caches too where they do not stay in registers.
  bool in_memory = self_ && !c.cache_write;
  for (int axis : live_)
    in_memory = in_memory || c.region[static_cast<size_t>(axis)] > c.t3[static_cast<size_t>(axis)];
  const auto accumulator_bytes = [&](size_t depth) {
    double bytes = in_memory ? 2.0 * info_.element_bytes : 0;
    for (int axis : live_) bytes *= ranges[depth][static_cast<size_t>(axis)];
    return bytes;
  };
  // The first level's index is a part of the page offset; the last level's is hashed.
  const struct {
    double bytes, rate, way_bytes;
  } levels[] = {{m.l1_bytes * 0.75, m.l2_bytes_per_cycle, 4096},
                {m.l2_bytes * 0.75, m.l3_bytes_per_cycle, m.l2_bytes / 16},
                {m.l3_bytes * 0.75, m.memory_bytes_per_cycle, 0}};
  double cycles = 0;
  for (const auto& level : levels) {
    size_t depth = 0;
    for (; depth < loops.size(); ++depth) {
      double total = 0;
      for (const auto& operand : operands_) {
        const auto touched = footprint(operand.read, ranges[depth]);
        const double bytes = bytes_of(operand, touched);
        total += rearranged(c, operand) ? bytes : occupied(operand, touched, bytes, level.way_bytes);
      }
      total += accumulator_bytes(depth) / 2;
      if (total <= level.bytes) break;
    }
    double traffic = 0;
    for (const auto& operand : operands_) {
      double times = 1;
      bool stays = true;  // until the first loop outside that moves the operand
      for (size_t i = depth; i-- > 0;) {
        const auto axis = static_cast<int>(loops[i].axis);
        double trips = loops[i].trips;
        if (stays && !operand.read.depends_on(axis)) {
          // Over a blocked axis it moves once a block.
          const int64_t block = operand.read.block_of(axis);
          if (block == 1) continue;
          trips = std::max(1.0, ranges[i][loops[i].axis] / static_cast<double>(block));
          if (trips == 1) continue;
        }
        stays = false;
        times *= trips;
      }
      traffic += times * bytes_of(operand, footprint(operand.read, ranges[depth]));
    }
    if (in_memory) {
      double times = 1;
      bool stays = true;
      for (size_t i = depth; i-- > 0;) {
        if (stays && loops[i].axis >= static_cast<size_t>(spatial_)) continue;
        stays = false;
        times *= loops[i].trips;
      }
      traffic += times * accumulator_bytes(depth);
    }
    cycles += traffic / level.rate;
  }
  return cycles;
}

// The rows of the local tile lie apart by a multiple of the distance at which addresses share a set of the
// cache.
bool TiledPlan::aliased_rows(const Choice& c) const {
  constexpr int64_t kAliasBytes = 1024;
  if (c.vector_axis < 0) return false;
  return c.region[static_cast<size_t>(c.vector_axis)] * info_.element_bytes % kAliasBytes == 0;
}

double TiledPlan::write_cycles(const Choice& c) const {
  const double points = info_.spatial_points();
  const double lanes = static_cast<double>(context_.machine.lanes(info_.element_bytes));
  const double epilogue = self_ ? 0 : context_.stage(output_).flops_per_point;
  if (contiguous_ < 0) return points * (1 + epilogue);
  const auto k = static_cast<size_t>(contiguous_);
  const double width = std::min(lanes, static_cast<double>(c.region[k]));
  // A transposed write gathers single elements of the accumulators.
  const double gather =
      contiguous_ == c.vector_axis || c.lanes == 1 ? 0 : points * (aliased_rows(c) ? 4.0 : 1.2);
  return points / width * (2 + epilogue) + gather;
}

double TiledPlan::pad_cycles(const Choice& c) const {
  double cycles = 0;
  for (size_t p = 0; p < pads_.size(); ++p) {
    if (c.pads[p] == PadLocation::kInline) continue;
    const auto& pad = context_.stage(pads_[p]);
    const double lanes = static_cast<double>(context_.machine.lanes(pad.element_bytes));
    const double points = pad.spatial_points();
    if (c.pads[p] == PadLocation::kRoot) {
      cycles += points / lanes * 4 + points * pad.element_bytes * 2 / context_.machine.l3_bytes_per_cycle +
                (context_.threads > 1
                     ? context_.machine.fork_seconds / context_.machine.seconds_per_cycle * context_.threads
                     : 0);
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
      cycles += tiles * region / row * std::ceil(row / lanes) * 5;
      if (region * pad.element_bytes > context_.machine.l2_bytes)
        cycles += tiles * region * pad.element_bytes / context_.machine.l3_bytes_per_cycle;
    }
  }
  return cycles;
}

double TiledPlan::estimate(Decisions d) const {
  const Choice c = decode(d);
  double steps = 1, tiles = 1;
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    const double tile = static_cast<double>(c.t1[a] * c.t2[a]);
    const double inner = static_cast<double>(c.t3[a]);
    tiles *= std::ceil(static_cast<double>(extent(a)) / (tile * inner)) * tile;
  }
  for (int axis : live_reduce_) {
    const auto a = static_cast<size_t>(axis);
    const double inner = static_cast<double>(c.r1[a - static_cast<size_t>(spatial_)]);
    steps *= std::ceil(static_cast<double>(extent(a)) / inner) * inner;
  }
  double cycles = micro_kernel_cycles(c) * steps * tiles;
  // Accumulators that do not stay in registers over the whole reduction are loaded and stored again: with
  // several register tiles inside the outer reduction, or without the local tile.
  double register_tiles = 1, inner_steps = 1;
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    register_tiles *= std::ceil(static_cast<double>(c.region[a]) / static_cast<double>(c.t3[a]));
  }
  for (size_t r = 0; r < c.r1.size(); ++r)
    inner_steps *= static_cast<double>(two_level_ ? c.r1[r] : extent(r + static_cast<size_t>(spatial_)));
  const bool direct = self_ && !c.cache_write;
  if (register_tiles > 1 || direct)
    cycles += tiles * steps / std::max(1.0, inner_steps) * accumulators(c) * 2 * (aliased_rows(c) ? 3 : 1);
  // The output is no place of the program's own: its rows lie far apart.
  if (direct) cycles *= 1.1;
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    cycles *= tail_factor(extent(a), c.t1[a] * c.t2[a] * c.t3[a], axis == c.vector_axis, c.tail);
  }
  for (int axis : live_reduce_) {
    const auto a = static_cast<size_t>(axis);
    cycles *= tail_factor(extent(a), c.r1[a - static_cast<size_t>(spatial_)], false, c.tail);
  }
  const double traffic = traffic_cycles(c);
  cycles = std::max(cycles, traffic) + 0.3 * std::min(cycles, traffic) + write_cycles(c);
  cycles += copy_cycles(c);
  double parallel = 1;
  for (size_t i = 0; i < std::min(c.parallel, c.outer_order.size()); ++i) {
    const auto a = static_cast<size_t>(c.outer_order[i]);
    parallel *= std::ceil(static_cast<double>(extent(a)) / static_cast<double>(c.t1[a] * c.t2[a] * c.t3[a]));
  }
  cycles += pad_cycles(c);
  const double threads = context_.threads;
  const double speedup = parallel / std::ceil(parallel / threads);
  return cycles * context_.machine.seconds_per_cycle / speedup +
         (parallel > 1 ? context_.machine.fork_seconds : 0);
}

}  // namespace tensorsmith::space
