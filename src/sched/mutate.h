// Random changes of a trace's decisions: for searches that have a trace but no design space, such as records
// of other tools.
#pragma once

#include "base/rng.h"
#include "sched/step.h"

namespace tensorsmith::sched {

// A copy of the trace with one decision changed that still replays; positions in the other steps stay valid,
// because the number of loops and stages does not change:
//  - split: a factor moves between two of its loops, or one length is drawn anew (any value up to the extent
//    of what is split), or the tail policy flips;
//  - unroll: another of 0, 16, 64, 512;
//  - compute_at: another loop of the same target;
//  - annotate: unroll appears or disappears.
// Proposals that the checks refuse are drawn again, at most attempts times. Errors: kIllegal if the trace
// itself does not replay, kNotFound if it holds no decision or no change was legal.
Result<Trace> mutate(const Schedule& fresh, const Trace& trace, Rng& rng, int attempts = 32);

// One trace with the prefix of a and, where b has the same kind of step on the same loop, b's decision: each
// such step is taken from b with probability one half. Errors as for mutate(); the result replays.
Result<Trace> crossover(const Schedule& fresh, const Trace& a, const Trace& b, Rng& rng, int attempts = 8);

}  // namespace tensorsmith::sched
