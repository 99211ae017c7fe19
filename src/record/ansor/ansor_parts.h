// Splits a record's steps into a sketch and its decisions, as TLM (OSDI 2024) does.
#pragma once

#include <optional>
#include <vector>

#include "sched/step.h"

namespace tensorsmith::record {

// The sketch ends with the last step that makes stages or loops (only TVM's sketch rules make
// these): cache and rfactor steps, splits, reorders. The following steps are the placement: where
// stages are computed, and which loops are fused, parallel, vectorized, bound to threads or
// unrolled. These steps name loops by positions that depend on each other, so the placement is one
// decision of several steps rather than one number per step.
struct AnsorParts {
  sched::Trace sketch;           // with split lengths of 1 and unroll limits of 0
  sched::Trace placement;        // with unroll limits of 0
  std::vector<int64_t> numbers;  // split lengths and unroll limits in the order of the steps
  friend bool operator==(const AnsorParts&, const AnsorParts&) = default;
};

AnsorParts split_trace(const sched::Trace& trace);
// The inverse of split_trace(); nullopt if the steps need more or fewer numbers.
std::optional<sched::Trace> join_trace(const AnsorParts& parts);

// The number of numbers in a step: the lengths of a split, or one unroll limit.
size_t numbers_of(const sched::Step& step);
// Sets the step's number with index `place`.
void set_number(sched::Step& step, size_t place, int64_t value);

}  // namespace tensorsmith::record
