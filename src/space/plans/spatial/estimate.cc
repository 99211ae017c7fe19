#include <algorithm>
#include <cmath>
#include <numeric>

#include "space/estimate/access.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parallel.h"
#include "space/estimate/plan_number.h"
#include "space/plans/spatial/spatial_plan.h"

namespace tensorsmith::space {

double SpatialPlan::tile_length(Decisions d, AxisId axis) const {
  const auto extent = static_cast<double>(info_.extent(axis));
  if (axis == vector_axis_) return std::min(extent, static_cast<double>(vector_length(d) * unrolled(d)));
  return tile_slots_[axis] == kNone ? 1 : static_cast<double>(lengths(d, tile_slots_[axis])[0]);
}

// The elements of a line are used one after the other by the loop over the axis along which the read is
// contiguous. The line is still in L1 if the lines between two steps of that loop find room there. With a
// stride of 2048 bytes, for example, all of them fall into two sets.
double SpatialPlan::fetched_lines(Decisions d, const Read& read) const {
  const auto& m = context_.machine;
  const double element_bytes = context_.stage(read.producer).element_bytes;
  const auto stride = static_cast<double>(std::abs(read.stride(vector_axis_))) * element_bytes;
  const double apart = std::min(1.0, stride / m.line_bytes);  // lines from one lane to the next
  const auto unit = std::ranges::find_if(
      live_, [&](AxisId a) { return a != vector_axis_ && std::abs(read.stride(a)) == 1; });
  if (unit == live_.end()) return apart;
  // Without a tile along this axis, the loops inside its own are those over whole axes.
  const bool tiled = tile_length(d, *unit) > 1;
  const double run = tiled ? tile_length(d, *unit) : static_cast<double>(info_.extent(*unit));
  const auto length = [&](AxisId a) {
    return tiled ? tile_length(d, a) : static_cast<double>(info_.extent(a));
  };
  double between = length(vector_axis_) * apart;
  for (auto a = std::next(unit); a != live_.end(); ++a)
    if (*a != vector_axis_ && read.stride(*a) != 0) between *= length(*a);
  const auto way = static_cast<int64_t>(kPageBytes);
  const double sets = std::min(static_cast<double>(way) / m.line_bytes,
                               static_cast<double>(way / std::gcd(static_cast<int64_t>(stride), way)));
  const double ways = m.l1_bytes / kPageBytes;
  // Caches do not replace exactly the oldest line: some remain even if there are twice as many as ways.
  const double missing = std::clamp((between / sets - ways) / (m.fitted().overfull_sets * ways), 0.0, 1.0);
  const double used = std::min(run, m.line_bytes / element_bytes);
  return apart * ((1 - missing) / used + missing);
}

double SpatialPlan::estimate(Decisions d, EstimateParts* parts) const {
  const auto& m = context_.machine;
  const Constants& k = m.fitted();
  const double points = info_.spatial_points() * info_.reduce_points();
  const bool vectorized = vector_axis_.valid();
  const int64_t vector = !vectorized ? 1 : is_flat(d) ? flat_length(d) : vector_length(d);
  const int64_t row = vectorized ? info_.extent(vector_axis_) : 1;
  const double v = vector, e = row, full = lanes_;
  const auto is_strided = [&](const Read& read) {
    return vectorized && read.affine && std::abs(read.stride(vector_axis_)) > 1;
  };
  const double width = std::min(v, full);
  double per_vector = info_.flops_per_point * std::ceil(v / full) + 1;
  double strided = 0, lines = 0;  // cycles of a vector for strided elements; lines fetched for it
  for (const auto& read : reads_) {
    // An index that repeats (like i / 2) is a single element for a vector inside a block.
    const bool repeats =
        !read.affine && vectorized && read.blocked && read.block_of(vector_axis_) % vector == 0;
    if (read.affine || repeats)
      if (is_strided(read)) {
        strided += v * k.elementwise_strided;
        if (!is_flat(d)) lines += v * fetched_lines(d, read);
      } else {
        per_vector += std::ceil(v / full) * (read.guarded ? k.guarded_vector : 1);
      }
    else
      per_vector += v * k.gathered_element;
  }
  double vectors = points / v;
  if (!is_flat(d) && v < e) vectors *= std::ceil(e / v) * v / e;
  // Vectors of 3, 24, 49, ... lanes end in a piece that is accessed under a mask or in smaller pieces.
  const bool odd = vector % lanes_ != 0 && (vector & (vector - 1)) != 0;
  if (odd) per_vector *= m.masked_memory ? k.odd_lanes_masked : k.odd_lanes;
  lines *= vectors;
  double cycles = vectors * (per_vector + strided) + lines * k.strided_line +
                  points / std::max(1.0, width * unrolled(d)) * k.vector_step;
  if (parts != nullptr) {
    parts->plan = plan_number(PlanNumber::kSpatial);
    parts->arithmetic = cycles;
    parts->lanes = v;
    parts->lane_share = v / (std::ceil(v / full) * full);
    parts->unrolled = std::log2(std::max<double>(1, static_cast<double>(unrolled(d))));
    parts->loads = static_cast<double>(reads_.size());
    for (const auto& read : reads_) parts->shuffles += is_strided(read) || !read.affine ? 1 : 0;
    parts->buffered = tiled_ ? 1 : 0;
    parts->outer_attached = is_flat(d) ? 1 : 0;
    parts->row = std::log2(std::max(1.0, e * info_.element_bytes));
    parts->wasted = !is_flat(d) && v < e ? 1 - e / (std::ceil(e / v) * v) : 0;
    parts->epilogue = info_.flops_per_point;
    double tile = 1;
    if (!is_flat(d))
      for (const AxisId a : live_) {
        const double length =
            tile_slots_[a] == kNone ? 1.0 : static_cast<double>(lengths(d, tile_slots_[a])[0]);
        tile *= length;
        for (const auto& read : reads_)
          if (is_strided(read) && std::abs(read.stride(a)) == 1)
            parts->source_row = std::log2(std::max(1.0, length));
      }
    parts->rows = std::log2(tile);
  }
  double bytes = points * info_.element_bytes + lines * m.line_bytes;
  for (const auto& read : reads_)
    if (!is_strided(read)) bytes += points * context_.stage(read.producer).element_bytes;
  if (parts != nullptr) parts->bytes = std::log2(std::max(1.0, bytes));
  const double moved =
      bytes / (bytes > k.usable_once * m.l2_bytes ? m.rates.l3_bytes_per_cycle : m.rates.l2_bytes_per_cycle);
  if (parts != nullptr) (bytes > k.usable_once * m.l2_bytes ? parts->from_beyond : parts->from_l2) = moved;
  cycles = overlapped(cycles, moved, k.not_hidden);
  // A condition is evaluated for each vector.
  if (!is_flat(d) && vectorized && row % (vector_length(d) * unrolled(d)) != 0 &&
      category(d, tail_slot_) == 0) {
    cycles *= k.tail_spatial;
    if (parts != nullptr) parts->tail = std::log(k.tail_spatial);
  }
  ParallelLoop loop;
  const bool short_tail = category(d, tail_slot_) == 1;
  if (is_flat(d)) {
    const double all = info_.spatial_points();
    if (parallel(d) > 0) loop.add_axis(all, std::min(all, v * flat_chunk(d)), short_tail);
  } else {
    size_t count = 0;
    for (const AxisId a : live_) {
      if (count++ >= parallel(d)) break;
      const double t = a == vector_axis_         ? v * unrolled(d)
                       : tile_slots_[a] == kNone ? 1.0
                                                 : lengths(d, tile_slots_[a])[0];
      const double length = info_.extent(a);
      loop.add_axis(length, std::min(length, t), short_tail);
    }
  }
  if (parts != nullptr) {
    parts->peeled = short_tail ? 1 : 0;
    set_loop_parts(loop, context_.threads(), *parts);
  }
  return cycles * m.seconds_per_cycle() / loop.speedup(context_.threads()) +
         (loop.iterations() > 1 ? m.fork_seconds() : 0);
}

}  // namespace tensorsmith::space
