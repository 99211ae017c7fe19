#include "sched/trace_traits.h"

#include <algorithm>

namespace tensorsmith::sched {

bool uses_winograd(const Trace& trace) {
  return std::any_of(trace.steps.begin(), trace.steps.end(),
                     [](const Step& step) { return std::holds_alternative<Winograd>(step); });
}

bool uses_winograd(std::string_view trace_text) {
  const auto trace = parse_trace(trace_text);
  return trace.ok() && uses_winograd(*trace);
}

}  // namespace tensorsmith::sched
