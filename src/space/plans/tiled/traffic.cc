// Bytes that cross each cache level below the loops of a tiled plan, and the data that a register
// tile waits for.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

double TiledPlan::bytes_of(const Operand& operand) const {
  const auto& producer = context_.stage(operand.read.producer);
  return producer.spatial_points() * producer.element_bytes;
}

double TiledPlan::row_distance(const Operand& operand) const {
  const auto& producer = context_.stage(operand.read.producer);
  for (const AxisId d : std::views::reverse(producer.spatial_axes()))
    if (producer.extent(d) > 1) return producer.extent(d) * producer.element_bytes;
  return producer.element_bytes;
}

// Example: 14 rows of a matrix with 1024 columns of 4 bytes are all in the same set of a cache
// whose ways have 4096 bytes, so they take 14 ways.
double TiledPlan::occupied(const Operand& operand, const AxisRanges& touched, double bytes,
                           double way_bytes) const {
  if (way_bytes <= 0 || touched.empty()) return bytes;
  const auto& producer = context_.stage(operand.read.producer);
  const double line_bytes = context_.machine.line_bytes;
  const auto way = static_cast<int64_t>(way_bytes);
  double covered = 0, lines = 1;  // bytes of a way that the rows map to; lines of the region
  int64_t next = producer.element_bytes;
  for (const AxisId d : std::views::reverse(touched.ids())) {
    const int64_t stride = next;
    next *= producer.extent(d);
    if (covered == 0) {
      covered = std::max(line_bytes, touched[d] * stride);
      lines = covered / line_bytes;
      continue;
    }
    if (touched[d] <= 1) continue;
    lines *= touched[d];
    const double places = way / std::gcd(stride, way);
    covered *= std::min(touched[d], std::max(1.0, places));
  }
  covered = std::min(covered, way_bytes);
  const double ways = lines * line_bytes / covered;
  return ways > context_.machine.fitted().crowded_ways ? std::max(bytes, ways * way_bytes) : bytes;
}

// Returns the rows of a copied operand that a step of the register tile reads if they fall into too
// few sets of a cache, else 0. Its rows are as long as the inner length of the reduction.
double TiledPlan::conflicting_rows(const Choice& c, const Operand& operand, const AxisRanges& touched,
                                   double way_bytes, double cache_bytes) const {
  const auto& producer = context_.stage(operand.read.producer);
  const AxisId dim = producer.contiguous_axis, step = operand.read.indices[dim].single_axis();
  const auto way = static_cast<int64_t>(way_bytes);
  if (way == 0) return 0;
  double rows = 1;
  for (const AxisId d : touched.ids()) rows *= d == dim ? 1 : touched[d];
  const double places = way / std::gcd(c.r1[step] * producer.element_bytes, way);
  return rows / places * way_bytes > cache_bytes ? rows : 0;
}

// Returns the number of places, each in cache lines of its own, from which a register tile
// broadcasts elements.
double TiledPlan::broadcast_streams(const Choice& c) const {
  double streams = 0;
  for (const auto& operand : operands_) {
    if (!c.vector_axis.valid() || operand.read.depends_on(c.vector_axis)) continue;
    const bool kept = keeps_rows(c, operand);
    double rows = 1;
    for (const AxisId a : live_) {
      const auto distance = operand.read.affine ? std::abs(operand.read.strides[a]) : 0;
      const int element = context_.stage(operand.read.producer).element_bytes;
      if (kept ? distance != 0 : !rearranged(c, operand) && distance * element >= context_.machine.line_bytes)
        rows *= c.register_length(a);
    }
    streams += rows;
  }
  return streams;
}

