// What reads and tails cost, whatever the plan.
#pragma once

#include <cstdint>

#include "sched/step.h"

namespace tensorsmith::space {

// Cycles to read `length` elements that lie `stride` apart into vectors of `lanes`: contiguous vectors,
// vectors that are shuffled together, or single elements.
double read_cycles(int64_t stride, double length, double lanes);

// Predicated tails decide in every iteration, lane by lane in vectors: how much slower a loop of this length
// gets. Peeled tails cost next to nothing.
double tail_factor(int64_t extent, int64_t tile, bool vectorized, sched::TailPolicy tail);

}  // namespace tensorsmith::space
