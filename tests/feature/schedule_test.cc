// Features that are computed directly from a schedule.
#include <gmock/gmock.h>

#include <cmath>
#include <iostream>
#include <map>

#include "feature/per_store.h"
#include "sched/step.h"
#include "sched/trace_traits.h"
#include "schedule_view.h"
#include "space/design_space.h"
#include "support/random_trace.h"
#include "support/small_workloads.h"
#include "support/standard_workloads.h"

namespace tensorsmith::feature::schedule_test {
namespace {

float at(const FeatureMatrix& matrix, int row, const std::string& name) {
  if (const auto column = per_store_schema().find(name)) return matrix.row(row)[*column];
  ADD_FAILURE() << "no column " << name;
  return NAN;
}
float slog(double x) { return static_cast<float>(std::log2(x + 1)); }

bool reduces_across_threads(const sched::Schedule& schedule) {
  for (const sched::Stage& stage : schedule.stages) {
    for (const sched::IteratorId leaf : stage.leaves) {
      const sched::Iterator& it = stage.iterators[leaf];
      if (it.kind != sched::IterKind::kSpatial && it.annotation >= sched::Annotation::kVThread) return true;
    }
  }
  return false;
}

// Number of compared values of features that are computed directly from schedules, and which of
// them differ.
struct Agreement {
  int64_t values = 0, different = 0, schedules = 0;
  std::map<std::string, int64_t> by_column;

