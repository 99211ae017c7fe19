#include <algorithm>

#include "space/plans/attention/attention_plan.h"

namespace tensorsmith::space {

void AttentionPlan::sample(Rng& rng, std::span<int64_t> d) const {
  Plan::sample(rng, d);
  const int64_t lanes = context_.machine.lanes(4);
  // Register tiles of whole vectors and as many rows as there are registers for; blocks of whole tiles.
  int64_t rows = 1;
  for (const auto& [slots, columns] : {std::pair{&score_slots_, keys_}, std::pair{&product_slots_, width_}}) {
    const int64_t across = rng.uniform_int(1, std::clamp<int64_t>(columns / lanes, 1, 4));
    set_length(d, slots->columns, 0, columns < lanes ? columns : across * lanes);
    rows = set_length(d, slots->rows, 0,
                      std::min(rng.uniform_int(4, context_.machine.registers - 2) / across,
                               rng.bernoulli(0.5) ? rows : queries_));
  }
  set_length(d, rows_slot_, 0, rows * rng.uniform_int(1, 4));
}

}  // namespace tensorsmith::space
