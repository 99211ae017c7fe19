// Properties of a trace that are determined without replaying it.
#pragma once

#include <cstdint>
#include <string_view>

#include "sched/step.h"

namespace tensorsmith::sched {

// Returns a hash that identifies the program of a task: equal traces have equal hashes, and two different
// traces have the same hash with a probability of 2^-64.
uint64_t hash(const Trace& trace);

// Return whether a step replaces sums by others that round differently. The result is false for
// text that does not parse.
bool uses_winograd(const Trace& trace);
bool uses_winograd(std::string_view trace_text);

}  // namespace tensorsmith::sched