  // Compares with the program of the same loops, simplified by ir::simplify and traversed like any
  // program. If the two simplifiers write an index differently, counts of integer operations and
  // rarely a range differ; features that do not depend on indices must be equal. The program does
  // not see layouts.
  void compare(const sched::Schedule& schedule, const std::string& what) {
    if (reduces_across_threads(schedule)) return;  // the view turns them into ordinary loops
    const auto ours = extract_per_store(schedule, {});
    const auto view = testing::view_schedule(schedule);
    ASSERT_TRUE(ours.ok() && view.ok()) << what;
    const FeatureMatrix other = extract_per_store(view->program, {});
    ASSERT_EQ(ours->rows, other.rows) << what;
    ++schedules;
    for (int r = 0; r < ours->rows; ++r) {
      for (int c = 0; c < kPerStoreWidth; ++c) {
        const std::string name = kPerStoreColumns[static_cast<size_t>(c)].name();
        if (name == "alloc_size" || name == "alloc_prod") continue;  // a program allocates whole tensors
        if (name == "auto_unroll_max_step")
          continue;  // the view has no place for the pragma of a loop that runs once
        const float a = ours->row(r)[static_cast<size_t>(c)], b = other.row(r)[static_cast<size_t>(c)];
        ASSERT_TRUE(std::isfinite(a));
        ++values;
        if (std::abs(a - b) <= 2e-4F) continue;
        ++different;
        ++by_column[name];
        const auto place = static_cast<size_t>(c);
        const bool structural = (place >= place_of_group(kPerStoreColumns, kVectorizedGroup) &&
                                 place < place_of_group(kPerStoreColumns, kBufferGroups[0])) ||
                                place >= place_of(kPerStoreColumns, "alloc_size");
        ASSERT_FALSE(structural) << what << " row " << r << " " << name << ": " << a << " and " << b;
      }
    }
  }
  void report() const {
    std::cout << schedules << " schedules, " << different << " of " << values << " numbers differ\n";
    for (const auto& [name, count] : by_column) std::cout << "  " << name << " " << count << "\n";
    EXPECT_LT(different * 200, values);
  }
};

TEST(ScheduleFeatures, AgreeWithTheProgramOfTheSameLoops) {
  Agreement agreement;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Rng rng(seed);
    const ir::Workload workload = test::small::random(rng);
    bool arg = false;  // the view omits the combiner's comparisons
    for (const auto& op : workload.operations)
      arg = arg || op->combiner == ir::Combiner::kArgMax || op->combiner == ir::Combiner::kArgMin;
    if (arg) continue;
    test::RandomTraceOptions options;
    options.layouts = false;
    options.thread_axes = seed % 3 == 0;
    const auto builder = test::random_schedule(workload, rng, options);
    agreement.compare(builder.schedule(), "seed " + std::to_string(seed));
    if (HasFatalFailure()) return;
  }
  agreement.report();
}

// The stages that winograd makes, placed and tiled as in the design space.
TEST(ScheduleFeatures, AgreeOnWinogradSketches) {
  test::standard::Conv2d conv;
  conv.h = 11;
  conv.w = 14;
  conv.ci = conv.co = 16;
  const ir::Workload workload = test::standard::conv2d_bias_relu(conv);
  target::Device device;
  device.cpu().vector_bytes = 32;
  device.cpu().cores = 2;
  const auto space = space::DesignSpace::build(workload, device, {});
  ASSERT_TRUE(space.ok());
  Agreement agreement;
  Rng rng(4);
  while (agreement.schedules < 60) {
    auto trace = space->to_trace(space->sample(rng));
    ASSERT_TRUE(trace.ok());
    if (!sched::uses_winograd(*trace)) continue;
    std::erase_if(trace->steps,
                  [](const sched::Step& step) { return std::holds_alternative<sched::PackLayout>(step); });
    agreement.compare(*sched::replay(workload, *trace), sched::print(*trace));
    if (HasFatalFailure()) return;
  }
  agreement.report();
}

TEST(ScheduleFeatures, LayoutsMoveTheStrides) {
  // W[n, k] read along n by the innermost loop: stride k, packed to 16 adjacent n: stride 1.
  const ir::Workload workload = test::standard::dense_bias_relu(8, 64, 128);
  for (const bool packed : {false, true}) {
    sched::ScheduleBuilder builder(workload);
    const auto dense = static_cast<int>(builder.schedule().stage_named("dense")->place());
    const auto weights = static_cast<int>(builder.schedule().stage_named("W")->place());
    const auto apply = [&](const sched::Step& step) {
      const Status status = builder.apply(step);
      ASSERT_TRUE(status.ok()) << status.error().message();
    };
    apply(sched::Split{dense, 1, {16}});         // m, n.0, n.1, k
    apply(sched::Reorder{dense, {0, 1, 3, 2}});  // m, n.0, k, n.1
    apply(sched::Annotate{dense, 3, sched::Annotation::kVectorize});
    if (packed) apply(sched::PackLayout{weights, {{0, 16, 4}, {1, 1, 128}, {0, 1, 16}}});
    const auto features = extract_per_store(builder.schedule(), {});
    ASSERT_TRUE(features.ok());
    float weight_stride = -1;
    for (int b = 0; b < 3; ++b) {
      const std::string prefix = "B" + std::to_string(b) + ".";
      // W is the only one of the three buffers that is accessed in all its 64 * 128 floats.
      if (std::abs(at(*features, 0, prefix + "unique_bytes") - slog(4 * 64 * 128)) < 1e-4)
        weight_stride = at(*features, 0, prefix + "stride");
    }
    EXPECT_NEAR(weight_stride, slog(packed ? 1 : 128), 1e-4);
  }
}

TEST(ScheduleFeatures, AttachedStagesAllocateTheirRegion) {
  sched::ScheduleBuilder builder(test::standard::elementwise_chain(1024));
  // The last stage in tiles of 32, with the preceding one computed inside.
  const auto last = static_cast<int>(builder.schedule().stages.size()) - 1;
  ASSERT_TRUE(builder.apply(sched::Split{last, 0, {32}}).ok());
  ASSERT_TRUE(builder.apply(sched::ComputeAt{last - 1, last, 0}).ok());
  const auto features = extract_per_store(builder.schedule(), {});
  ASSERT_TRUE(features.ok());
  const int row = features->rows - 2;
  EXPECT_NEAR(at(*features, row, "alloc_size"), slog(32 * 4), 1e-4);
  EXPECT_NEAR(at(*features, row, "alloc_outer_prod"), slog(32), 1e-4);
  EXPECT_NEAR(at(*features, row, "alloc_inner_prod"), slog(32), 1e-4);
  EXPECT_NEAR(at(*features, row, "outer_prod"), slog(1024), 1e-4);
}

}  // namespace
}  // namespace tensorsmith::feature::schedule_test
