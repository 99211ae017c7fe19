// Bytes that cross each cache level below the loops of a tiled plan, and the data that a register
// tile waits for.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

double TiledPlan::bytes_of(const Operand& operand) const { return read_bytes(info_, operand.read); }

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

// The loops outside the register tiles of a choice, and the data that they move through the caches.
class TiledPlan::CacheWalk {
 public:
  CacheWalk(const TiledPlan& plan, const Choice& c) : plan_(plan), c_(c) {
    const auto add = [&](AxisId axis, double trips) {
      if (trips > 1) loops_.push_back({axis, trips});
    };
    // A peeled tail only moves its own data.
    const auto passes = [&](double length, double tile) {
      return c.tail == sched::TailPolicy::kPeel ? length / tile : std::ceil(length / tile);
    };
    for (const AxisId a : c.outer_order) add(a, passes(plan.extent(a), c.tile(a)));
    if (!c.attach_outer)
      for (const AxisId a : plan.live_) add(a, c.t1[a]);
    if (plan.two_level_)
      for (const AxisId r : c.reduce_order) add(r, passes(plan.extent(r), c.r1[r]));
    for (const AxisId a : plan.live_) add(a, passes(c.region[a], c.t3[a]));
    for (const AxisId r : c.reduce_order) add(r, plan.inner_steps(c, r));
    AxisRanges inner(plan.info_.num_axes(), 1);
    for (const AxisId a : plan.live_) inner[a] = c.register_length(a);
    ranges_.resize(loops_.size() + 1);
    ranges_[loops_.size()] = inner;
    for (size_t i = loops_.size(); i-- > 0;) {
      const auto [axis, trips] = loops_[i];
      const double whole = plan.extent(axis);
      inner[axis] = std::min(inner[axis] * trips, whole);
      ranges_[i] = inner;
    }
    in_memory_ = plan.self_ && !c.cache_write;
    for (const AxisId a : plan.live_) in_memory_ = in_memory_ || c.region[a] > c.t3[a];
  }

  // A processor waits for lines that share too few sets of L1, and for rows that are a page apart
  // in data that the second-level TLB does not cover (prefetchers do not cross pages, either). All
  // other data arrives while products are computed: prefetchers bring it into L2 faster than data
  // that is waited for, and scattered lines in a small area cost little. But prefetchers only
  // follow a limited number of streams: products of 18 scattered rows and one vector from L3 take
  // up to twice as long as those of 12 rows and two vectors, which need as much data.
  Traffic cycles() {
    // The index of L1 is a part of the page offset; that of the last level is hashed.
    const Level levels[] = {{m_.l1_bytes * k_.usable, m_.rates.l2_bytes_per_cycle, kPageBytes, k_.row_start},
                            {m_.l2_bytes * k_.usable, m_.rates.l3_bytes_per_cycle,
                             m_.l2_bytes / m_.rates.l2_ways, k_.row_start_beyond},
                            {m_.l3_bytes_per_core() * k_.usable_shared, m_.memory_bytes_per_cycle(), 0, 0}};
    for (const Level& level : levels) {
      find_depth(level);
      streamed_ = waited_ = 0;
      for (const auto& operand : plan_.operands_) move(operand, level);
      if (in_memory_) streamed_ += accumulator_passes() * accumulator_bytes();
      const bool from_l3 = &level == &levels[1];
      double& streams = &level == &levels[0] ? out_.from_l2 : out_.from_beyond;
      if (from_l3 && plan_.broadcast_streams(c_) > k_.prefetched_streams)
        waited_ += k_.not_prefetched * streamed_;
      streams += streamed_ / level.rate;
      out_.waited += waited_ / level.rate;
    }
    return out_;
  }

 private:
  struct Loop {
    AxisId axis;
    double trips;
  };
  struct Level {
    double bytes, rate, way_bytes;
    double row_start;  // cycles of waiting for the first line of a row, which no prefetcher fetches
  };

  AxisRanges touched_by(const Operand& operand) const {
    return plan_.footprint(operand.read, ranges_[depth_]);
  }

  double moved_bytes(const Operand& operand, const AxisRanges& touched, bool line_continues = false) const {
    const auto& producer = plan_.context_.stage(operand.read.producer);
    const double element = producer.element_bytes;
    double elements = 1;
    for (const double t : touched) elements *= t;
    if (rearranged(c_, operand) || line_continues) return elements * element;
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
    return elements / touched[last] * (row + std::min(m_.line_bytes, whole));
  }

  double accumulator_bytes() const {
    double bytes = in_memory_ ? 2 * plan_.info_.element_bytes : 0;
    for (const AxisId a : plan_.live_) bytes *= ranges_[depth_][a];
    return bytes;
  }

