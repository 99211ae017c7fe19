#include <array>

#include "space/plans/gpu_tiled/gpu_tiled_plan.h"

namespace tensorsmith::space {

namespace {

// The lengths of an axis, which grow by small factors.
struct Growing {
  const Slot* slot;
  std::span<int64_t> lengths;
  int64_t cap(size_t part) const {
    const int64_t most = slot->decision.max_innermost;
    return part + 1 == lengths.size() && most > 0 ? most : slot->decision.extent;
  }
  // Returns a factor that leaves no tail, else 2; 0 if the part cannot grow.
  int64_t factor(size_t part) const {
    int64_t all = 1;
    for (const int64_t l : lengths) all *= l;
    const int64_t extent = slot->decision.extent;
    for (const int64_t f : {2, 3, 5, 7, 11, 13})
      if (extent % (all * f) == 0 && lengths[part] * f <= cap(part)) return f;
    if (2 * all > extent || 2 * lengths[part] > cap(part)) return 0;
    lengths[part] *= 2;
    const bool legal = slot->tiles->contains(lengths);
    lengths[part] /= 2;
    return legal ? 2 : 0;
  }
};

// Multiplies the lengths of this part until their product reaches the target or none can grow.
void grow(Rng& rng, std::vector<Growing>& axes, size_t part, int64_t target, double favour_last) {
  int64_t product = 1;
  while (product < target) {
    std::vector<double> weights;
    double any = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const double weight = i + 1 == axes.size() ? favour_last : 1;
      weights.push_back(axes[i].factor(part) > 0 ? weight : 0);
      any += weights.back();
    }
    if (any == 0) return;
    Growing& axis = axes[rng.weighted(weights)];
    const int64_t factor = axis.factor(part);
    if (product * factor > target + target / 2) return;
    axis.lengths[part] *= factor;
    product *= factor;
  }
}

template <size_t N>
int64_t power(Rng& rng, const std::array<double, N>& weights) {
  return int64_t{1} << rng.weighted(weights);
}

}  // namespace

// Draws mostly programs as people write them: whole warps, tens of accumulators, chunks of some
// tens of points.
void GpuTiledPlan::sample(Rng& rng, std::span<int64_t> d) const {
  Plan::sample(rng, d);
  if (live_.empty() || rng.bernoulli(0.1)) return;
  const auto axes_of = [&](const std::vector<AxisId>& list) {
    std::vector<Growing> axes;
    for (const AxisId a : list) {
      const auto& slot = slots()[tile_slot_[a]];
      axes.push_back({&slot, d.subspan(slot.offset, slot.width())});
      std::ranges::fill(axes.back().lengths, 1);
    }
    return axes;
  };
  const auto& m = context_.machine.gpu;
  std::vector<Growing> spatial = axes_of(live_);
  // Mostly the innermost registers first, so that the rest of a short axis goes to threads.
  const int64_t threads = m.warp * power(rng, std::array{0.5, 1.0, 2.0, 2.0, 0.5});
  const bool registers_first = rng.bernoulli(0.6);
  const int64_t inner = power(rng, std::array{1.0, 1.0, 2.0, 1.0, 1.0});
  const int64_t outer = power(rng, std::array{2.0, 1.0, 1.0, 0.5});
  if (registers_first) grow(rng, spatial, 3, inner, 1);
  grow(rng, spatial, 1, std::min(threads, m.max_threads), 2);
  if (!registers_first) grow(rng, spatial, 3, inner, 1);
  grow(rng, spatial, 2, outer, 1);
  grow(rng, spatial, 0, std::min(power(rng, std::array{1.0, 1.0, 1.0, 0.5}), m.max_vthreads), 1);
  std::vector<Growing> reduce = axes_of(live_reduce_);
  grow(rng, reduce, 1, power(rng, std::array{1.0, 1.0, 1.0, 1.0}), 1);
  grow(rng, reduce, 0, power(rng, std::array{0.5, 1.0, 1.0, 1.0, 0.5}), 1);
}

}  // namespace tensorsmith::space