TiledPlan::Traffic TiledPlan::traffic_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const Constants& k = m.fitted();
  // Loops from outer to inner, as (axis, trips).
  struct Loop {
    AxisId axis;
    double trips;
  };
  std::vector<Loop> loops;
  const auto add = [&](AxisId axis, double trips) {
    if (trips > 1) loops.push_back({axis, trips});
  };
  // A peeled tail only moves its own data.
  const auto passes = [&](double length, double tile) {
    return c.tail == sched::TailPolicy::kPeel ? length / tile : std::ceil(length / tile);
  };
  for (const AxisId a : c.outer_order) add(a, passes(extent(a), c.tile(a)));
  if (!c.attach_outer)
    for (const AxisId a : live_) add(a, c.t1[a]);
  if (two_level_)
    for (const AxisId r : c.reduce_order) add(r, passes(extent(r), c.r1[r]));
  for (const AxisId a : live_) add(a, passes(c.region[a], c.t3[a]));
  for (const AxisId r : c.reduce_order) add(r, inner_steps(c, r));
  AxisRanges inner(info_.num_axes(), 1);
  for (const AxisId a : live_) inner[a] = c.register_length(a);
  // Ranges of the axes inside loop i, for all i from the outside.
  std::vector<AxisRanges> ranges(loops.size() + 1);
  ranges[loops.size()] = inner;
  for (size_t i = loops.size(); i-- > 0;) {
    const auto [axis, trips] = loops[i];
    const double whole = extent(axis);
    inner[axis] = std::min(inner[axis] * trips, whole);
    ranges[i] = inner;
  }
  const auto moved_bytes = [&](const Operand& operand, const AxisRanges& touched,
                               bool line_continues = false) {
    const auto& producer = context_.stage(operand.read.producer);
    const double element = producer.element_bytes;
    double elements = 1;
    for (const double t : touched) elements *= t;
    if (rearranged(c, operand) || line_continues) return elements * element;
    const AxisId last = producer.contiguous_axis;
    if (!last.valid()) return elements * element;
    // A short row touches one line more than it fills, and no prefetcher runs ahead of it.
    const double row = touched[last] * element;
    const double whole = element * producer.extent(last);
    if (row >= whole && last != AxisId(0)) {
      AxisId outside = last;
      --outside;
      if (touched[outside] >= producer.extent(outside)) return elements * element;
    }
    return elements / touched[last] * (row + std::min(m.line_bytes, whole));
  };
  const auto pieces_of_rows = [](const auto& touched) {
    double pieces = 1;
    for (const double t : touched) pieces *= t;
    return pieces / touched.back();
  };
  // Accumulators that do not stay in registers go through the caches, too.
  bool in_memory = self_ && !c.cache_write;
  for (const AxisId a : live_) in_memory = in_memory || c.region[a] > c.t3[a];
  const auto accumulator_bytes = [&](size_t depth) {
    double bytes = in_memory ? 2 * info_.element_bytes : 0;
    for (const AxisId a : live_) bytes *= ranges[depth][a];
    return bytes;
  };
  // The index of L1 is a part of the page offset; that of the last level is hashed.
  const struct {
    double bytes, rate, way_bytes;
  } levels[] = {{m.l1_bytes * k.usable, m.rates.l2_bytes_per_cycle, kPageBytes},
                {m.l2_bytes * k.usable, m.rates.l3_bytes_per_cycle, m.l2_bytes / m.rates.l2_ways},
                {m.l3_bytes_per_core() * k.usable_shared, m.memory_bytes_per_cycle(), 0}};
  // A processor waits for lines that share too few sets of L1, and for rows that are a page apart
  // in data that the second-level TLB does not cover (prefetchers do not cross pages, either). All
  // other data arrives while products are computed: prefetchers bring it into L2 faster than data
  // that is waited for, and scattered lines in a small area cost little. But prefetchers only
  // follow a limited number of streams: products of 18 scattered rows and one vector from L3 take
  // up to twice as long as those of 12 rows and two vectors, which need as much data.
  Traffic out;
  for (const auto& level : levels) {
    size_t depth = 0;
    bool fits = false;
    for (;; ++depth) {
      double total = 0;
      for (const auto& operand : operands_) {
        const auto touched = footprint(operand.read, ranges[depth]);
        const double bytes = moved_bytes(operand, touched);
        total += rearranged(c, operand) ? bytes : occupied(operand, touched, bytes, level.way_bytes);
      }
      total += accumulator_bytes(depth) / 2;
      fits = total <= level.bytes;
      if (fits || depth == loops.size()) break;
    }
    double streamed = 0, waited = 0;
    for (const auto& operand : operands_) {
      double times = 1;
      bool stays = true;  // until the first loop outside that moves the operand
      for (size_t i = depth; i-- > 0;) {
        auto [axis, trips] = loops[i];
        if (stays && !operand.read.depends_on(axis)) {
          // Over a blocked axis, the operand moves once per block.
          const int64_t block = operand.read.block_of(axis);
          if (block == 1) continue;
          trips = std::max(1.0, ranges[i][axis] / block);
          if (trips == 1) continue;
        }
        stays = false;
        // The data of a peeled tail is smaller only along its own axis.
        times *= operand.read.depends_on(axis) ? trips : std::ceil(trips);
      }
      const auto touched = footprint(operand.read, ranges[depth]);
      // The next pass of the innermost loop outside continues in the same cache lines.
      const double element = context_.stage(operand.read.producer).element_bytes;
      const bool along = fits && depth > 0 && operand.read.affine &&
                         operand.read.depends_on(loops[depth - 1].axis) &&
                         std::abs(operand.read.stride(loops[depth - 1].axis)) * element < m.line_bytes;
      const bool innermost = depth == loops.size();
      const double moved = times * moved_bytes(operand, touched, along);
      if (innermost && keeps_rows(c, operand)) {
        const double rows = conflicting_rows(c, operand, touched, level.way_bytes, level.bytes / k.usable);
        waited += k.conflict * times * rows * m.line_bytes;
        streamed += moved;
      } else if (rearranged(c, operand) || along || touched.empty() ||
                 touched.back() * element >= k.stream_bytes) {
        streamed += moved;
        // No prefetcher follows rows from page to page. (Code generation prefetches what vectors
        // read.)
        const bool in_all_lanes = !c.vector_axis.valid() || !operand.read.depends_on(c.vector_axis);
        if (!touched.empty() && !rearranged(c, operand) && in_all_lanes &&
            row_distance(operand) >= kPageBytes)
          out.waited += times * pieces_of_rows(touched) *
                        (&level == &levels[0]   ? k.row_start
                         : &level == &levels[1] ? k.row_start_beyond
                                                : 0);
      } else if (innermost && occupied(operand, touched, 0, level.way_bytes) > level.bytes / k.usable) {
        waited += k.conflict * moved;
      } else if (row_distance(operand) >= kPageBytes / 2) {
        waited += (bytes_of(operand) > m.rates.tlb_bytes ? 1 : k.tlb_hit) * moved;
      } else {
        streamed += k.near_lines * moved;
      }
    }
    if (in_memory) {
      double times = 1;
      bool stays = true;
      for (size_t i = depth; i-- > 0;) {
        if (stays && info_.is_reduce(loops[i].axis)) continue;
        stays = false;
        times *= loops[i].trips;
      }
      streamed += times * accumulator_bytes(depth);
    }
    const bool from_l3 = &level == &levels[1];
    double& streams = &level == &levels[0] ? out.from_l2 : out.from_beyond;
    if (from_l3 && broadcast_streams(c) > k.prefetched_streams) waited += k.not_prefetched * streamed;
    streams += streamed / level.rate;
    out.waited += waited / level.rate;
  }
  return out;
}

}  // namespace tensorsmith::space
