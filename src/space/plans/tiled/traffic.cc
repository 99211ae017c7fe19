// Bytes that cross each cache level below a tiled plan's loops, and what a register tile waits for.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

double TiledPlan::bytes_of(const Operand& operand) const {
  const auto& producer = context_.stage(operand.read.producer);
  double bytes = producer.element_bytes;
  for (const int64_t e : producer.extents) bytes *= static_cast<double>(e);
  return bytes;
}

double TiledPlan::row_distance(const Operand& operand) const {
  const auto& producer = context_.stage(operand.read.producer);
  for (size_t k = producer.extents.size(); k-- > 0;)
    if (producer.extents[k] > 1) return static_cast<double>(producer.extents[k]) * producer.element_bytes;
  return producer.element_bytes;
}

// Example, 14 rows of a matrix with 1024 columns of 4 bytes: all lie in the same set of a cache whose ways
// have 4096 bytes, so that they take 14 ways.
double TiledPlan::occupied(const Operand& operand, std::span<const double> touched, double bytes,
                           double way_bytes) const {
  if (way_bytes <= 0 || touched.empty()) return bytes;
  const auto& producer = context_.stage(operand.read.producer);
  const double line_bytes = context_.machine.line_bytes;
  const auto way = static_cast<int64_t>(way_bytes);
  double covered = 0, lines = 1;  // bytes of a way that the rows fall on; lines of the region
  int64_t stride = producer.element_bytes;
  for (size_t d = touched.size(); d-- > 0; stride *= producer.extents[d]) {
    if (covered == 0) {
      covered = std::max(line_bytes, touched[d] * static_cast<double>(stride));
      lines = covered / line_bytes;
      continue;
    }
    if (touched[d] <= 1) continue;
    lines *= touched[d];
    const double places = static_cast<double>(way / std::gcd(stride, way));
    covered *= std::min(touched[d], std::max(1.0, places));
  }
  covered = std::min(covered, way_bytes);
  const double ways = lines * line_bytes / covered;
  return ways > context_.machine.fitted().crowded_ways ? std::max(bytes, ways * way_bytes) : bytes;
}

// Rows of a copied operand that a step of the register tile reads, if they fall into too few sets of a cache.
// Its rows are as long as the reduction's inner length.
double TiledPlan::conflicting_rows(const Choice& c, const Operand& operand, std::span<const double> touched,
                                   double way_bytes, double cache_bytes) const {
  const auto& producer = context_.stage(operand.read.producer);
  const auto dim = static_cast<size_t>(producer.contiguous_axis);
  const auto step = static_cast<size_t>(operand.read.indices[dim].single_axis() - spatial_);
  const auto way = static_cast<int64_t>(way_bytes);
  if (way == 0) return 0;
  double rows = 1;
  for (size_t k = 0; k < touched.size(); ++k) rows *= k == dim ? 1 : touched[k];
  const auto places = static_cast<double>(way / std::gcd(c.r1[step] * producer.element_bytes, way));
  return rows / places * way_bytes > cache_bytes ? rows : 0;
}

// Places that a register tile reads elements in all lanes from, each in lines of its own.
double TiledPlan::broadcast_streams(const Choice& c) const {
  double streams = 0;
  for (const auto& operand : operands_) {
    if (c.vector_axis < 0 || operand.read.depends_on(c.vector_axis)) continue;
    const bool kept = keeps_rows(c, operand);
    double rows = 1;
    for (int axis : live_) {
      const auto a = static_cast<size_t>(axis);
      const auto distance = operand.read.affine ? std::abs(operand.read.strides[a]) : 0;
      const int element = context_.stage(operand.read.producer).element_bytes;
      if (kept ? distance != 0
               : !rearranged(c, operand) &&
                     static_cast<double>(distance * element) >= context_.machine.line_bytes)
        rows *= static_cast<double>(std::min(c.t3[a], c.region[a]));
    }
    streams += rows;
  }
  return streams;
}

