// Winograd's filtering in the design space: its sketches, their results compared with the reference
// interpreter, the size of rounding errors, and rescaling to other shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "ir/analysis.h"
#include "ir/expr.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::space::winograd_test {
namespace {

using namespace tensorsmith::test::standard;

target::Device device(int cores, int vector_bytes = 32) {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.cpu().vector_bytes = vector_bytes;
  d.cpu().vector_registers = vector_bytes == 64 ? 32 : 16;
  d.cpu().fma_per_cycle = 2;
  d.cpu().cores = cores;
  d.memory_bandwidth_gbs = 12;
  return d;
}

Conv2d shape(int64_t n, int64_t h, int64_t w, int64_t ci, int64_t co, int64_t pad) {
  Conv2d conv;
  conv.n = n;
  conv.h = h;
  conv.w = w;
  conv.ci = ci;
  conv.co = co;
  conv.pad = pad;
  return conv;
}

// relu(conv2d + R), where R has the shape of the convolution.
ir::Workload conv2d_residual(const Conv2d& s) {
  ir::Workload workload = conv2d(s);
  const ir::OperationRef conv = workload.operations.back();
  const ir::OperationRef residual = ir::placeholder("R", ir::DType::kF32, {s.n, s.co, s.out_h(), s.out_w()});
  workload.operations.insert(workload.operations.begin() + 2, residual);
  const ir::Var n("n"), c("f"), h("y"), w("x");
  const std::vector<ir::Expr> at{n, c, h, w};
  const ir::OperationRef sum =
      ir::compute("sum", {{n, s.n}, {c, s.co}, {h, s.out_h()}, {w, s.out_w()}}, {}, ir::Combiner::kNone,
                  {ir::max(ir::load(conv->output(), at) + ir::load(residual->output(), at),
                           ir::float_imm(ir::DType::kF32, 0))});
  workload.operations.push_back(sum);
  workload.outputs = {sum->output()};
  return workload;
}

DesignSpace build(const ir::Workload& workload, int cores, int vector_bytes = 32, bool winograd = true) {
  auto space = DesignSpace::build(workload, device(cores, vector_bytes), {.winograd = winograd});
  EXPECT_TRUE(space.ok()) << space.error().message();
  return *space;
}

std::vector<int> winograd_sketches(const DesignSpace& space) {
  std::vector<int> result;
  for (int k = 0; k < static_cast<int>(space.num_sketches()); ++k)
    if (space.describe(k).find("winograd") != std::string::npos) result.push_back(k);
  return result;
}

// Samples until the sketch comes up, which is soon, since the space has few.
Candidate sample_of(const DesignSpace& space, int sketch, Rng& rng) {
  for (;;) {
    Candidate c = space.sample(rng);
    if (c.sketch == sketch) return c;
  }
}

std::vector<lower::Tensor> run(const DesignSpace& space, const Candidate& c,
                               const std::vector<lower::Tensor>& inputs) {
  const auto trace = space.to_trace(c);
  EXPECT_TRUE(trace.ok());
  const auto schedule = sched::replay(space.workload(), *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.error().message() << "\n" << sched::print(*trace);
  if (!schedule.ok()) return {};
  const auto lowered = lower::lower(*schedule);
  EXPECT_TRUE(lowered.ok()) << lowered.error().message() << "\n" << sched::print(*trace);
  if (!lowered.ok()) return {};
  auto prepared = inputs;
  for (const auto& constant : lowered->prepared) {
    auto made = lower::prepare(constant, inputs[constant.input]);
    EXPECT_TRUE(made.ok());
    prepared[constant.input] = std::move(*made);
  }
  const auto outputs = lower::run(lowered->program, prepared);
  EXPECT_TRUE(outputs.ok()) << outputs.error().message() << "\n" << sched::print(*trace);
  return outputs.ok() ? *outputs : std::vector<lower::Tensor>{};
}

std::vector<lower::Tensor> random_inputs(const ir::Workload& workload, uint64_t seed) {
  Rng rng(seed);
  std::vector<lower::Tensor> inputs;
  for (const auto& input : workload.inputs())
    inputs.push_back(lower::random_tensor(input->dtype, input->shape, rng, 0));
  return inputs;
}

// Returns the largest difference, relative to the root mean square of the expected values.
double worst_error(const lower::Tensor& got, const lower::Tensor& expected) {
  double worst = 0, squares = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    worst = std::max(worst, std::abs(got.at(i).f - expected.at(i).f));
    squares += expected.at(i).f * expected.at(i).f;
  }
  return worst / std::sqrt(squares / static_cast<double>(expected.num_elements()));
}

TEST(Winograd, SketchesOf3x3ConvolutionsOnly) {
  const auto names = [](const ir::Workload& workload, bool winograd) {
    const DesignSpace space = build(workload, 1, 32, winograd);
    std::vector<std::string> result;
    for (int k : winograd_sketches(space)) result.push_back(space.describe(k));
    return result;
  };
  const Conv2d conv = shape(1, 10, 10, 8, 8, 1);
  EXPECT_EQ(names(conv2d_bias_relu(conv), true),
            (std::vector<std::string>{"winograd 4 conv into relu", "winograd 2 conv into relu"}));
  EXPECT_EQ(names(conv2d(conv), true), (std::vector<std::string>{"winograd 4 conv", "winograd 2 conv"}));
  EXPECT_TRUE(names(conv2d_bias_relu(conv), false).empty());
  Conv2d strided = conv;
  strided.stride = 2;
  Conv2d dilated = conv;
  dilated.dilation = 2;
  Conv2d grouped = conv;
  grouped.groups = 2;
  Conv2d wide = conv;
  wide.kw = 5;
  Conv2d few = conv;
  few.ci = 3;
  for (const Conv2d& other : {strided, dilated, grouped, wide, few})
    EXPECT_TRUE(names(conv2d_bias_relu(other), true).empty());
}

TEST(Winograd, EveryCandidateComputesTheConvolution) {
  struct Case {
    std::string name;
    ir::Workload workload;
  };
  const std::vector<Case> cases = {
      {"odd sizes", conv2d_bias_relu(shape(1, 7, 9, 8, 9, 1))},
      {"without padding", conv2d_bias_relu(shape(1, 10, 11, 9, 16, 0))},
      {"batch 2", conv2d_bias_relu(shape(2, 8, 6, 8, 20, 1))},
      {"residual", conv2d_residual(shape(1, 9, 13, 12, 8, 1))},
      {"no epilogue", conv2d(shape(1, 12, 5, 8, 24, 1))},
      {"one row of tiles", conv2d_bias_relu(shape(1, 3, 17, 17, 8, 1))},
      {"one tile", conv2d(shape(2, 4, 4, 8, 8, 0))},
  };
  uint64_t seed = 0;
  for (const auto& [name, workload] : cases) {
    SCOPED_TRACE(name);
    const auto inputs = random_inputs(workload, ++seed);
    const auto expected = lower::evaluate(workload, inputs);
    ASSERT_TRUE(expected.ok());
    for (const int threads : {1, 2}) {
      const DesignSpace space = build(workload, threads, threads == 1 ? 16 : 32);
      Rng rng(seed);
      ASSERT_EQ(winograd_sketches(space).size(), 2U);
      for (const int sketch : winograd_sketches(space)) {
        for (int i = 0; i < 12; ++i) {
          Candidate c = sample_of(space, sketch, rng);
          if (i % 3 == 1) c = space.mutate(c, rng);
          if (i % 3 == 2) c = space.crossover(c, sample_of(space, sketch, rng), rng);
          const auto got = run(space, c, inputs);
          ASSERT_EQ(got.size(), 1U);
          ASSERT_EQ(got[0].shape, (*expected)[0].shape);
          ASSERT_LE(worst_error(got[0], (*expected)[0]), 1e-4) << sched::print(*space.to_trace(c));
        }
      }
    }
  }
}

// Rows of 14 columns are no multiple of vectors or of tiles of eight, but the code must still occur
// only once: a second copy of a transposition takes a third of the time of code generation.
TEST(Winograd, TransformsHaveOneCopyOfTheirCode) {
  const DesignSpace space = build(conv2d_bias_relu(shape(1, 14, 14, 32, 32, 1)), 1, 64);
  Rng rng(1);
  for (int i = 0; i < 20; ++i) {
    const auto trace = space.to_trace(sample_of(space, winograd_sketches(space).front(), rng));
    ASSERT_TRUE(trace.ok());
    const auto lowered = lower::lower(*sched::replay(space.workload(), *trace));
    ASSERT_TRUE(lowered.ok());
    std::map<std::string, int> stores;
    ir::for_each_stmt(lowered->program.body, [&](const ir::Stmt& s) {
      if (const auto* store = ir::as<ir::Store>(s)) ++stores[store->buffer->name];
    });
    for (const char* name : {"conv.data", "conv.rows", "conv.input", "conv.columns", "conv"})
      EXPECT_EQ(stores[name], 1) << name << "\n" << sched::print(*trace);
  }
}

// The rounding errors that algorithm.h states; those of the direct sum are below 1e-6.
TEST(Winograd, ErrorsStayFarBelowTheTolerance) {
  const ir::Workload workload = conv2d(shape(1, 12, 12, 96, 16, 1));
  const DesignSpace space = build(workload, 1);
  const auto sketches = winograd_sketches(space);
  ASSERT_EQ(sketches.size(), 2U);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto inputs = random_inputs(workload, seed);
    const auto expected = lower::evaluate(workload, inputs);
    ASSERT_TRUE(expected.ok());
    Rng rng(seed);
    const double m4 = worst_error(run(space, sample_of(space, sketches[0], rng), inputs)[0], (*expected)[0]);
    const double m2 = worst_error(run(space, sample_of(space, sketches[1], rng), inputs)[0], (*expected)[0]);
    EXPECT_LE(m4, 3e-5);
    EXPECT_LE(m2, 2e-6);
  }
}

