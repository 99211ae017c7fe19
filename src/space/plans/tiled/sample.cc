#include <algorithm>

#include "space/plans/tiled/tiled_plan.h"

namespace tensorsmith::space {

void TiledPlan::sample(Rng& rng, std::span<int64_t> d) const {
  Plan::sample(rng, d);
  if (vector_axes_.empty() || rng.bernoulli(0.15)) return;
  if (sample_matrix_tile(rng, d)) return;
  // The register tile: whole vectors on the vector axis, the other axes grow until the wanted number of
  // accumulators is reached.
  const Choice c = decode(d);
  const AxisId v = c.vector_axis;
  const int64_t lanes = context_.machine.lanes(info_.element_bytes);
  const auto set_inner = [&](AxisId axis, int64_t wanted) {
    const size_t slot = tile_slot_[axis];  // outer lengths shrink to fit
    return set_length(d, slot, slots()[slot].width() - 1, wanted);
  };
  const int64_t whole = extent(v) / lanes;
  int64_t vectors = 1;
  if (whole >= 1) {
    vectors = rng.uniform_int(1, std::min<int64_t>(whole, 4));
    set_inner(v, vectors * lanes);
  } else {
    set_inner(v, extent(v));
  }
  const int64_t wanted = rng.uniform_int(4, context_.machine.registers - 2);
  int64_t room = std::max<int64_t>(1, wanted / vectors);
  std::vector<AxisId> others;
  for (const AxisId a : live_)
    if (a != c.vector_axis) others.push_back(a);
  // One axis takes most of the room, sometimes two share it.
  for (size_t i = others.size(); i > 1; --i) std::swap(others[i - 1], others[rng.below(i)]);
  for (size_t i = 0; i < others.size(); ++i) {
    int64_t take = 1;
    if (room > 1) take = i == 0 && rng.bernoulli(0.7) ? room : rng.uniform_int(1, room);
    const AxisId axis = others[i];
    if (take > 1 && rng.bernoulli(0.6)) {
      // The largest divisor that fits leaves no tail.
      for (int64_t t = take; t >= 1; --t)
        if (extent(axis) % t == 0) {
          if (t * 2 > take) take = t;
          break;
        }
    }
    room /= set_inner(axis, take);
    room = std::max<int64_t>(room, 1);
  }
}

}  // namespace tensorsmith::space
