// What reads, copies and tails cost, whatever the plan.
#pragma once

#include <cstdint>

#include "sched/step.h"
#include "space/estimate/machine.h"

namespace tensorsmith::space {

// Cycles to read `length` elements that lie `stride` apart into vectors of `lanes`: contiguous vectors,
// vectors that are shuffled together, or single elements.
double read_cycles(const Machine& machine, int64_t stride, double length, double lanes);

// Predicated tails decide in every iteration, lane by lane in vectors: how much slower a loop of this length
// gets. Peeled tails cost next to nothing. masked: the most where vectors have masks.
double tail_factor(const Machine& machine, int64_t extent, int64_t tile, bool vectorized,
                   sched::TailPolicy tail, double masked);

// Bytes a cycle that a stream moves whose data take `bytes` together with what is used meanwhile: from the
// innermost cache outside L1 that keeps them, or memory. usable: the share of a cache that keeps them.
double stream_rate(const Machine& machine, double bytes, double usable);
// The same of what comes again (constant `usable`), and of that which cannot be in L2.
double stream_rate(const Machine& machine, double bytes);
double stream_rate_beyond_l2(const Machine& machine, double bytes);

// Cycles that the lines of a result of `bytes` take, which are read before they are written. all_bytes: with the operands.
double written_cycles(const Machine& machine, double bytes, double all_bytes);

// Cycles to pad a tensor of `points` before it is read.
double pad_cycles(const Machine& machine, double points, int element_bytes, int threads);
// To copy them in vectors; false: element by element.
double copy_cycles(const Machine& machine, double points, int element_bytes, bool vectors, int threads);

}  // namespace tensorsmith::space
