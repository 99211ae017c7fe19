#include "support/random_trace.h"

#include <algorithm>
#include <numeric>

namespace tensorsmith::test {

using namespace sched;  // NOLINT(google-build-using-namespace)

namespace {

int pick(Rng& rng, size_t n) { return n == 0 ? 0 : static_cast<int>(rng.below(n)); }

TailPolicy random_cut(Rng& rng) {
  constexpr TailPolicy kCuts[] = {TailPolicy::kPeel, TailPolicy::kPeel, TailPolicy::kShift,
                                  TailPolicy::kOverrun};
  return kCuts[rng.below(std::size(kCuts))];
}

int64_t random_length(Rng& rng, const RandomTraceOptions& options, int64_t extent) {
  if (options.odd_factors && rng.bernoulli(0.5)) return rng.uniform_int(1, std::max<int64_t>(2, extent + 2));
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= extent; ++d) {
    if (extent % d == 0) divisors.push_back(d);
  }
  return divisors.empty() ? 1 : divisors[rng.below(divisors.size())];
}

Layout random_layout(const std::vector<int64_t>& shape, Rng& rng) {
  Layout layout;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1 && rng.bernoulli(0.3)) continue;
    int64_t divisor = 1;
    for (int digits = pick(rng, 3); digits > 0; --digits) {
      const int64_t extent = rng.uniform_int(1, 5);
      layout.push_back({static_cast<int>(d), divisor, extent});
      divisor *= extent;
    }
    const int64_t rest = std::max<int64_t>(1, (shape[d] + divisor - 1) / divisor);
    layout.push_back({static_cast<int>(d), divisor, rest});
  }
  for (size_t i = layout.size(); i > 1; --i) std::swap(layout[i - 1], layout[rng.below(i)]);
  return layout;
}

// Returns mostly a permutation that swaps two loops, sometimes any.
std::vector<int> random_order(size_t n, Rng& rng) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  if (n < 2) return order;
  if (rng.bernoulli(0.5)) {
    const size_t i = rng.below(n - 1);
    std::swap(order[i], order[i + 1]);
    return order;
  }
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}

// Returns the consumers as numbers that steps use.
std::vector<int> consumers_of(const Schedule& schedule, int stage) {
  std::vector<int> result;
  for (const StageId reader : schedule.consumers_of(StageId(static_cast<size_t>(stage))))
    result.push_back(static_cast<int>(reader.place()));
  return result;
}

}  // namespace