TEST(Winograd, RescalesToOtherShapes) {
  const DesignSpace small = build(conv2d_bias_relu(shape(1, 14, 14, 32, 32, 1)), 2);
  const DesignSpace large = build(conv2d_bias_relu(shape(2, 56, 30, 64, 48, 1)), 2);
  Rng rng(7);
  for (const int sketch : winograd_sketches(small)) {
    for (int i = 0; i < 30; ++i) {
      const Candidate c = sample_of(small, sketch, rng);
      EXPECT_EQ(*small.rescale(small, c), c);
      const auto scaled = large.rescale(small, c);
      ASSERT_TRUE(scaled.ok()) << scaled.error().message();
      EXPECT_TRUE(large.check(*scaled).ok());
      EXPECT_EQ(large.describe(scaled->sketch), small.describe(sketch));
    }
  }
}

// The default schedule uses the transforms if they pay; with few channels it does not. For a large
// image the data between the stages are computed strip by strip and kept in the L2 cache, since
// loading their lines from further away is slow (docs/decisions/007-winograd.md).
TEST(Winograd, DefaultKeepsStripsInTheSecondCache) {
  target::Device big = device(1, 64);
  big.l2_bytes = 1 << 20;
  big.l3_bytes = 32 << 20;
  const auto space = DesignSpace::build(conv2d_bias_relu(shape(1, 224, 224, 64, 64, 1)), big, {});
  ASSERT_TRUE(space.ok()) << space.error().message();
  const auto trace = space->to_trace(space->default_candidate());
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  const auto schedule = sched::replay(space->workload(), *trace);
  ASSERT_TRUE(schedule.ok()) << schedule.error().message();
  const auto lowered = lower::lower(*schedule);
  ASSERT_TRUE(lowered.ok()) << lowered.error().message();
  int64_t bytes = 0;  // of the transformed data and the products
  ir::for_each_stmt(lowered->program.body, [&](const ir::Stmt& stmt) {
    const auto* allocate = std::get_if<ir::Allocate>(&stmt->kind);
    if (allocate == nullptr) return;
    const std::string& name = allocate->buffer->name;
    if (name.ends_with(".input") || name.ends_with(".product")) bytes += 4 * allocate->buffer->num_elements();
  });
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, 1.1 * static_cast<double>(big.l2_bytes));
}

TEST(Winograd, DefaultTakesItWhereItIsFaster) {
  const auto takes = [](const Conv2d& conv, int threads) {
    const DesignSpace space = build(conv2d_bias_relu(conv), threads, 64);
    return space.describe(space.default_candidate().sketch).find("winograd") != std::string::npos;
  };
  for (const int threads : {1, 2}) {
    EXPECT_TRUE(takes(shape(1, 56, 56, 64, 64, 1), threads));
    EXPECT_TRUE(takes(shape(1, 28, 28, 128, 128, 1), threads));
    EXPECT_FALSE(takes(shape(1, 112, 112, 8, 8, 1), threads));
  }
}

}  // namespace
}  // namespace tensorsmith::space::winograd_test
