#include "learn/net/step_sequence.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::learn::net {

namespace {

template <class T>
constexpr bool kIsList = false;
template <class T>
constexpr bool kIsList<std::vector<T>> = true;

void add(std::vector<int64_t>& out, const sched::LayoutDim& digit) {
  out.insert(out.end(), {digit.dim, digit.divisor, digit.extent});
}
template <class T>
void add(std::vector<int64_t>& out, const T& value) {
  out.push_back(static_cast<int64_t>(value));
}

// Appends the step's fields in their order, with lists last, because they may be cropped.
template <class S>
void add_fields(std::vector<int64_t>& out, const S& step) {
  for (const bool lists : {false, true}) {
    sched::for_each_field(step, [&]<class T>(std::string_view, const T& value) {
      if (kIsList<T> != lists) return;
      if constexpr (kIsList<T>) {
        for (const auto& item : value) add(out, item);
      } else {
        add(out, value);
      }
    });
  }
}

}  // namespace

int encode_steps(const sched::Trace& trace, const StepOptions& options, std::vector<float>& out) {
  const size_t steps = std::min<size_t>(trace.steps.size(), options.max_steps);
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < steps; ++i) {
    const size_t at = out.size();
    out.resize(at + options.width(), 0.0F);
    out[at + trace.steps[i].index()] = 1;
    numbers.clear();
    std::visit([&](const auto& step) { add_fields(numbers, step); }, trace.steps[i]);
    const size_t kept = std::min<size_t>(numbers.size(), options.numbers);
    for (size_t n = 0; n < kept; ++n) {
      const double x = numbers[n];
      const double value = options.log_numbers ? std::copysign(std::log2(1 + std::abs(x)), x) : x;
      out[at + kStepTypes + n] = value;
    }
  }
  if (steps > 0) return static_cast<int>(steps);
  out.resize(out.size() + options.width(), 0.0F);
  return 1;
}

}  // namespace tensorsmith::learn::net