Step propose_step(const Schedule& schedule, const Trace& trace, Rng& rng, const RandomTraceOptions& options) {
  int s = pick(rng, schedule.stages.size());
  // Placeholders accept few kinds of steps.
  for (int again = 0; again < 8 && schedule.stages.begin()[s].is_placeholder() && rng.bernoulli(0.85);
       ++again)
    s = pick(rng, schedule.stages.size());
  const Stage& stage = schedule.stages.begin()[s];
  const int leaf = pick(rng, stage.leaves.size());
  const auto memory = [&] { return rng.bernoulli(0.5) ? ir::MemoryScope::kLocal : ir::MemoryScope::kGlobal; };
  const std::vector<int> consumers = consumers_of(schedule, s);
  if (stage.is_placeholder()) {
    if (options.layouts && stage.op->is_constant && rng.bernoulli(0.5))
      return PackLayout{s, random_layout(stage.op->output()->shape, rng)};
    CacheRead step{s, memory(), {}};
    for (const int c : consumers) {
      if (step.readers.empty() || rng.bernoulli(0.5)) step.readers.push_back(c);
    }
    return step;
  }
  const bool reduces = stage.op->has_reduction();
  if (reduces && rng.bernoulli(0.08)) {
    // Prefer reduce loops, which most other draws miss.
    std::vector<int> reduce;
    for (size_t i = 0; i < stage.leaves.size(); ++i) {
      if (stage.iterators[stage.leaves[i]].kind == IterKind::kReduce) reduce.push_back(static_cast<int>(i));
    }
    const int position = reduce.empty() ? leaf : reduce[rng.below(reduce.size())];
    const uint64_t kind = rng.below(3);
    if (kind == 0) return DecomposeReduction{s, pick(rng, static_cast<size_t>(position) + 1)};
    if (kind == 1)
      return Split{s, position, {rng.uniform_int(1, 6)}, rng.bernoulli(0.8), TailPolicy::kPredicate};
    return Rfactor{s, position, pick(rng, stage.op->spatial.size() + 1)};
  }
  switch (rng.below(24)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      Split step;
      step.stage = s;
      step.iterator = leaf;
      int64_t extent = 8;
      if (const size_t axis = stage.leaves.empty() ? stage.num_roots() : stage.leaves.begin()[leaf].place();
          axis < stage.num_roots()) {
        const size_t rank = stage.op->spatial.size();
        extent = axis < rank ? stage.op->spatial[axis].extent : stage.op->reduce[axis - rank].extent;
      }
      const int n = 1 + pick(rng, 3);
      for (int i = 0; i < n; ++i)
        step.lengths.push_back(random_length(rng, options, std::max<int64_t>(extent, 1)));
      step.inner_to_outer = rng.bernoulli(0.8);
      step.tail = rng.bernoulli(0.5) ? random_cut(rng) : TailPolicy::kPredicate;
      return step;
    }
    case 4:
    case 5: {
      std::vector<int> splits;
      for (size_t i = 0; i < trace.steps.size(); ++i) {
        if (std::holds_alternative<Split>(trace.steps[i])) splits.push_back(static_cast<int>(i));
      }
      if (splits.empty()) return Split{s, leaf, {2}, true, TailPolicy::kPredicate};
      const int source = splits[rng.below(splits.size())];
      if (rng.bernoulli(0.5)) return FollowSplit{s, leaf, source, 1 + pick(rng, 3)};
      return FollowFusedSplit{
          s, leaf, {source, splits[rng.below(splits.size())]}, pick(rng, 2), rng.bernoulli(0.5)};
    }
    case 6:
    case 7: {
      Fuse step{s, {}};
      const int n = pick(rng, 4);
      for (int i = 0; i < n && leaf + i < static_cast<int>(stage.leaves.size()); ++i)
        step.iterators.push_back(leaf + i);
      return step;
    }
    case 8:
    case 9:
      return Reorder{s, random_order(stage.leaves.size(), rng)};
    case 10:
      return Annotate{s, std::min(leaf, pick(rng, 3)), Annotation::kParallel};
    case 11:
    case 12:
      return Annotate{s, static_cast<int>(stage.leaves.size()) - 1 - pick(rng, 2), Annotation::kVectorize};
    case 13:
      if (options.thread_axes) return Annotate{s, leaf, static_cast<Annotation>(4 + rng.below(7))};
      return Annotate{s, leaf, rng.bernoulli(0.8) ? Annotation::kUnroll : Annotation::kNone};
    case 14:
      return Unroll{s, static_cast<int64_t>(rng.below(3)) * 16};
    case 15:
    case 16:
    case 17: {
      int target =
          consumers.empty() ? pick(rng, schedule.stages.size()) : consumers[rng.below(consumers.size())];
      // Sometimes attaches where the consumer itself is attached.
      const Stage& consumer = schedule.stages.begin()[target];
      if (consumer.attach == AttachKind::kAt && rng.bernoulli(0.3))
        target = static_cast<int>(consumer.attach_stage.place());
      return ComputeAt{s, target, pick(rng, schedule.stages.begin()[target].leaves.size())};
    }
    case 18: {
      if (consumers.size() != 1) return ComputeRoot{s};
      return ReverseComputeAt{consumers[0], s, leaf};
    }
    case 19:
      return rng.bernoulli(0.7) ? Step(ComputeInline{s}) : Step(ComputeRoot{s});
    case 20:
      return CacheWrite{s, memory()};
    case 21: {
      CacheRead step{s, memory(), {}};
      for (const int c : consumers) {
        if (step.readers.empty() || rng.bernoulli(0.5)) step.readers.push_back(c);
      }
      return step;
    }
    case 22: {
      std::vector<int> reduce;
      for (size_t i = 0; i < stage.leaves.size(); ++i) {
        if (stage.iterators[stage.leaves[i]].kind == IterKind::kReduce) reduce.push_back(static_cast<int>(i));
      }
      if (reduce.empty() || rng.bernoulli(0.4)) return DecomposeReduction{s, leaf};
      return Rfactor{s, reduce[rng.below(reduce.size())], pick(rng, stage.op->spatial.size() + 1)};
    }
    default:
      if (!options.layouts) return Unroll{s, 16};
      if (rng.bernoulli(0.5)) return StorageAlign{s, leaf, rng.uniform_int(1, 8), rng.uniform_int(0, 3)};
      return PackLayout{s, random_layout(stage.op->output()->shape, rng)};
  }
}

