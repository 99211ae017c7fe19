// The short path that the search takes for every candidate, compared with the plain one: decisions
// -> schedule -> features must equal trace -> replay -> features, bit for bit.
#include "search/pipeline.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "sched/trace_traits.h"
#include "support/print_schedule.h"
#include "support/standard_workloads.h"

namespace tensorsmith::search::pipeline_test {
namespace {

target::Device avx512() {
  target::Device device;
  device.name = "test";
  device.cpu().vector_bytes = 64;
  device.cpu().vector_registers = 32;
  return device;
}

constexpr learn::ModelInputs kAll = {.rows = true, .leaves = true, .trace = true};

// Candidates share rewritten definitions, so each is made after many others. Returns how many of
// them used Winograd's filtering.
int compare(const ir::Workload& workload, int threads, uint64_t seed, int count) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(threads) + " threads");
  target::Device device = avx512();
  device.cpu().cores = threads;
  const auto space = space::DesignSpace::build(workload, device, {});
  EXPECT_TRUE(space.ok()) << space.error().message();
  const auto task = std::make_shared<const QueriedTask>("", "", workload, ir::flop_count(workload), device);
  CandidateFeatures extractor(*space, task, kAll), summaries(*space, task, {.summary = true});
  sched::Schedule schedule;
  Rng rng(seed);
  int winograd = 0;
  for (int i = 0; i < count; ++i) {
    const space::Candidate candidate = space->sample(rng);
    const auto trace = space->to_trace(candidate);
    EXPECT_TRUE(trace.ok());
    winograd += sched::uses_winograd(*trace) ? 1 : 0;
    const auto made = space->to_schedule(candidate, schedule);
    const auto replayed = sched::replay(workload, *trace);
    const auto fast = extractor.of(candidate), plain = inputs_of(*task, workload, *trace, kAll);
    EXPECT_EQ(made.ok(), replayed.ok());
    EXPECT_EQ(fast.ok(), plain.ok());
    if (made.ok() && replayed.ok()) {
      EXPECT_EQ(tensorsmith::test::print_schedule(schedule), tensorsmith::test::print_schedule(*replayed))
          << sched::print(*trace);
    }
    if (!fast.ok() || !plain.ok()) continue;
    EXPECT_EQ((*fast)->rows.rows, (*plain)->rows.rows);
    EXPECT_EQ((*fast)->rows.values, (*plain)->rows.values) << sched::print(*trace);
    EXPECT_EQ((*fast)->leaves.vectors.values, (*plain)->leaves.vectors.values) << sched::print(*trace);
    EXPECT_EQ((*fast)->leaves.positions, (*plain)->leaves.positions) << sched::print(*trace);
    EXPECT_EQ(sched::print((*fast)->trace), sched::print((*plain)->trace));
    // A summary without the trace is the one that the trace gives.
    const auto summary = summaries.of(candidate);
    EXPECT_TRUE(summary.ok() && (*summary)->summary && (*summary)->trace.steps.empty());
    if (!summary.ok() || !(*summary)->summary) return winograd;
    const auto expected = feature::summarize_program(task->access, (*plain)->leaves, *trace, device);
    EXPECT_EQ((*summary)->summary->kind, expected.kind);
    EXPECT_EQ((*summary)->summary->resources, expected.resources) << sched::print(*trace);
    EXPECT_EQ((*summary)->summary->columns, expected.columns) << sched::print(*trace);
    if (::testing::Test::HasFailure()) return winograd;
  }
  return winograd;
}

ir::Workload attention() {
  const auto workload = ir::parse_workload(R"(workload {
  input q: f32[3, 70, 20]
  input k: f32[3, 20, 90]
  input v: f32[3, 90, 40]
  score: f32[b: 3, i: 70, j: 90] = sum{r: 20} q[b, i, r] * k[b, r, j]
  scaled: f32[b: 3, i: 70, j: 90] = score[b, i, j] * 0.25
  most: f32[b: 3, i: 70] = max{r: 90} scaled[b, i, r]
  grown: f32[b: 3, i: 70, j: 90] = exp(scaled[b, i, j] - most[b, i])
  sums: f32[b: 3, i: 70] = sum{r: 90} grown[b, i, r]
  product: f32[b: 3, i: 70, d: 40] = sum{r: 90} grown[b, i, r] * v[b, r, d]
  attention: f32[b: 3, i: 70, d: 40] = product[b, i, d] / sums[b, i]
  output attention
})");
  EXPECT_TRUE(workload.ok());
  return *workload;
}

TEST(Pipeline, CandidatesHaveTheFeaturesOfTheirTraces) {
  namespace standard = tensorsmith::test::standard;
  standard::Conv2d conv;
  conv.ci = 24;
  conv.co = 40;
  conv.h = 17;
  conv.w = 23;
  uint64_t seed = 1;
  for (int threads : {1, 4}) {
    EXPECT_GT(compare(standard::conv2d(conv), threads, seed++, 100), 10);
    EXPECT_GT(compare(standard::conv2d_bias_relu(conv), threads, seed++, 100), 10);
    EXPECT_GT(compare(standard::conv2d_bias_silu(conv), threads, seed++, 100), 10);
    compare(standard::depthwise_conv2d(conv), threads, seed++, 50);
    compare(standard::matmul(100, 96, 130), threads, seed++, 50);
    compare(standard::batch_matmul(3, 33, 40, 50), threads, seed++, 50);
    compare(standard::dense_bias_relu(8, 64, 128), threads, seed++, 50);
    compare(standard::row_means(64, 1000), threads, seed++, 50);
    compare(standard::softmax(64, 1000), threads, seed++, 50);
    compare(standard::layernorm(64, 768), threads, seed++, 50);
    compare(standard::max_pool(1, 16, 28, 28, 3, 2, 1), threads, seed++, 50);
    compare(standard::elementwise_chain(10000), threads, seed++, 20);
    compare(attention(), threads, seed++, 50);
  }
}

}  // namespace
}  // namespace tensorsmith::search::pipeline_test
