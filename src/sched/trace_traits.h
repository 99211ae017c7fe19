// What a trace does, without replaying it.
#pragma once

#include <string_view>

#include "sched/step.h"

namespace tensorsmith::sched {

// Whether a step replaces sums by others that round differently. Text that does not parse uses nothing.
bool uses_winograd(const Trace& trace);
bool uses_winograd(std::string_view trace_text);

}  // namespace tensorsmith::sched
