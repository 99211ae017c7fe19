#include <algorithm>

#include "space/plan_steps.h"
#include "space/plans/window/window_plan.h"

namespace tensorsmith::space {

void WindowPlan::sample(Rng& rng, std::span<int64_t> d) const {
  Plan::sample(rng, d);
  if (rng.bernoulli(0.15)) return;
  // Vectors that leave no tail, or full ones; one vector or the whole row; as many rows as the
  // limit of unrolled code allows.
  const int64_t e = extent(vector_axis_);
  int64_t v = vector_lanes(e, lanes_);
  if (v * 2 <= std::min(e, lanes_) || rng.bernoulli(0.2)) v = std::min(e, lanes_);
  const int64_t whole = (e + v - 1) / v;
  const auto& slot = slots()[strip_slot_];
  const auto lengths = d.subspan(slot.offset, slot.width());
  lengths[1] = v;
  lengths[0] = rng.bernoulli(0.5) && e % v == 0 ? whole : 1;
  slot.tiles->fit(lengths, lengths);
  double room = kMaxUnrolled / info_.reduce_points() / lengths[0];
  for (size_t i = live_.size(); i-- > 0;) {
    const auto slot_of = tile_slot_[live_[i]];
    if (slot_of == kNone) continue;
    const int64_t rows = extent(live_[i]);
    int64_t t = rng.uniform_int(1, std::max<int64_t>(1, std::min(rows, static_cast<int64_t>(room))));
    if (rng.bernoulli(0.7))
      while (rows % t != 0) --t;
    room /= set_length(d, slot_of, 0, t);
  }
}

}  // namespace tensorsmith::space
