// Properties of a trace that are determined without replaying it.
#pragma once

#include <string_view>

#include "sched/step.h"

namespace tensorsmith::sched {

// Return whether a step replaces sums by others that round differently. The result is false for
// text that does not parse.
bool uses_winograd(const Trace& trace);
bool uses_winograd(std::string_view trace_text);

}  // namespace tensorsmith::sched
