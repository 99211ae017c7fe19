// A record's steps as TLM (OSDI 2024) reads them: a sketch, and what is decided in it.
#pragma once

#include <optional>
#include <vector>

#include "sched/step.h"

namespace tensorsmith::record {

// The sketch ends with the last step that makes stages or loops (TVM's sketch rules make those): cache and rfactor steps,
// splits, reorders. What follows is placement: where stages are computed, which loops are fused, parallel, vectorized,
// bound to threads, unrolled. It names loops by positions that depend on each other, so it is one decision of several
// steps, not a number a step.
struct AnsorParts {
  sched::Trace sketch;           // lengths of splits are 1, limits of unrolling 0
  sched::Trace placement;        // limits of unrolling are 0
  std::vector<int64_t> numbers;  // lengths of splits and limits of unrolling, in the order of the steps
  friend bool operator==(const AnsorParts&, const AnsorParts&) = default;
};

AnsorParts split_trace(const sched::Trace& trace);
// The inverse. Nothing: there are more or fewer numbers than the steps have.
std::optional<sched::Trace> join_trace(const AnsorParts& parts);

// How many numbers a step has: the lengths of a split, one limit of unrolling.
size_t numbers_of(const sched::Step& step);
// Sets the number at `place` of these.
void set_number(sched::Step& step, size_t place, int64_t value);

}  // namespace tensorsmith::record
