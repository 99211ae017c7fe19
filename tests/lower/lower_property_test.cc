// Random workload x random legal trace: the lowered program computes the workload. The seeds are
// fixed; TENSORSMITH_PROPERTY_SEED and TENSORSMITH_PROPERTY_COUNT select others. A failing trace is
// shrunk before it is printed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "ir/text.h"
#include "ir/verify_program.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "support/print_schedule.h"
#include "support/random_trace.h"
#include "support/random_workload.h"
#include "support/small_workloads.h"

namespace tensorsmith::lower::lower_property_test {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Case {
  ir::Workload workload;
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;
};

struct Statistics {
  int64_t programs = 0;
  int64_t unproven = 0;  // accesses in range that no linear condition proves
};

// Returns an empty string if the schedule's program computes the expected values, else the
// difference.
std::string check(const Case& c, const sched::Schedule& schedule, Statistics* statistics = nullptr) {
  auto lowered = lower(schedule);
  if (!lowered.ok()) return "lower: " + lowered.error().message();
  if (const Status valid = ir::verify(lowered->program); !valid.ok()) {
    return "verify: " + valid.error().message() + "\n" + ir::print(lowered->program);
  }
  if (statistics != nullptr) {
    ++statistics->programs;
    statistics->unproven += ir::verify_in_bounds(lowered->program).ok() ? 0 : 1;
  }
  std::vector<Tensor> inputs = c.inputs;
  for (const PreparedConstant& p : lowered->prepared) {
    auto prepared = prepare(p, inputs[p.input]);
    if (!prepared.ok()) return "prepare: " + prepared.error().message();
    inputs[p.input] = std::move(*prepared);
  }
  const auto outputs = run(lowered->program, inputs);
  if (!outputs.ok()) return "run: " + outputs.error().message() + "\n" + ir::print(lowered->program);
  if (outputs->size() != c.expected.size()) return "another number of outputs";
  for (size_t o = 0; o < outputs->size(); ++o) {
    const Tensor& got = (*outputs)[o];
    const Tensor& expected = c.expected[o];
    if (got.shape != expected.shape || got.dtype != expected.dtype) return "another shape or dtype";
    for (int64_t i = 0; i < got.num_elements(); ++i) {
      const ir::Scalar a = got.at(i);
      const ir::Scalar b = expected.at(i);
      const bool same = !ir::is_float(got.dtype) ? a.i == b.i
                                                 : a.f == b.f || (std::isnan(a.f) && std::isnan(b.f)) ||
                                                       std::abs(a.f - b.f) <= 1e-4 + 1e-4 * std::abs(b.f);
      if (!same) {
        return "output " + std::to_string(o) + " element " + std::to_string(i) + " is " +
               (ir::is_float(got.dtype) ? std::to_string(a.f) : std::to_string(a.i)) + ", expected " +
               (ir::is_float(got.dtype) ? std::to_string(b.f) : std::to_string(b.i));
      }
    }
  }
  return "";
}

// Removes steps as long as the rest is legal and still fails.
sched::Trace shrink(const Case& c, sched::Trace trace) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t k = trace.steps.size(); k-- > 0;) {
      sched::Trace candidate = trace;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(k));
      const auto schedule = sched::replay(c.workload, candidate);
      if (!schedule.ok()) continue;
      std::string failure;
      try {
        failure = check(c, *schedule);
      } catch (const InternalError& e) {
        failure = e.what();
      }
      if (failure.empty()) continue;
      trace = std::move(candidate);
      smaller = true;
    }
  }
  return trace;
}

