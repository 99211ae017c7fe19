#include <algorithm>

#include "space/plan_steps.h"
#include "space/plans/winograd/winograd_plan.h"

namespace tensorsmith::space {

void WinogradPlan::sample(Rng& rng, std::span<int64_t> d) const {
  Plan::sample(rng, d);
  // The register tile: whole vectors of channels, then as many tiles as there are registers for.
  const int64_t lanes = context_.machine.lanes(4);
  const int64_t vectors = std::max<int64_t>(out_channels_ / lanes, 1);
  // Mostly tiles that divide, since others need the code twice.
  constexpr double kDivides = 0.85;
  int64_t across = rng.uniform_int(1, std::min<int64_t>(vectors, 4));
  if (rng.bernoulli(kDivides)) across = largest_divisor(vectors, across);
  set_length(d, c_slot_, 0, out_channels_ < lanes ? out_channels_ : across * lanes);
  const int64_t room = std::max<int64_t>(1, rng.uniform_int(4, context_.machine.registers - 2) / across);
  int64_t wide = std::min(room, tiles_w_);
  if (rng.bernoulli(kDivides)) wide = largest_divisor(tiles_w_, wide);
  wide = set_length(d, w_slot_, 0, wide);
  set_length(d, h_slot_, 0, room / wide);
}

}  // namespace tensorsmith::space
