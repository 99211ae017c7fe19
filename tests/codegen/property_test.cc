// Random workload x random legal trace: the compiled program computes the workload on every
// instruction set of this machine (or the one in TENSORSMITH_TEST_ISA). The seeds are fixed;
// TENSORSMITH_PROPERTY_SEED and TENSORSMITH_PROPERTY_COUNT select others. A failing trace is shrunk
// before it is printed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/runner.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "support/random_trace.h"
#include "support/random_workload.h"
#include "support/small_workloads.h"

namespace tensorsmith::property_test {
namespace {

using lower::Tensor;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Case {
  ir::Workload workload;
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;
  const target::Device* device = nullptr;
  int threads = 1;
};

// Returns an empty string if the schedule's code computes the expected values, else the difference.
std::string check(const Case& c, const sched::Schedule& schedule) {
  const auto lowered = lower::lower(schedule);
  if (!lowered.ok()) return "lower: " + lowered.error().message();
  std::vector<Tensor> inputs = c.inputs;
  for (const lower::PreparedConstant& p : lowered->prepared) {
    auto prepared = lower::prepare(p, inputs[p.input]);
    if (!prepared.ok()) return "prepare: " + prepared.error().message();
    inputs[p.input] = std::move(*prepared);
  }
  const auto kernel = test::backend().compile(lowered->program, *c.device, {});
  if (!kernel.ok()) return "compile: " + kernel.error().message();
  const auto undefined = test::undefined_symbols(kernel->object);
  if (!undefined.empty()) return "needs symbol " + undefined.front();
  const auto loaded = test::backend().load(kernel->object, kernel->symbol);
  if (!loaded.ok()) return "load: " + loaded.error().message();
  const auto outputs = test::run_kernel((*loaded)->function(), *kernel, lowered->program, inputs, c.threads);
  if (outputs.size() != c.expected.size()) return "another number of outputs";
  for (size_t o = 0; o < outputs.size(); ++o) {
    const std::string difference = test::compare(outputs[o], c.expected[o], 1e-4, 1e-4);
    if (!difference.empty()) return "output " + std::to_string(o) + " " + difference;
  }
  return {};
}

// InternalErrors count as failures.
std::string try_check(const Case& c, const sched::Schedule& schedule) {
  try {
    return check(c, schedule);
  } catch (const InternalError& e) {
    return e.what();
  }
}

sched::Trace shrink(const Case& c, sched::Trace trace) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t k = trace.steps.size(); k-- > 0;) {
      sched::Trace candidate = trace;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(k));
      const auto schedule = sched::replay(c.workload, candidate);
      if (!schedule.ok() || try_check(c, *schedule).empty()) continue;
      trace = std::move(candidate);
      smaller = true;
    }
  }
  return trace;
}

void run_cases(uint64_t first, uint64_t count, bool small) {
  const auto& devices = test::local_devices();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    Case c;
    c.workload = small ? test::small::random(rng) : test::random_workload(seed);
    for (const ir::Buffer& buffer : c.workload.inputs())
      c.inputs.push_back(lower::random_tensor(buffer->dtype, buffer->shape, rng));
    c.expected = lower::evaluate(c.workload, c.inputs).value();
    c.device = &devices[seed % devices.size()];
    c.threads = 1 + static_cast<int>(rng.below(3));
    test::RandomTraceOptions options;
    options.proposals = 8 + static_cast<int>(rng.below(40));
    const sched::ScheduleBuilder builder = test::random_schedule(c.workload, rng, options);
    const std::string failure = try_check(c, builder.schedule());
    if (failure.empty()) continue;
    const sched::Trace trace = shrink(c, builder.trace());
    const auto schedule = sched::replay(c.workload, trace);
    FAIL() << "seed " << seed << (small ? " (small)" : "") << " on " << c.device->name << ": " << failure
           << "\nshrunk trace:\n"
           << sched::print(trace) << "program:\n"
           << ir::print(lower::lower(*schedule)->program) << "fails with: " << try_check(c, *schedule);
  }
}

// A depthwise convolution in tiles of 11 columns, with its padding attached at each outer loop:
// vectors whose lengths are no powers of two, loads with stride 2, tails in rows.
TEST(CodegenProperty, DepthwiseOfElevenColumnsWithAttachedPadding) {
  for (const int64_t stride : {1, 2}) {
    for (const int64_t kernel : {3, 5}) {
      Case c;
      c.workload = test::small::depthwise(3, 11 * stride, kernel, stride, kernel / 2);
      Rng rng(static_cast<uint64_t>(10 * stride + kernel));
      for (const ir::Buffer& buffer : c.workload.inputs())
        c.inputs.push_back(lower::random_tensor(buffer->dtype, buffer->shape, rng));
      c.expected = lower::evaluate(c.workload, c.inputs).value();
      ASSERT_EQ(c.expected.front().shape.back(), 11);
      const int pad = 2, conv = 3;
      for (const int attach : {1, 2}) {  // channels, rows
        for (const auto tail : {sched::TailPolicy::kPredicate, sched::TailPolicy::kPeel,
                                sched::TailPolicy::kShift, sched::TailPolicy::kOverrun}) {
          sched::ScheduleBuilder builder(c.workload);
          const std::vector<sched::Step> steps = {
              // n, c, rows of 4, ry, rx, 4 rows, 11 columns
              sched::Split{conv, 2, {4}, true, tail},
              sched::Reorder{conv, {0, 1, 2, 5, 6, 3, 4}},
              sched::Annotate{conv, 5, sched::Annotation::kUnroll},
              sched::Annotate{conv, 6, sched::Annotation::kVectorize},
              sched::ComputeAt{pad, conv, attach},
              sched::Annotate{pad, 3, sched::Annotation::kVectorize},
          };
          for (const auto& step : steps) {
            const Status applied = builder.apply(step);
            ASSERT_TRUE(applied.ok()) << applied.error().message();
          }
          for (const auto& device : test::local_devices()) {
            c.device = &device;
            EXPECT_EQ(try_check(c, builder.schedule()), "")
                << device.name << " stride " << stride << " kernel " << kernel << "\n"
                << sched::print(builder.trace());
          }
        }
      }
    }
  }
}

TEST(CodegenProperty, SmallWorkloads) {
  run_cases(from_environment("TENSORSMITH_PROPERTY_SEED", 0),
            from_environment("TENSORSMITH_PROPERTY_COUNT", 400), true);
}

TEST(CodegenProperty, RandomWorkloads) {
  run_cases(from_environment("TENSORSMITH_PROPERTY_SEED", 0),
            from_environment("TENSORSMITH_PROPERTY_COUNT", 400), false);
}

}  // namespace
}  // namespace tensorsmith::property_test
