// Random workload x random legal trace: the lowered program computes what the workload says. The seeds are
// fixed; TENSORSMITH_PROPERTY_SEED and TENSORSMITH_PROPERTY_COUNT choose others. A failing trace is shrunk
// before it is printed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "ir/text.h"
#include "ir/verify_program.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "support/random_trace.h"
#include "support/random_workload.h"
#include "support/small_workloads.h"

namespace tensorsmith::lower {
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
  int64_t unproven = 0;  // accesses that are in range, but not by a linear condition
};

// Empty if the schedule's program computes the expected values, else what is wrong.
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
  for (const PackedConstant& p : lowered->packed) {
    Tensor packed = Tensor::zeros(inputs[p.input].dtype, lowered->program.inputs[p.input]->shape);
    pack(p.layout, inputs[p.input].shape, ir::bytes_of(packed.dtype), inputs[p.input].data.data(),
         packed.data.data());
    inputs[p.input] = std::move(packed);
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

// Leaves out steps as long as the rest is legal and fails.
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
           << sched::to_string(*schedule) << "fails with: " << check(c, *schedule);
  }
  // run() has checked every access; the proof fails for a few indices of fused loops that no tile lines up
  // with.
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

// Loops bound to GPU axes run one after the other here, each thread with its own copy of what it shares.
TEST(LowerProperty, Threads) { run_cases(0, 800, true, true); }

}  // namespace
}  // namespace tensorsmith::lower
