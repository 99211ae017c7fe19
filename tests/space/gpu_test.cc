// Design spaces of GPUs: every candidate is legal on its device and computes what the workload
// says.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "gpu_program.h"
#include "ir/text.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "sched/device_limits.h"
#include "space/design_space.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::space::gpu_test {
namespace {

using namespace tensorsmith::test::standard;

// A GPU like that of a phone, with few known attributes.
target::Device small_gpu() {
  target::Device d;
  d.name = "small";
  d.figures = target::GpuFigures{};
  d.arch = "opencl";
  d.gpu().multiprocessors = 4;
  d.clock_ghz = 0.5;
  d.gpu().registers_per_thread = 64;
  d.gpu().warp_size = 16;
  d.gpu().max_threads_per_block = 128;
  d.gpu().shared_memory_per_block = 16 << 10;
  d.gpu().max_vthread_extent = 4;
  return d;
}

std::vector<target::Device> devices() {
  std::vector<target::Device> result{small_gpu()};
  for (const char* name : {"v100", "a100", "h100", "mi50"}) {
    auto device = target::find_device(name);
    EXPECT_TRUE(device.ok());
    if (device.ok()) result.push_back(*device);
  }
  return result;
}

DesignSpace build(const ir::Workload& workload, const target::Device& device) {
  auto space = DesignSpace::build(workload, device, {});
  EXPECT_TRUE(space.ok()) << space.error().message();
  return *space;
}

void expect_equal(const lower::Tensor& actual, const lower::Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.shape, expected.shape);
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const auto a = actual.at(i), e = expected.at(i);
    if (!ir::is_float(expected.dtype)) {
      ASSERT_EQ(a.i, e.i) << what << " element " << i;
      continue;
    }
    if ((std::isnan(e.f) && std::isnan(a.f)) || a.f == e.f) continue;
    ASSERT_NEAR(a.f, e.f, 1e-4 * std::abs(e.f) + 2e-4) << what << " element " << i;
  }
}

class Checker {
 public:
  Checker(const ir::Workload& workload, const target::Device& device, uint64_t seed)
      : workload_(workload), device_(device) {
    Rng rng(seed);
    for (const auto& input : workload.inputs())
      inputs_.push_back(lower::random_tensor(input->dtype, input->shape, rng, 3));
    auto outputs = lower::evaluate(workload, inputs_);
    EXPECT_TRUE(outputs.ok()) << outputs.error().message();
    if (outputs.ok()) expected_ = std::move(*outputs);
  }

  void check(const DesignSpace& space, const Candidate& c) {
    ASSERT_TRUE(space.check(c).ok()) << space.check(c).error().message();
    EXPECT_TRUE(std::isfinite(space.estimate(c)) && space.estimate(c) > 0);
    const auto trace = space.to_trace(c);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    const std::string what = device_.name + ": " + space.describe(c.sketch) + "\n" + sched::print(*trace);
    const auto schedule = sched::replay(workload_, *trace);
    ASSERT_TRUE(schedule.ok()) << what << schedule.error().message();
    const auto bounds = sched::infer_bounds(*schedule);
    ASSERT_TRUE(bounds.ok()) << what << bounds.error().message();
    const Status limits = sched::check_device_limits(*schedule, *bounds, device_);
    ASSERT_TRUE(limits.ok()) << what << limits.error().message();
    const auto lowered = lower::lower(*schedule);
    ASSERT_TRUE(lowered.ok()) << what << lowered.error().message();
    ASSERT_EQ(test::broken_gpu_rule(lowered->program), "") << what << ir::print(lowered->program);
    const auto actual = lower::run(lowered->program, inputs_);
    ASSERT_TRUE(actual.ok()) << what << actual.error().message();
    ASSERT_EQ(actual->size(), expected_.size());
    for (size_t o = 0; o < expected_.size(); ++o) expect_equal((*actual)[o], expected_[o], what);
  }

 private:
  const ir::Workload& workload_;
  const target::Device& device_;
  std::vector<lower::Tensor> inputs_, expected_;
};

void check_workload(const ir::Workload& workload, const target::Device& device, uint64_t seed, int samples) {
  const auto space = build(workload, device);
  Checker checker(workload, device, seed);
  Rng rng(seed);
  checker.check(space, space.default_candidate());
  checker.check(space, space.plain_candidate());
  for (int i = 0; i < samples && !::testing::Test::HasFatalFailure(); ++i) {
    Candidate c = space.sample(rng);
    if (i % 3 == 1) c = space.mutate(c, rng);
    if (i % 3 == 2) c = space.crossover(c, space.sample(rng), rng);
    checker.check(space, c);
  }
}