  // Sets depth_ to the outermost loop whose data fits into the level, or to the register tile if there is
  // no such loop.
  void find_depth(const Level& level) {
    for (depth_ = 0;; ++depth_) {
      double total = 0;
      for (const auto& operand : plan_.operands_) {
        const auto touched = touched_by(operand);
        const double bytes = moved_bytes(operand, touched);
        total += rearranged(c_, operand) ? bytes : plan_.occupied(operand, touched, bytes, level.way_bytes);
      }
      total += accumulator_bytes() / 2;
      fits_ = total <= level.bytes;
      if (fits_ || depth_ == loops_.size()) break;
    }
  }

  // Returns how many times the loops outside depth_ move the operand.
  double passes(const Operand& operand) const {
    double times = 1;
    bool stays = true;  // until the first loop outside that moves the operand
    for (size_t i = depth_; i-- > 0;) {
      auto [axis, trips] = loops_[i];
      if (stays && !operand.read.depends_on(axis)) {
        // Over a blocked axis, the operand moves once per block.
        const int64_t block = operand.read.block_of(axis);
        if (block == 1) continue;
        trips = std::max(1.0, ranges_[i][axis] / block);
        if (trips == 1) continue;
      }
      stays = false;
      // The data of a peeled tail is smaller only along its own axis.
      times *= operand.read.depends_on(axis) ? trips : std::ceil(trips);
    }
    return times;
  }

  double accumulator_passes() const {
    double times = 1;
    bool stays = true;
    for (size_t i = depth_; i-- > 0;) {
      if (stays && plan_.info_.is_reduce(loops_[i].axis)) continue;
      stays = false;
      times *= loops_[i].trips;
    }
    return times;
  }

  // Adds the bytes of an operand that come from beyond the level.
  void move(const Operand& operand, const Level& level) {
    const double times = passes(operand);
    const auto touched = touched_by(operand);
    // The next pass of the innermost loop outside continues in the same cache lines.
    const double element = plan_.context_.stage(operand.read.producer).element_bytes;
    const bool along = fits_ && depth_ > 0 && operand.read.affine &&
                       operand.read.depends_on(loops_[depth_ - 1].axis) &&
                       std::abs(operand.read.stride(loops_[depth_ - 1].axis)) * element < m_.line_bytes;
    const bool innermost = depth_ == loops_.size();
    const double moved = times * moved_bytes(operand, touched, along);
    if (innermost && plan_.keeps_rows(c_, operand)) {
      const double rows =
          plan_.conflicting_rows(c_, operand, touched, level.way_bytes, level.bytes / k_.usable);
      waited_ += k_.conflict * times * rows * m_.line_bytes;
      streamed_ += moved;
    } else if (rearranged(c_, operand) || along || touched.empty() ||
               touched.back() * element >= k_.stream_bytes) {
      streamed_ += moved;
      // No prefetcher follows rows from page to page. (Code generation prefetches what vectors
      // read.)
      const bool in_all_lanes = !c_.vector_axis.valid() || !operand.read.depends_on(c_.vector_axis);
      if (!touched.empty() && !rearranged(c_, operand) && in_all_lanes &&
          plan_.row_distance(operand) >= kPageBytes) {
        double rows = 1;
        for (const double t : touched) rows *= t;
        out_.waited += times * (rows / touched.back()) * level.row_start;
      }
    } else if (innermost && plan_.occupied(operand, touched, 0, level.way_bytes) > level.bytes / k_.usable) {
      waited_ += k_.conflict * moved;
    } else if (plan_.row_distance(operand) >= kPageBytes / 2) {
      waited_ += (plan_.bytes_of(operand) > m_.rates.tlb_bytes ? 1 : k_.tlb_hit) * moved;
    } else {
      streamed_ += k_.near_lines * moved;
    }
  }

  const TiledPlan& plan_;
  const Choice& c_;
  const EstimateMachine& m_ = plan_.context_.machine;
  const Constants& k_ = m_.fitted();
  std::vector<Loop> loops_;         // from outer to inner
  std::vector<AxisRanges> ranges_;  // for each loop, of the axes inside it; the last are of the register tile
  bool in_memory_ = false;          // accumulators leave the registers, so they go through the caches
  Traffic out_;
  // State at the current level, which holds the data of the loops from depth_ on.
  size_t depth_ = 0;
  bool fits_ = false;                 // false if not even the data of the register tile fits
  double streamed_ = 0, waited_ = 0;  // bytes that come from beyond the level
};

TiledPlan::Traffic TiledPlan::traffic_cycles(const Choice& c) const { return CacheWalk(*this, c).cycles(); }

}  // namespace tensorsmith::space
