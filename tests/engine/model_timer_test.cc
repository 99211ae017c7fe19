// Number of runs when models are timed for a comparison.
#include "engine/model/model_timer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "../graph/graph_builder.h"
#include "base/clock.h"
#include "engine/model/compile_model.h"

namespace tensorsmith::engine::model_timer_test {
namespace {

// Each reading of the clock takes as long as a run of a model.
class SteppingClock final : public Clock {
 public:
  explicit SteppingClock(double step) : step_(step) {}
  double monotonic_seconds() const override { return now_ += step_; }
  int64_t unix_milliseconds() const override { return 0; }

 private:
  double step_;
  mutable double now_ = 0;
};

class ModelTimer : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto device = target::find_device("local:threads=1");
    ASSERT_TRUE(device.ok());
    ModelSource source;
    source.path = "zoo:mobilenet_v2:size=32";
    const auto loaded = load_model(source);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    const auto schedules = default_schedules(loaded->partition, *device);
    ASSERT_TRUE(schedules.ok());
    CompileOptions options;
    options.cache = &cache_;
    auto made = compile_in_memory(*loaded, *device, *schedules, options, {.threads = 1});
    ASSERT_TRUE(made.ok()) << made.error().message();
    model_ = std::move(*made);
  }

  size_t runs(double seconds_a_step, const TimingLimits& limits) {
    const SteppingClock clock(seconds_a_step);
    const auto timings = time_interleaved({model_.model.get(), model_.model.get()}, limits, 1, clock);
    EXPECT_TRUE(timings.ok());
    EXPECT_EQ((*timings)[0].seconds.size(), (*timings)[1].seconds.size());
    return (*timings)[0].seconds.size();
  }

  BuildCache cache_;
  ModelInMemory model_;
};

TEST_F(ModelTimer, RunsAsOftenAndAsLongAsAsked) {
  EXPECT_EQ(runs(1e-6, {.seconds = 0, .runs = 8}), 8U);
  // With two models, the clock is read five times per round.
  EXPECT_NEAR(static_cast<double>(runs(1e-3, {.seconds = 1, .runs = 8})), 1 / 5e-3, 4);
}

// Zero inputs would be less work than real data: a GPU draws less power, and a processor may be
// faster or slower.
TEST(ModelBuffers, FloatsOfAllTypesAreRandom) {
  const auto device = target::find_device("local:threads=1").value();
  for (const ir::DType type : {ir::DType::kF16, ir::DType::kBF16, ir::DType::kF32, ir::DType::kF64}) {
    SCOPED_TRACE(ir::to_string(type));
    graph::testing::GraphBuilder b;
    const graph::ValueId x = b.input({256}, type);
    auto loaded = prepare_model(b.finish({b.node("Neg", {x})}));
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    const auto schedules = default_schedules(loaded->partition, device);
    ASSERT_TRUE(schedules.ok());
    BuildCache cache;
    CompileOptions options;
    options.cache = &cache;
    const auto made = compile_in_memory(*loaded, device, *schedules, options, {.threads = 1});
    ASSERT_TRUE(made.ok()) << made.error().message();
    const ModelBuffers buffers(*made->model, 5);
    lower::Tensor tensor = lower::Tensor::zeros(type, {256});
    std::memcpy(tensor.data.data(), buffers.inputs()[0], tensor.data.size());
    std::set<double> values;
    for (int64_t i = 0; i < 256; ++i) values.insert(tensor.at(i).f);
    EXPECT_GT(values.size(), 100U);
    EXPECT_GE(*values.begin(), -1);
    EXPECT_LE(*values.rbegin(), 1);
    EXPECT_LT(*values.begin(), -0.9);
    EXPECT_GT(*values.rbegin(), 0.9);
  }
}

TEST_F(ModelTimer, SlowModelsRunAFewTimes) {
  EXPECT_EQ(runs(0.5, {.seconds = 1, .runs = 8, .most_seconds = 2}), 3U);
  EXPECT_EQ(runs(0.5, {.seconds = 1, .runs = 8}), 8U);
}

// The predicted time is the actual one, for slow and for fast models.
TEST(LeastTimingSeconds, CountsTheRoundsThatAreMade) {
  EXPECT_DOUBLE_EQ(least_timing_seconds(2, 1e-6, {.seconds = 0.5, .runs = 8, .most_seconds = 1}), 0.5);
  EXPECT_DOUBLE_EQ(least_timing_seconds(2, 0.04, {.seconds = 0.5, .runs = 8, .most_seconds = 1}),
                   2 * 0.04 * 10);
  EXPECT_DOUBLE_EQ(least_timing_seconds(3, 1, {.seconds = 0.5, .runs = 8, .most_seconds = 1}), 3 * 1 * 4);
}

}  // namespace
}  // namespace tensorsmith::engine::model_timer_test