// T[b, j, i] = 2 * X[b, i, j]
ir::Workload transpose(int64_t batch, int64_t rows, int64_t columns) {
  const auto input = ir::placeholder("X", ir::DType::kF32, {batch, rows, columns});
  ir::Workload workload{{input}, {}};
  const ir::Var b("b"), i("i"), j("j");
  workload.operations.push_back(
      ir::compute("T", {{b, batch}, {j, columns}, {i, rows}}, {}, ir::Combiner::kNone,
                  {ir::load(input->output(), {b, i, j}) * ir::float_imm(ir::DType::kF32, 2)}));
  workload.outputs = {workload.operations.back()->output()};
  return workload;
}

std::vector<std::pair<std::string, ir::Workload>> workloads() {
  Conv2d conv;
  conv.h = 7;
  conv.w = 9;
  conv.co = 6;
  Conv2d strided = conv;
  strided.stride = 2;
  Conv2d dividing = conv;
  dividing.h = dividing.w = 8;
  dividing.co = 16;
  Conv2d grouped = conv;
  grouped.groups = 2;
  Conv2d wide_groups = grouped;
  wide_groups.ci = 12;
  wide_groups.co = 36;
  wide_groups.groups = 3;
  Conv2d pointwise = conv;
  pointwise.kh = pointwise.kw = 1;
  pointwise.pad = 0;
  return {{"matmul", matmul(32, 32, 16)},
          {"matmul with tails", matmul(17, 33, 10)},
          {"matmul of a prime reduction", matmul(9, 16, 37)},
          {"matmul of few outputs", matmul(3, 5, 640)},
          {"batch_matmul", batch_matmul(3, 5, 16, 8)},
          {"dense_bias_relu", dense_bias_relu(4, 19, 12)},
          {"gemv", dense_bias_relu(1, 40, 30)},
          {"conv2d", conv2d(conv)},
          {"conv2d that divides", conv2d_bias_relu(dividing)},
          {"conv2d_bias_silu", conv2d_bias_silu(conv)},
          {"strided", conv2d_bias_relu(strided)},
          {"grouped", conv2d_bias_relu(grouped)},
          {"wide groups", conv2d_bias_relu(wide_groups)},
          {"pointwise", conv2d_bias_relu(pointwise)},
          {"depthwise", depthwise_conv2d(strided)},
          {"softmax", softmax(8, 37)},
          {"row means", row_means(19, 49)},
          {"means of long rows", row_means(2, 700)},
          {"layernorm", layernorm(6, 40)},
          {"max_pool", max_pool(1, 3, 9, 9, 3, 2, 1)},
          {"max_pool of disjoint windows", max_pool(2, 3, 8, 12, 2, 2, 0)},
          {"transpose", transpose(2, 16, 48)},
          {"transpose with tails", transpose(3, 21, 37)},
          {"elementwise", elementwise_chain(100)}};
}

