#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/parallel.h"
#include "space/plans/spatial/spatial_plan.h"

namespace tensorsmith::space {

double SpatialPlan::estimate(Decisions d) const {
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
  // Strided reads fetch a cache line per element unless neighbours are used soon (tiles).
  double bytes = points * info_.element_bytes;
  for (const auto& read : reads_) {
    double factor = 1;
    if (is_strided(read)) factor = tiled_ ? k.strided_lines_tiled : k.strided_lines;
    bytes += points * context_.stage(read.producer).element_bytes * factor;
  }
  cycles = std::max(cycles, bytes / (bytes > k.usable_once * m.l2_bytes ? m.rates.l3_bytes_per_cycle
                                                                        : m.rates.l2_bytes_per_cycle));
  // A condition is evaluated for each vector.
  if (!is_flat(d) && vectorized && row % (vector_length(d) * unrolled(d)) != 0 &&
      category(d, tail_slot_) == 0)
    cycles *= k.tail_spatial;
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
  return cycles * m.seconds_per_cycle() / loop.speedup(context_.threads()) +
         (loop.iterations() > 1 ? m.fork_seconds() : 0);
}

}  // namespace tensorsmith::space
