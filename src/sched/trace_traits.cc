#include "sched/trace_traits.h"

#include <algorithm>
#include <variant>

#include "base/hash.h"

namespace tensorsmith::sched {

namespace {

template <class T>
void add_field(Hasher& hasher, const T& value) {
  if constexpr (std::is_same_v<T, Layout>) {
    hasher.add(value.size());
    for (const LayoutDim& dim : value) {
      add_field(hasher, dim.dim);
      add_field(hasher, dim.divisor);
      add_field(hasher, dim.extent);
    }
  } else if constexpr (requires { value.begin(); }) {
    hasher.add(value.size());
    for (const auto& element : value) add_field(hasher, element);
  } else {
    hasher.add(value);
  }
}

}  // namespace

uint64_t hash(const Trace& trace) {
  Hasher hasher;
  for (const Step& step : trace.steps) {
    hasher.add(step.index());
    std::visit(
        [&](const auto& s) {
          for_each_field(s, [&](std::string_view, const auto& value) { add_field(hasher, value); });
        },
        step);
  }
  return hasher.digest64();
}

bool uses_winograd(const Trace& trace) {
  return std::any_of(trace.steps.begin(), trace.steps.end(),
                     [](const Step& step) { return std::holds_alternative<Winograd>(step); });
}

bool uses_winograd(std::string_view trace_text) {
  const auto trace = parse_trace(trace_text);
  return trace.ok() && uses_winograd(*trace);
}

}  // namespace tensorsmith::sched
