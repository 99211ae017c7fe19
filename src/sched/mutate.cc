#include "sched/mutate.h"

#include <algorithm>

namespace tensorsmith::sched {

namespace {

bool has_decision(const Step& step) {
  if (const auto* annotate = std::get_if<Annotate>(&step))
    return annotate->annotation == Annotation::kUnroll || annotate->annotation == Annotation::kNone;
  return std::holds_alternative<Split>(step) || std::holds_alternative<Unroll>(step) ||
         std::holds_alternative<ComputeAt>(step);
}

// Returns one of the distinct prime factors, each equally likely; 1 for n = 1.
int64_t prime_factor(int64_t n, Rng& rng) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p != 0) continue;
    primes.push_back(p);
    while (n % p == 0) n /= p;
  }
  if (n > 1) primes.push_back(n);
  return primes.empty() ? 1 : primes[rng.below(primes.size())];
}

void change_split(Split& split, Rng& rng) {
  const uint64_t kind = rng.below(8);
  if (kind == 0) {
    const auto others = static_cast<uint64_t>(split.tail) + 1 + rng.below(3);
    split.tail = static_cast<TailPolicy>(others % 4);
    return;
  }
  int64_t& length = split.lengths[rng.below(split.lengths.size())];
  if (kind <= 2) {
    // The extent of the split loop is unknown here, so the new length is at most twice the present
    // one, or 4.
    length = rng.uniform_int(1, std::max<int64_t>(4, 2 * length));
    return;
  }
  if (kind <= 4 || split.lengths.size() < 2) {
    const int64_t factor = prime_factor(length, rng);
    length = rng.bernoulli(0.5) && factor > 1 ? length / factor : length * 2;
    return;
  }
  int64_t& other = split.lengths[rng.below(split.lengths.size())];
  const int64_t factor = prime_factor(length, rng);
  length /= factor;
  other *= factor;
}

// Returns the step with another decision; it may be illegal, or the same.
Step changed(const Step& step, const Schedule& before, Rng& rng) {
  Step result = step;
  if (auto* split = std::get_if<Split>(&result)) {
    change_split(*split, rng);
  } else if (auto* unroll = std::get_if<Unroll>(&result)) {
    constexpr int64_t kSteps[] = {0, 16, 64, 512};
    unroll->auto_max_step = kSteps[rng.below(std::size(kSteps))];
  } else if (auto* at = std::get_if<ComputeAt>(&result)) {
    const size_t loops = before.stages.begin()[at->target_stage].leaves.size();
    at->target_iterator = rng.below(loops);
  } else if (auto* annotate = std::get_if<Annotate>(&result)) {
    annotate->annotation =
        annotate->annotation == Annotation::kUnroll ? Annotation::kNone : Annotation::kUnroll;
  }
  return result;
}

}  // namespace

Result<Trace> mutate(const Schedule& fresh, const Trace& trace, Rng& rng, int attempts) {
  TS_RETURN_IF_ERROR([&]() -> Status {
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const Schedule legal, replay(fresh, trace));
    return {};
  }());
  std::vector<size_t> candidates;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    if (has_decision(trace.steps[i])) candidates.push_back(i);
  }
  for (int attempt = 0; attempt < attempts && !candidates.empty(); ++attempt) {
    const size_t at = candidates[rng.below(candidates.size())];
    const auto earlier = std::span(trace.steps).first(at);
    const Trace prefix{{earlier.begin(), earlier.end()}};
    TS_ASSIGN_OR_RETURN(const Schedule before, replay(fresh, prefix));
    const Step step = changed(trace.steps[at], before, rng);
    if (step == trace.steps[at]) continue;
    Trace result = trace;
    result.steps[at] = step;
    if (replay(fresh, result).ok()) return result;
  }
  return Error{ErrorCode::kNotFound, "trace", "no decision of the trace could be changed legally"};
}

Result<Trace> crossover(const Schedule& fresh, const Trace& a, const Trace& b, Rng& rng, int attempts) {
  TS_RETURN_IF_ERROR([&]() -> Status {
    TS_ASSIGN_OR_RETURN([[maybe_unused]] const Schedule legal, replay(fresh, a));
    return {};
  }());
  const size_t n = std::min(a.steps.size(), b.steps.size());
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Trace result = a;
    for (size_t i = 0; i < n; ++i) {
      if (!rng.bernoulli(0.5)) continue;
      const auto* split_a = std::get_if<Split>(&a.steps[i]);
      const auto* split_b = std::get_if<Split>(&b.steps[i]);
      const auto* unroll_a = std::get_if<Unroll>(&a.steps[i]);
      const auto* unroll_b = std::get_if<Unroll>(&b.steps[i]);
      const auto* at_a = std::get_if<ComputeAt>(&a.steps[i]);
      const auto* at_b = std::get_if<ComputeAt>(&b.steps[i]);
      const bool same_split = split_a != nullptr && split_b != nullptr && split_a->stage == split_b->stage &&
                              split_a->iterator == split_b->iterator &&
                              split_a->lengths.size() == split_b->lengths.size() &&
                              split_a->inner_to_outer == split_b->inner_to_outer;
      const bool same_unroll =
          unroll_a != nullptr && unroll_b != nullptr && unroll_a->stage == unroll_b->stage;
      const bool same_at = at_a != nullptr && at_b != nullptr && at_a->stage == at_b->stage &&
                           at_a->target_stage == at_b->target_stage;
      if (same_split || same_unroll || same_at) result.steps[i] = b.steps[i];
    }
    if (replay(fresh, result).ok()) return result;
  }
  return Error{ErrorCode::kNotFound, "trace", "no mixture of the two traces was legal"};
}

}  // namespace tensorsmith::sched
