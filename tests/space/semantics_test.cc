// Every candidate computes what the workload says: lowered programs, run by the interpreter,
// compared with direct evaluation of the definition.
#include <gtest/gtest.h>

#include <cmath>

#include "lower/interpreter.h"
#include "lower/lower.h"
#include "space/design_space.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::space::semantics_test {
namespace {

using namespace tensorsmith::test::standard;

target::Device device(int vector_bytes, int cores) {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.cpu().vector_bytes = vector_bytes;
  d.cpu().vector_registers = vector_bytes == 64 ? 32 : 16;
  d.cpu().fma_per_cycle = 2;
  d.cpu().cores = cores;
  return d;
}

// Sums are added in other orders, so floats may differ by rounding; everything else must be equal.
void expect_equal(const lower::Tensor& actual, const lower::Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.shape, expected.shape);
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const auto a = actual.at(i), e = expected.at(i);
    if (!ir::is_float(expected.dtype)) {
      ASSERT_EQ(a.i, e.i) << what << " element " << i;
      continue;
    }
    if (std::isnan(e.f) && std::isnan(a.f)) continue;
    if (a.f == e.f) continue;
    ASSERT_NEAR(a.f, e.f, 1e-4 * std::abs(e.f) + 2e-4) << what << " element " << i;
  }
}

class Checker {
 public:
  Checker(const ir::Workload& workload, uint64_t seed) : workload_(workload) {
    Rng rng(seed);
    for (const auto& input : workload.inputs())
      inputs_.push_back(lower::random_tensor(input->dtype, input->shape, rng, 3));
    auto outputs = lower::evaluate(workload, inputs_);
    EXPECT_TRUE(outputs.ok()) << outputs.error().message();
    if (outputs.ok()) expected_ = std::move(*outputs);
  }

  void check(const DesignSpace& space, const Candidate& c) {
    const auto trace = space.to_trace(c);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    const std::string what = space.describe(c.sketch) + "\n" + sched::print(*trace);
    const auto schedule = sched::replay(workload_, *trace);
    ASSERT_TRUE(schedule.ok()) << what << schedule.error().message();
    const auto lowered = lower::lower(*schedule);
    ASSERT_TRUE(lowered.ok()) << what << lowered.error().message();
    auto inputs = inputs_;
    for (const auto& constant : lowered->prepared) {
      auto prepared = lower::prepare(constant, inputs_[constant.input]);
      ASSERT_TRUE(prepared.ok()) << what << prepared.error().message();
      inputs[constant.input] = std::move(*prepared);
    }
    const auto actual = lower::run(lowered->program, inputs);
    ASSERT_TRUE(actual.ok()) << what << actual.error().message();
    ASSERT_EQ(actual->size(), expected_.size());
    for (size_t o = 0; o < expected_.size(); ++o) expect_equal((*actual)[o], expected_[o], what);
  }

 private:
  const ir::Workload& workload_;
  std::vector<lower::Tensor> inputs_, expected_;
};

void check_workload(const ir::Workload& workload, uint64_t seed, int samples) {
  const auto space = DesignSpace::build(workload, device(16 << seed % 3, seed % 2 == 0 ? 1 : 2), {});
  ASSERT_TRUE(space.ok()) << space.error().message();
  Checker checker(workload, seed);
  Rng rng(seed);
  checker.check(*space, space->default_candidate());
  for (int i = 0; i < samples && !::testing::Test::HasFatalFailure(); ++i) {
    Candidate c = space->sample(rng);
    if (i % 3 == 1) c = space->mutate(c, rng);
    if (i % 3 == 2) c = space->crossover(c, space->sample(rng), rng);
    checker.check(*space, c);
  }
}

TEST(Semantics, RandomWorkloads) {
  for (uint64_t seed = 1; seed <= 220; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check_workload(test::random_workload(seed), seed, 6);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Each stage reads its predecessor twice, and inlining would double the reads each time.
TEST(Semantics, ChainOfSharedReads) {
  constexpr int64_t kExtent = 96;
  const auto input = ir::placeholder("X", ir::DType::kF32, {kExtent});
  ir::Workload workload{{input}, {}};
  for (int k = 0; k < 40; ++k) {
    const ir::Var i("i");
    const ir::Buffer& from = workload.operations.back()->output();
    const ir::Expr one = ir::float_imm(ir::DType::kF32, 1);
    // The two loads are separate nodes, as in a parsed program.
    const ir::Expr sigmoid = one / (one + ir::call(ir::Intrinsic::kExp, {-ir::load(from, {i})}));
    workload.operations.push_back(ir::compute("silu" + std::to_string(k), {{i, kExtent}}, {},
                                              ir::Combiner::kNone, {ir::load(from, {i}) * sigmoid}));
  }
  workload.outputs = {workload.operations.back()->output()};
  check_workload(workload, 3, 12);
}

TEST(Semantics, StandardWorkloads) {
  Conv2d conv;
  conv.h = 7;
  conv.w = 9;
  conv.co = 6;
  Conv2d strided = conv;
  strided.stride = 2;
  Conv2d dilated = conv;
  dilated.dilation = 2;
  dilated.pad = 2;
  Conv2d grouped = conv;
  grouped.groups = 2;
  Conv2d wide_groups = grouped;
  wide_groups.ci = 12;
  wide_groups.co = 36;
  wide_groups.groups = 3;
  Conv2d depthwise_strided = strided;
  depthwise_strided.kh = depthwise_strided.kw = 5;
  depthwise_strided.pad = 2;
  Conv2d depthwise_bare = strided;
  depthwise_bare.pad = 0;
  Conv2d pointwise = conv;
  pointwise.kh = pointwise.kw = 1;
  pointwise.pad = 0;
  const std::vector<std::pair<std::string, ir::Workload>> workloads = {
      {"matmul", matmul(17, 33, 10)},
      {"matmul i8", matmul(9, 20, 10, ir::DType::kI8)},
      {"batch_matmul", batch_matmul(3, 5, 16, 8)},
      {"dense_bias_relu", dense_bias_relu(4, 19, 12)},
      {"gemv", dense_bias_relu(1, 40, 30)},
      {"conv2d", conv2d(conv)},
      {"conv2d_bias_relu", conv2d_bias_relu(conv)},
      {"conv2d_bias_silu", conv2d_bias_silu(conv)},
      {"strided", conv2d_bias_relu(strided)},
      {"dilated", conv2d_bias_relu(dilated)},
      {"grouped", conv2d_bias_relu(grouped)},
      {"wide groups", conv2d_bias_relu(wide_groups)},
      {"pointwise", conv2d_bias_relu(pointwise)},
      {"depthwise", depthwise_conv2d(conv)},
      {"depthwise strided", depthwise_conv2d(depthwise_strided)},
      {"depthwise dilated", depthwise_conv2d(dilated)},
      {"depthwise without padding", depthwise_conv2d(depthwise_bare)},
      {"softmax", softmax(5, 37)},
      {"row means", row_means(19, 49)},
      {"means of short rows", row_means(33, 6)},
      {"layernorm", layernorm(6, 40)},
      {"max_pool", max_pool(1, 3, 9, 9, 3, 2, 1)},
      {"max_pool of disjoint windows", max_pool(2, 3, 8, 12, 2, 2, 0)},
      {"elementwise", elementwise_chain(100)}};
  uint64_t seed = 1000;
  for (const auto& [name, workload] : workloads) {
    SCOPED_TRACE(name);
    check_workload(workload, ++seed, 40);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tensorsmith::space::semantics_test