TEST(GpuSpace, StandardWorkloads) {
  const auto all = devices();
  uint64_t seed = 1000;
  for (const auto& [name, workload] : workloads()) {
    for (int k = 0; k < 2; ++k) {
      const auto& device = all[++seed % all.size()];
      SCOPED_TRACE(device.name + " " + name + " seed " + std::to_string(seed));
      check_workload(workload, device, seed, 10);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Neighbours, mutations, crossovers and candidates rescaled from other shapes are legal.
TEST(GpuSpace, VariationStaysLegal) {
  const auto all = devices();
  uint64_t seed = 1;
  for (const auto& [name, workload] : workloads()) {
    const auto& device = all[++seed % all.size()];
    SCOPED_TRACE(device.name + " " + name + " seed " + std::to_string(seed));
    const auto space = build(workload, device);
    Rng rng(seed);
    Candidate c = space.default_candidate();
    for (int i = 0; i < 40; ++i) {
      const Candidate next = space.mutate(c, rng);
      EXPECT_NE(next, c);
      ASSERT_TRUE(space.check(next).ok());
      for (const Candidate& n : space.neighbours(next)) ASSERT_TRUE(space.check(n).ok());
      ASSERT_TRUE(space.check(space.crossover(next, c, rng)).ok());
      c = next;
    }
    for (size_t k = 0; k < space.num_sketches(); ++k) {
      EXPECT_GE(space.size(static_cast<int>(k)), 1);
      for (const Candidate& first : space.enumerate(static_cast<int>(k), 50)) EXPECT_EQ(first.sketch, k);
    }
  }
}

TEST(GpuSpace, RescalesToOtherShapes) {
  const auto device = *target::find_device("v100");
  const auto small = build(matmul(64, 64, 64), device), large = build(matmul(200, 300, 48), device);
  Rng rng(4);
  int scaled = 0;
  for (int i = 0; i < 60; ++i) {
    const Candidate c = small.sample(rng);
    const auto same = small.rescale(small, c);
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(*same, c);
    const auto other = large.rescale(small, c);
    if (!other.ok()) continue;
    EXPECT_TRUE(large.check(*other).ok());
    EXPECT_EQ(large.describe(other->sketch), small.describe(c.sketch));
    ++scaled;
  }
  EXPECT_GT(scaled, 50);
}

// Checks every reason for which a block does not fit a device.
TEST(GpuSpace, RefusesWhatDoesNotFitWithTheReason) {
  const auto space = build(matmul(1024, 1024, 1024), small_gpu());
  Rng rng(8);
  std::set<std::string> reasons;
  Candidate c = space.default_candidate();
  for (int i = 0; i < 20000; ++i) {
    Candidate wild = c;
    for (size_t k = 0; k < wild.decisions.size(); ++k)
      if (rng.bernoulli(0.3)) wild.decisions[k] = rng.uniform_int(1, 32);
    const Status status = space.check(wild);
    if (status.ok() || status.error().code != ErrorCode::kResourceExhausted) continue;
    for (const char* word :
         {"the device allows", "virtual threads", "shared memory", "registers", "idle", "tail"})
      if (status.error().reason.find(word) != std::string::npos) reasons.insert(word);
  }
  EXPECT_EQ(reasons, (std::set<std::string>{"the device allows", "virtual threads", "shared memory",
                                            "registers", "idle", "tail"}));
}

TEST(GpuSpace, FindsTheExpectedStructures) {
  const auto device = *target::find_device("a100");
  const auto gemm = build(matmul(4096, 4096, 4096), device);
  EXPECT_EQ(gemm.describe(0), "tile SSSRRSRS C");
  Conv2d conv;
  EXPECT_EQ(build(conv2d_bias_relu(conv), device).describe(0), "tile SSSRRSRS conv into relu with pad");
  EXPECT_EQ(build(softmax(8, 100), device).describe(0), "row-wise div of sum exp max");
  EXPECT_EQ(build(elementwise_chain(100), device).describe(0), "threads out");
  const auto transposed = build(transpose(1, 4096, 4096), device);
  EXPECT_EQ(transposed.describe(transposed.default_candidate().sketch), "squares T");
  // There are too few outputs for the device's multiprocessors.
  const auto few = build(matmul(16, 64, 4096), device);
  bool parts = false;
  for (size_t k = 0; k < few.num_sketches(); ++k)
    parts = parts || few.describe(static_cast<int>(k)).starts_with("in 16 parts: tile SSSRRSRS C.rf");
  EXPECT_TRUE(parts);
  EXPECT_TRUE(few.describe(few.default_candidate().sketch).starts_with("in "));
  EXPECT_FALSE(gemm.describe(static_cast<int>(gemm.num_sketches()) - 1).starts_with("in "));
}

// A product of large matrices: whole warps, operands in shared memory, tens of products per read of
// a thread.
TEST(GpuSpace, DefaultOfAMatrixProductIsSound) {
  for (const char* name : {"v100", "a100", "h100", "mi50"}) {
    const auto device = *target::find_device(name);
    const auto space = build(matmul(4096, 4096, 4096), device);
    const Candidate c = space.default_candidate();
    const auto trace = space.to_trace(c);
    ASSERT_TRUE(trace.ok());
    const auto schedule = sched::replay(space.workload(), *trace);
    ASSERT_TRUE(schedule.ok());
    const auto bounds = sched::infer_bounds(*schedule);
    ASSERT_TRUE(bounds.ok());
    int64_t shared = 0, registers = 0, threads = 0;
    for (const sched::StageId s : schedule->stages.ids()) {
      const auto& stage = schedule->stages[s];
      if (stage.attach == sched::AttachKind::kAt && stage.scope == ir::MemoryScope::kShared) ++shared;
      if (stage.scope == ir::MemoryScope::kLocal)
        registers = bounds->stages[s].root_extent[0] * bounds->stages[s].root_extent[1];
      for (const sched::IteratorId leaf : stage.leaves) {
        if (stage.iterators[leaf].annotation == sched::Annotation::kThreadX)
          threads = bounds->stages[s].extents[leaf];
        if (stage.iterators[leaf].annotation == sched::Annotation::kVThread)
          registers *= bounds->stages[s].extents[leaf];
      }
    }
    EXPECT_EQ(shared, 2) << name;
    EXPECT_GE(registers, 16) << name;
    EXPECT_EQ(threads % device.gpu().warp_size, 0) << name;
    // At most twice the time that the peak allows.
    EXPECT_LT(space.estimate(c), 2 * 2e-9 * 4096.0 * 4096 * 4096 / device.peak_f32_gflops) << name;
  }
}

TEST(GpuSpace, RandomWorkloads) {
  const auto all = devices();
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const auto& device = all[seed % all.size()];
    SCOPED_TRACE(device.name + " seed " + std::to_string(seed));
    check_workload(test::random_workload(seed), device, seed, 6);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tensorsmith::space::gpu_test