void run_cases(uint64_t first, uint64_t count, bool small, bool thread_axes) {
  Statistics statistics;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    Case c;
    c.workload = small ? test::small::random(rng) : test::random_workload(seed);
    for (const ir::Buffer& buffer : c.workload.inputs()) {
      c.inputs.push_back(random_tensor(buffer->dtype, buffer->shape, rng));
    }
    auto expected = evaluate(c.workload, c.inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().message();
    c.expected = *std::move(expected);
    test::RandomTraceOptions options;
    options.proposals = 8 + static_cast<int>(rng.below(40));
    options.thread_axes = thread_axes;
    const sched::ScheduleBuilder builder = test::random_schedule(c.workload, rng, options);
    std::string failure;
    try {
      failure = check(c, builder.schedule(), &statistics);
    } catch (const InternalError& e) {
      failure = e.what();
    }
    if (failure.empty()) continue;
    const sched::Trace trace = shrink(c, builder.trace());
    const auto schedule = sched::replay(c.workload, trace);
    FAIL() << "seed " << seed << (small ? " (small)" : "") << ": " << failure << "\nshrunk trace:\n"
           << sched::print(trace) << "schedule:\n"
           << test::print_schedule(*schedule) << "fails with: " << check(c, *schedule);
  }
  // run() has checked every access; the proof fails for a few indices of fused loops whose tiles
  // are not aligned.
  EXPECT_LE(statistics.unproven * 50, statistics.programs) << statistics.unproven;
}

TEST(LowerProperty, SmallWorkloads) {
  run_cases(from_environment("TENSORSMITH_PROPERTY_SEED", 0),
            from_environment("TENSORSMITH_PROPERTY_COUNT", 2000), true, false);
}

TEST(LowerProperty, RandomWorkloads) {
  run_cases(from_environment("TENSORSMITH_PROPERTY_SEED", 0),
            from_environment("TENSORSMITH_PROPERTY_COUNT", 2000), false, false);
}

