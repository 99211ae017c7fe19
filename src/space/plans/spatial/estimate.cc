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
  const double v = static_cast<double>(vector_axis_ < 0 ? 1 : is_flat(d) ? flat_length(d) : vector_length(d));
  const double full = static_cast<double>(lanes_);
  const double e =
      vector_axis_ < 0 ? 1 : static_cast<double>(info_.extents[static_cast<size_t>(vector_axis_)]);
  const double width = std::min(v, full);
  double per_vector = info_.flops_per_point * std::ceil(v / full) + 1;
  for (const auto& read : reads_) {
    const bool strided =
        read.affine && vector_axis_ >= 0 && std::abs(read.strides[static_cast<size_t>(vector_axis_)]) > 1;
    // An index that repeats (the one of i / 2) is one element for a vector inside a block.
    const bool repeats = !read.affine && vector_axis_ >= 0 && read.blocked &&
                         read.block_of(vector_axis_) % static_cast<int64_t>(v) == 0;
    if (read.affine || repeats)
      per_vector +=
          strided ? v * k.strided_element : std::ceil(v / full) * (read.guarded ? k.guarded_vector : 1);
    else
      per_vector += v * k.gathered_element;
  }
  double vectors = points / v;
  if (!is_flat(d) && v < e) vectors *= std::ceil(e / v) * v / e;
  double cycles =
      vectors * per_vector + points / std::max(1.0, width * static_cast<double>(unrolled(d))) * k.vector_step;
  // Strided reads fetch a cache line for each element unless neighbours are used soon (tiles).
  double bytes = points * info_.element_bytes;
  for (const auto& read : reads_) {
    double factor = 1;
    if (vector_axis_ >= 0 && read.affine && std::abs(read.strides[static_cast<size_t>(vector_axis_)]) > 1)
      factor = tiled_ ? k.strided_lines_tiled : k.strided_lines;
    bytes += points * context_.stage(read.producer).element_bytes * factor;
  }
  cycles = std::max(
      cycles, bytes / (bytes > k.usable_once * m.l2_bytes ? m.l3_bytes_per_cycle : m.l2_bytes_per_cycle));
  // A condition for each vector.
  if (!is_flat(d) && vector_axis_ >= 0 && static_cast<int64_t>(e) % (vector_length(d) * unrolled(d)) != 0 &&
      category(d, tail_slot_) == 0)
    cycles *= k.tail_spatial;
  ParallelLoop loop;
  const bool short_tail = category(d, tail_slot_) == 1;
  const size_t parallel = parallel_slot_ == kNone ? 0 : static_cast<size_t>(category(d, parallel_slot_));
  if (is_flat(d)) {
    const double all = info_.spatial_points();
    if (parallel > 0) loop.add_axis(all, std::min(all, v * static_cast<double>(flat_chunk(d))), short_tail);
  } else {
    size_t count = 0;
    for (int a : live_) {
      if (count++ >= parallel) break;
      const auto i = static_cast<size_t>(a);
      const double t = a == vector_axis_         ? v * static_cast<double>(unrolled(d))
                       : tile_slots_[i] == kNone ? 1.0
                                                 : static_cast<double>(lengths(d, tile_slots_[i])[0]);
      const auto length = static_cast<double>(info_.extents[i]);
      loop.add_axis(length, std::min(length, t), short_tail);
    }
  }
  return cycles * m.seconds_per_cycle / loop.speedup(context_.threads) +
         (loop.iterations() > 1 ? m.fork_seconds : 0);
}

}  // namespace tensorsmith::space
