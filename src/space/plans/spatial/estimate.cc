#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parallel.h"
#include "space/estimate/plan_number.h"
#include "space/plans/spatial/spatial_plan.h"

namespace tensorsmith::space {

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
  for (const auto& read : reads_) {
    // An index that repeats (like i / 2) is a single element for a vector inside a block.
    const bool repeats =
        !read.affine && vectorized && read.blocked && read.block_of(vector_axis_) % vector == 0;
    if (read.affine || repeats)
      per_vector += is_strided(read) ? v * k.strided_element
                                     : std::ceil(v / full) * (read.guarded ? k.guarded_vector : 1);
    else
      per_vector += v * k.gathered_element;
  }
  double vectors = points / v;
  if (!is_flat(d) && v < e) vectors *= std::ceil(e / v) * v / e;
  double cycles = vectors * per_vector + points / std::max(1.0, width * unrolled(d)) * k.vector_step;
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
  // Strided reads fetch a cache line per element unless neighbours are used soon (tiles).
  double bytes = points * info_.element_bytes;
  for (const auto& read : reads_) {
    double factor = 1;
    if (is_strided(read)) factor = tiled_ ? k.strided_lines_tiled : k.strided_lines;
    bytes += points * context_.stage(read.producer).element_bytes * factor;
  }
  if (parts != nullptr) parts->bytes = std::log2(std::max(1.0, bytes));
  const double moved =
      bytes / (bytes > k.usable_once * m.l2_bytes ? m.rates.l3_bytes_per_cycle : m.rates.l2_bytes_per_cycle);
  if (parts != nullptr) (bytes > k.usable_once * m.l2_bytes ? parts->from_beyond : parts->from_l2) = moved;
  // Vectors of 3, 24, 49, ... lanes end in a piece that is accessed under a mask or in smaller pieces.
  const bool odd = vector % lanes_ != 0 && (vector & (vector - 1)) != 0;
  if (odd) cycles *= m.masked_memory ? k.odd_lanes_masked : k.odd_lanes;
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