// Register tiles as in the search: outer tiles, a region with its own accumulators, packed weights,
// the padding at any place, tails of every kind.
TEST(LowerProperty, TiledConvolutions) {
  using namespace sched;  // NOLINT(google-build-using-namespace)
  const uint64_t first = from_environment("TENSORSMITH_PROPERTY_SEED", 0);
  const uint64_t count = from_environment("TENSORSMITH_PROPERTY_COUNT", 1500);
  Statistics statistics;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const auto pick = [&](int64_t low, int64_t high) { return rng.uniform_int(low, high); };
    const int64_t channels = pick(1, 5), outputs = pick(1, 21), kernel = pick(1, 3);
    Case c;
    c.workload =
        test::small::conv2d(channels, pick(kernel, 11), outputs, kernel, pick(1, 2), pick(0, kernel - 1));
    for (const ir::Buffer& buffer : c.workload.inputs()) {
      c.inputs.push_back(random_tensor(buffer->dtype, buffer->shape, rng));
    }
    auto expected = evaluate(c.workload, c.inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().message();
    c.expected = *std::move(expected);
    ScheduleBuilder builder(c.workload);
    // Stages and loops are looked up by name; steps that do not apply (to a pad that does not
    // exist) are left out.
    const auto stage = [&](const std::string& name) {
      return static_cast<int>(builder.schedule().stage_named(name).value_or(StageId(99)).place());
    };
    const auto loop = [&](int s, const std::string& name) {
      const Stage& at = builder.schedule().stages.begin()[s];
      for (size_t k = 0; k < at.leaves.size(); ++k) {
        if (at.iterators[at.leaves[k]].name == name) return static_cast<int>(k);
      }
      return -1;
    };
    const auto apply = [&](const Step& step) { return builder.apply(step).ok(); };
    const auto tail = [&] { return static_cast<TailPolicy>(rng.below(4)); };
    const int64_t lanes = pick(2, 8);
    if (stage("biased") != 99) apply(ComputeInline{stage("biased")});
    if (rng.bernoulli(0.3) && stage("pad") != 99) apply(ComputeInline{stage("pad")});
    if (rng.bernoulli(0.6)) {
      const int64_t tiles = (outputs + lanes - 1) / lanes + pick(0, 1);
      apply(PackLayout{stage("W"),
                       {{0, lanes, tiles}, {1, 1, channels}, {2, 1, kernel}, {3, 1, kernel}, {0, 1, lanes}}});
    }
    // A copy of the convolution's input, without zeros around it.
    const std::string source =
        stage("pad") != 99 && builder.schedule().stages.begin()[stage("pad")].attach != AttachKind::kInlined
            ? "pad"
            : "X";
    const bool copy =
        rng.bernoulli(0.5) && apply(CacheRead{stage(source), ir::MemoryScope::kLocal, {stage("conv")}});
    const int out = stage("relu");
    const bool middle = rng.bernoulli(0.5);
    std::vector<std::string> outer, regions, write;
    for (const std::string axis : {"f", "y", "x"}) {
      const int64_t tile = axis == "f" ? lanes * pick(1, 2) : pick(1, 5);
      const std::vector<int64_t> lengths =
          middle ? std::vector<int64_t>{pick(1, 3), tile} : std::vector<int64_t>{tile};
      ASSERT_TRUE(apply(Split{out, loop(out, axis), lengths, true, tail()}));
      outer.push_back(axis + ".0");
      if (middle) regions.push_back(axis + ".1");
      write.push_back(axis + (middle ? ".2" : ".1"));
    }
    std::vector<int> order = {loop(out, "n")};
    for (const auto& names : {outer, regions, write}) {
      for (const std::string& name : names) order.push_back(loop(out, name));
    }
    ASSERT_TRUE(apply(Reorder{out, order}));
    const std::string attach_at = middle ? regions.back() : outer.back();
    if (rng.bernoulli(0.5))
      apply(Annotate{out, loop(out, write[static_cast<size_t>(pick(0, 2))]), Annotation::kUnroll});
    if (rng.bernoulli(0.5)) apply(Annotate{out, loop(out, write.back()), Annotation::kVectorize});
    int at = loop(out, attach_at);
    if (rng.bernoulli(0.5)) {
      const int fused = static_cast<int>(pick(1, 4));
      std::vector<int> loops;
      for (int k = 0; k < fused; ++k) loops.push_back(k);
      if (fused - 1 < at && apply(Fuse{out, loops})) at -= fused - 1;
      apply(Annotate{out, 0, Annotation::kParallel});
    }
    const int conv = stage("conv");
    ASSERT_TRUE(apply(ComputeAt{conv, out, at}));
    if (rng.bernoulli(0.7)) apply(Split{conv, loop(conv, "f"), {lanes}, true, tail()});
    if (rng.bernoulli(0.4)) apply(Split{conv, loop(conv, "y"), {pick(1, 3)}, true, tail()});
    if (rng.bernoulli(0.5)) apply(Split{conv, loop(conv, "rc"), {pick(1, 3)}, true, tail()});
    // Reduce loops outside, the channels innermost.
    std::vector<int> spatial, reduce, channel;
    const Stage& now = builder.schedule().stages.begin()[conv];
    for (size_t k = 0; k < now.leaves.size(); ++k) {
      const Iterator& it = now.iterators[now.leaves[k]];
      (it.kind == IterKind::kReduce ? reduce
       : it.name.front() == 'f'     ? channel
                                    : spatial)
          .push_back(static_cast<int>(k));
    }
    reduce.insert(reduce.end(), spatial.begin(), spatial.end());
    reduce.insert(reduce.end(), channel.begin(), channel.end());
    ASSERT_TRUE(apply(Reorder{conv, reduce}));
    if (rng.bernoulli(0.8))
      apply(Annotate{conv, static_cast<int>(reduce.size()) - 1, Annotation::kVectorize});
    if (const int pad = stage("pad"); pad != 99 && rng.bernoulli(0.7)) {
      if (rng.bernoulli(0.5)) {
        apply(ComputeAt{pad, out, static_cast<int>(pick(0, at))});
      } else {
        apply(ComputeAt{pad, conv, 0});
      }
      if (rng.bernoulli(0.5)) apply(Split{pad, 3, {pick(2, 4)}, true, tail()});
    }
    if (copy) {
      const int cached = stage(source + ".local");
      ASSERT_TRUE(rng.bernoulli(0.5) ? apply(ComputeAt{cached, conv, static_cast<int>(pick(0, 1))})
                                     : apply(ComputeAt{cached, out, static_cast<int>(pick(0, at))}));
    }
    const std::string failure = check(c, builder.schedule(), &statistics);
    ASSERT_TRUE(failure.empty()) << "seed " << seed << ": " << failure << "\n"
                                 << print(builder.trace()) << "schedule:\n"
                                 << test::print_schedule(builder.schedule());
  }
  EXPECT_LE(statistics.unproven * 50, statistics.programs) << statistics.unproven;
}

// The interpreter runs loops bound to GPU axes serially, with a separate copy of shared data for
// each thread.
TEST(LowerProperty, Threads) { run_cases(0, 800, true, true); }

}  // namespace
}  // namespace tensorsmith::lower::lower_property_test
