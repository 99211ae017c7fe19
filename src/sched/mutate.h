// Random changes of a trace's decisions, for searches that have a trace but no design space, such
// as records of other tools.
#pragma once

#include "base/rng.h"
#include "sched/step.h"

namespace tensorsmith::sched {

// Returns a copy of the trace that has one decision changed and still replays. Positions in the
// other steps stay valid, because the number of loops and stages does not change:
//  - split: a factor moves between two of its loops, or one length is drawn anew, or the tail policy flips;
//  - unroll: another of 0, 16, 64, 512;
//  - compute_at: another loop of the same target;
//  - annotate: unroll appears or disappears.
// Proposals that the checks reject are drawn again, at most `attempts` times. Errors: kIllegal if
// the trace itself does not replay, kNotFound if it contains no decision or no change was legal.
Result<Trace> mutate(const Schedule& fresh, const Trace& trace, Rng& rng, int attempts = 32);

// Combines two traces: returns a, with each step replaced with probability one half by b's decision
// if b has the same kind of step on the same loop. Errors as for mutate(); the result replays.
Result<Trace> crossover(const Schedule& fresh, const Trace& a, const Trace& b, Rng& rng, int attempts = 8);

}  // namespace tensorsmith::sched