namespace {

// Applies steps like a tuner's sketch: a stage tiled in levels with its consumer around it, outer
// loops fused and parallel, the innermost vectorized. Refused steps are left out.
void tile(ScheduleBuilder& builder, Rng& rng, const RandomTraceOptions& options) {
  const auto apply = [&](const Step& step) { return builder.apply(step).ok(); };
  const auto stage = [&](int i) -> const Stage& { return builder.schedule().stages.begin()[i]; };
  // Elementwise producers first, starting from the outputs.
  for (int i = static_cast<int>(builder.schedule().stages.size()) - 1; i >= 0; --i) {
    if (!stage(i).is_placeholder() && rng.bernoulli(0.4)) apply(ComputeInline{i});
  }
  std::vector<int> candidates;
  for (const StageId i : builder.schedule().stages.ids()) {
    const Stage& s = builder.schedule().stages[i];
    if (!s.is_placeholder() && s.attach == AttachKind::kRoot && !s.op->spatial.empty())
      candidates.push_back(static_cast<int>(i.place()));
  }
  if (candidates.empty()) return;
  int target = candidates[rng.below(candidates.size())];
  for (int c : candidates) {
    if (stage(c).op->has_reduction() && rng.bernoulli(0.6)) target = c;
  }
  int consumer = -1;
  if (const auto readers = consumers_of(builder.schedule(), target);
      readers.size() == 1 && stage(readers[0]).op->spatial.size() == stage(target).op->spatial.size())
    consumer = readers[0];
  if (rng.bernoulli(consumer < 0 ? 0.8 : 0.2) && apply(CacheWrite{target, ir::MemoryScope::kLocal}))
    consumer = target + 1;

  const int rank = static_cast<int>(stage(target).op->spatial.size());
  const int reduce = static_cast<int>(stage(target).op->reduce.size());
  std::vector<int> sources;
  const TailPolicy tail = rng.bernoulli(0.6) ? random_cut(rng) : TailPolicy::kPredicate;
  for (int a = 0; a < rank; ++a) {
    const int64_t extent = stage(target).op->spatial[static_cast<size_t>(a)].extent;
    Split split{target, 4 * a, {}, true, tail};
    for (int level = 0; level < 3; ++level)
      split.lengths.push_back(
          rng.bernoulli(0.4)
              ? 1
              : random_length(rng, options, std::max<int64_t>(1, std::min<int64_t>(extent, 8))));
    apply(split);
    sources.push_back(static_cast<int>(builder.trace().steps.size()) - 1);
  }
  for (int a = 0; a < reduce; ++a)
    apply(Split{target,
                4 * rank + 2 * a,
                {rng.uniform_int(1, 4)},
                true,
                rng.bernoulli(0.5) ? tail : TailPolicy::kPredicate});
  // Levels S S R S R S.
  Reorder order{target, {}};
  const auto spatial = [&](int level) {
    for (int a = 0; a < rank; ++a) order.order.push_back(4 * a + level);
  };
  const auto reduction = [&](int level) {
    for (int a = 0; a < reduce; ++a) order.order.push_back(4 * rank + 2 * a + level);
  };
  spatial(0);
  spatial(1);
  reduction(0);
  spatial(2);
  reduction(1);
  spatial(3);
  apply(order);
  int outer = target;
  if (consumer >= 0) {
    const int levels = 1 + pick(rng, 2);
    bool tiled = true;
    for (int a = 0; a < rank && tiled; ++a)
      tiled = apply(FollowSplit{consumer, (levels + 1) * a, sources[static_cast<size_t>(a)], levels});
    Reorder levels_first{consumer, {}};
    for (int level = 0; level <= levels; ++level) {
      for (int a = 0; a < rank; ++a) levels_first.order.push_back((levels + 1) * a + level);
    }
    apply(levels_first);
    if (tiled && apply(ComputeAt{target, consumer, levels * rank - 1})) outer = consumer;
  }
  Fuse fuse{outer, {}};
  for (int a = 0; a < rank; ++a) fuse.iterators.push_back(a);
  if (rng.bernoulli(0.7) && apply(fuse)) apply(Annotate{outer, 0, Annotation::kParallel});
  if (rng.bernoulli(0.7))
    apply(Annotate{target, static_cast<int>(stage(target).leaves.size()) - 1, Annotation::kVectorize});
  if (outer != target && rng.bernoulli(0.5))
    apply(Annotate{outer, static_cast<int>(stage(outer).leaves.size()) - 1, Annotation::kVectorize});
  if (rng.bernoulli(0.5)) apply(Unroll{target, 16});
}

}  // namespace

ScheduleBuilder random_schedule(const ir::Workload& workload, Rng& rng, const RandomTraceOptions& options) {
  ScheduleBuilder builder(workload);
  // Steps that change the algorithm come before any step on loops. Most stages refuse them.
  if (rng.bernoulli(0.7)) {
    for (int s = 0; s < static_cast<int>(builder.schedule().stages.size()); ++s)
      static_cast<void>(builder.apply(Winograd{s, rng.bernoulli(0.5) ? 2 : 4}));
    // A step may remove a stage, which changes the numbers of others.
    for (int s = static_cast<int>(builder.schedule().stages.size()); s-- > 0;) {
      const bool halves = rng.bernoulli(0.5);
      for (int loop = 1; loop <= 4; ++loop) {
        const Status made = halves ? builder.apply(Dot16{s, loop}) : builder.apply(Dot{s, loop});
        if (made.ok()) break;
      }
    }
  }
  if (rng.bernoulli(options.tiled)) tile(builder, rng, options);
  for (int i = 0; i < options.proposals; ++i) {
    // A refused proposal changes nothing.
    static_cast<void>(builder.apply(propose_step(builder.schedule(), builder.trace(), rng, options)));
  }
  return builder;
}

Trace random_trace(const ir::Workload& workload, Rng& rng, const RandomTraceOptions& options) {
  return random_schedule(workload, rng, options).trace();
}

}  // namespace tensorsmith::test
