// Costs of reads, copies and tails that all plans share.
#pragma once

#include <cstdint>

#include "sched/step.h"
#include "space/estimate/machine.h"

namespace tensorsmith::space {

// Returns the cycles to read `length` elements that lie `stride` apart into vectors of `lanes`: as
// contiguous vectors, as vectors that are shuffled together, or element by element.
double read_cycles(const EstimateMachine& machine, int64_t stride, double length, double lanes);

// Returns the factor by which a tail slows down a loop of `extent` iterations in tiles of `tile`.
// Predicated tails evaluate a condition in every iteration, per lane if vectorized; peeled tails
// cost almost nothing. `masked`: the largest factor on machines with masked vectors.
double tail_factor(const EstimateMachine& machine, int64_t extent, int64_t tile, bool vectorized,
                   sched::TailPolicy tail, double masked);

// Returns the bytes per cycle of a stream from the innermost cache outside L1 that holds its data,
// else from memory. `bytes`: size of the data together with everything else that is used meanwhile.
// `usable`: share of a cache that can be filled before data is evicted.
double stream_rate(const EstimateMachine& machine, double bytes, double usable);
// The first uses the constant `usable`, for data that is used again. The second is for data that
// cannot be in L2.
double stream_rate(const EstimateMachine& machine, double bytes);
double stream_rate_beyond_l2(const EstimateMachine& machine, double bytes);

// Returns the cycles to write a result of `bytes`, whose cache lines are read before they are
// written. `all_bytes`: its size together with that of the operands.
double written_cycles(const EstimateMachine& machine, double bytes, double all_bytes);

// Returns the cycles to pad a tensor of `points` elements before it is read.
double pad_cycles(const EstimateMachine& machine, double points, int element_bytes, int threads);
// Returns the cycles to copy a tensor, in vectors if `vectors`, else element by element.
double copy_cycles(const EstimateMachine& machine, double points, int element_bytes, bool vectors,
                   int threads);

}  // namespace tensorsmith::space
