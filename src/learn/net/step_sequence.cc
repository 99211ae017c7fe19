#include "learn/net/step_sequence.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::learn::net {

namespace {

// The parameters in the order of the step's members; lists last, because they may be cropped.
struct Numbers {
  std::vector<int64_t>& out;

  template <class... T>
  void add(T... x) const {
    (out.push_back(static_cast<int64_t>(x)), ...);
  }
  template <class T>
  void list(const std::vector<T>& items) const {
    out.insert(out.end(), items.begin(), items.end());
  }
  void operator()(const sched::Split& s) const {
    add(s.stage, s.iterator, s.inner_to_outer, s.tail);
    list(s.lengths);
  }
  void operator()(const sched::FollowSplit& s) const { add(s.stage, s.iterator, s.source_step, s.n_split); }
  void operator()(const sched::FollowFusedSplit& s) const {
    add(s.stage, s.iterator, s.level, s.factor);
    list(s.source_steps);
  }
  void operator()(const sched::Fuse& s) const {
    add(s.stage);
    list(s.iterators);
  }
  void operator()(const sched::Reorder& s) const {
    add(s.stage);
    list(s.order);
  }
  void operator()(const sched::Annotate& s) const { add(s.stage, s.iterator, s.annotation); }
  void operator()(const sched::Unroll& s) const { add(s.stage, s.auto_max_step); }
  void operator()(const sched::ComputeAt& s) const { add(s.stage, s.target_stage, s.target_iterator); }
  void operator()(const sched::ReverseComputeAt& s) const {
    add(s.stage, s.producer_stage, s.producer_iterator);
  }
  void operator()(const sched::ComputeInline& s) const { add(s.stage); }
  void operator()(const sched::ComputeRoot& s) const { add(s.stage); }
  void operator()(const sched::CacheRead& s) const {
    add(s.stage, s.scope);
    list(s.readers);
  }
  void operator()(const sched::CacheWrite& s) const { add(s.stage, s.scope); }
  void operator()(const sched::Rfactor& s) const { add(s.stage, s.iterator, s.factor_axis); }
  void operator()(const sched::DecomposeReduction& s) const { add(s.stage, s.iterator); }
  void operator()(const sched::StorageAlign& s) const { add(s.stage, s.iterator, s.factor, s.offset); }
  void operator()(const sched::PackLayout& s) const {
    add(s.stage);
    for (const sched::LayoutDim& d : s.layout) add(d.dim, d.divisor, d.extent);
  }
  void operator()(const sched::Winograd& s) const { add(s.stage, s.m); }
  void operator()(const sched::Dot& s) const { add(s.stage, s.iterator); }
};

}  // namespace

int encode_steps(const sched::Trace& trace, const StepOptions& options, std::vector<float>& out) {
  const auto steps = std::min(trace.steps.size(), static_cast<size_t>(options.max_steps));
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < steps; ++i) {
    const size_t at = out.size();
    out.resize(at + static_cast<size_t>(options.width()), 0.0F);
    out[at + trace.steps[i].index()] = 1;
    numbers.clear();
    std::visit(Numbers{numbers}, trace.steps[i]);
    const size_t kept = std::min(numbers.size(), static_cast<size_t>(options.numbers));
    for (size_t n = 0; n < kept; ++n) {
      const auto x = static_cast<double>(numbers[n]);
      const double value = options.log_numbers ? std::copysign(std::log2(1 + std::abs(x)), x) : x;
      out[at + static_cast<size_t>(kStepTypes) + n] = static_cast<float>(value);
    }
  }
  if (steps > 0) return static_cast<int>(steps);
  out.resize(out.size() + static_cast<size_t>(options.width()), 0.0F);
  return 1;
}

}  // namespace tensorsmith::learn::net