TiledPlan::Traffic TiledPlan::traffic_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const Constants& k = m.fitted();
  // Loops outer to inner as (axis, trips).
  struct Loop {
    size_t axis;
    double trips;
  };
  std::vector<Loop> loops;
  const auto add = [&](int axis, double trips) {
    if (trips > 1) loops.push_back({static_cast<size_t>(axis), trips});
  };
  // A tail that is peeled moves no more than it has.
  const auto passes = [&](double ratio) {
    return c.tail == sched::TailPolicy::kPeel ? ratio : std::ceil(ratio);
  };
  for (int axis : c.outer_order) {
    const auto a = static_cast<size_t>(axis);
    const double tile = static_cast<double>(c.t1[a] * c.t2[a] * c.t3[a]);
    add(axis, passes(static_cast<double>(extent(a)) / tile));
  }
  if (!c.attach_outer)
    for (int axis : live_) add(axis, static_cast<double>(c.t1[static_cast<size_t>(axis)]));
  if (two_level_)
    for (int axis : c.reduce_order) {
      const auto a = static_cast<size_t>(axis);
      add(axis, passes(static_cast<double>(extent(a)) /
                       static_cast<double>(c.r1[a - static_cast<size_t>(spatial_)])));
    }
  for (int axis : live_) {
    const auto a = static_cast<size_t>(axis);
    add(axis, passes(static_cast<double>(c.region[a]) / static_cast<double>(c.t3[a])));
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
  const auto moved_bytes = [&](const Operand& operand, std::span<const double> touched,
                               bool line_continues = false) {
    const auto& producer = context_.stage(operand.read.producer);
    const double element = producer.element_bytes;
    double elements = 1;
    for (const double t : touched) elements *= t;
    if (rearranged(c, operand) || line_continues) return elements * element;
    size_t last = touched.size();
    while (last > 0 && producer.extents[last - 1] == 1) --last;
    if (last == 0) return elements * element;
    // A short row touches a line more than it fills, and no prefetcher runs ahead of it.
    const double row = touched[last - 1] * element;
    const double whole = element * static_cast<double>(producer.extents[last - 1]);
    if (row >= whole && last > 1 && touched[last - 2] >= static_cast<double>(producer.extents[last - 2]))
      return elements * element;
    return elements / touched[last - 1] * (row + std::min(m.line_bytes, whole));
  };
  // The accumulators go through the caches too where they do not stay in registers.
  bool in_memory = self_ && !c.cache_write;
  for (int axis : live_)
    in_memory = in_memory || c.region[static_cast<size_t>(axis)] > c.t3[static_cast<size_t>(axis)];
  const auto accumulator_bytes = [&](size_t depth) {
    double bytes = in_memory ? 2 * info_.element_bytes : 0;
    for (int axis : live_) bytes *= ranges[depth][static_cast<size_t>(axis)];
    return bytes;
  };
  // The first level's index is a part of the page offset; the last level's is hashed.
  const struct {
    double bytes, rate, way_bytes;
  } levels[] = {{m.l1_bytes * k.usable, m.l2_bytes_per_cycle, kPageBytes},
                {m.l2_bytes * k.usable, m.l3_bytes_per_cycle, m.l2_bytes / m.l2_ways},
                {m.l3_bytes * k.usable_shared, m.memory_bytes_per_cycle, 0}};
  // Where a processor waits for memory: for lines that share too few sets of L1, and for rows
  // that lie a page apart in a place that the second level of the TLB does not hold. Prefetchers do not cross
  // pages, either. All else comes while products are computed; what they bring into L2 comes faster than what is
  // waited for, and lines that lie apart in a small place cost little. Products of 18 rows that lie apart and
  // one vector that comes from L3 take up to twice as long as those of 12 rows and two vectors, from which as
  // much comes: prefetchers follow only so many streams.
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
      const auto touched = footprint(operand.read, ranges[depth]);
      // The next pass of the innermost loop outside goes on in the same cache lines.
      const double element = context_.stage(operand.read.producer).element_bytes;
      const bool along =
          fits && depth > 0 && operand.read.affine &&
          operand.read.depends_on(static_cast<int>(loops[depth - 1].axis)) &&
          std::abs(static_cast<double>(operand.read.strides[loops[depth - 1].axis])) * element < m.line_bytes;
      const bool innermost = depth == loops.size();
      const double moved = times * moved_bytes(operand, touched, along);
      if (innermost && keeps_rows(c, operand)) {
        const double rows = conflicting_rows(c, operand, touched, level.way_bytes, level.bytes / k.usable);
        waited += k.conflict * times * rows * m.line_bytes;
        streamed += moved;
      } else if (rearranged(c, operand) || along || touched.empty() ||
                 touched.back() * element >= k.stream_bytes) {
        streamed += moved;
      } else if (innermost && occupied(operand, touched, 0, level.way_bytes) > level.bytes / k.usable) {
        waited += k.conflict * moved;
      } else if (row_distance(operand) >= kPageBytes / 2) {
        waited += (bytes_of(operand) > m.tlb_bytes ? 1 : k.tlb_hit) * moved;
      } else {
        streamed += k.near_lines * moved;
      }
    }
    if (in_memory) {
      double times = 1;
      bool stays = true;
      for (size_t i = depth; i-- > 0;) {
        if (stays && loops[i].axis >= static_cast<size_t>(spatial_)) continue;
        stays = false;
        times *= loops[i].trips;
      }
      streamed += times * accumulator_bytes(depth);
    }
    const bool prefetched = &level == &levels[1];
    if (prefetched && broadcast_streams(c) > k.prefetched_streams) waited += k.not_prefetched * streamed;
    out.streamed = std::max(out.streamed, streamed / level.rate * (prefetched ? k.prefetched : 1));
    out.waited += waited / level.rate;
  }
  return out;
}

}  // namespace tensorsmith::space
