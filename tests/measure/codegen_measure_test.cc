// The measurer with generated code: schedules of real workloads, their expected outputs, packed
// weights.
#include <gtest/gtest.h>

#include <chrono>

#include "lower/lower.h"
#include "measure/local_measurer.h"
#include "measure/task_data.h"
#include "support/standard_workloads.h"

namespace tensorsmith::measure::codegen_measure_test {
namespace {

using record::MeasureResult;
using test::standard::Conv2d;

class CollectingSink final : public LogSink {
 public:
  void log(LogLevel level, std::string_view message) override {
    // These tests do not care which sandbox features the kernel lacks.
    if (level >= LogLevel::kWarning && message.find("sandbox") == std::string_view::npos)
      text += std::string(message) + "\n";
  }
  std::string text;
};

class CodegenMeasure : public ::testing::Test {
 protected:
  std::vector<MeasureResult> measure(const ir::Workload& workload, const std::vector<sched::Trace>& traces,
                                     int threads = 1) {
    if (!measurer_ || threads != threads_) {
      threads_ = threads;
      MeasureOptions options;
      options.hopeless_factor = 0;
      auto device = target::probe_local();
      EXPECT_TRUE(device.ok());
      device->cpu().cores = threads;
      auto made = make_local_measurer(*device, options, {WORKER_PROGRAM}, log_);
      EXPECT_TRUE(made.ok()) << made.error().message();
      measurer_ = std::move(made).value();
    }
    std::vector<MeasureRequest> candidates;
    for (const auto& trace : traces) candidates.push_back({trace, {}});
    auto results = measurer_->measure(workload, candidates, 0, nullptr);
    EXPECT_TRUE(results.ok()) << results.error().message();
    return results.ok() ? *results : std::vector<MeasureResult>(traces.size());
  }

  void expect_ok(const ir::Workload& workload) {
    for (int threads : {1, 2}) {
      for (const auto& result : measure(workload, {sched::Trace{}, reference_trace(workload)}, threads)) {
        EXPECT_TRUE(result.ok()) << record::to_string(result.outcome) << ": " << result.reason;
      }
    }
    EXPECT_EQ(log_.text, "");
  }

  CollectingSink log_;
  int threads_ = 0;
  std::unique_ptr<Measurer> measurer_;
};

TEST_F(CodegenMeasure, StandardWorkloads) {
  expect_ok(test::standard::matmul(33, 50, 70));
  expect_ok(test::standard::matmul(33, 50, 70, ir::DType::kI8));
  expect_ok(test::standard::dense_bias_relu(8, 40, 32));
  expect_ok(test::standard::conv2d_bias_relu({.h = 14, .w = 14, .ci = 8, .co = 24}));
  expect_ok(test::standard::depthwise_conv2d({.h = 14, .w = 14, .ci = 8}));
  expect_ok(test::standard::softmax(10, 40));
  expect_ok(test::standard::layernorm(10, 40));
  expect_ok(test::standard::max_pool(1, 4, 14, 14, 3, 2, 1));
  expect_ok(test::standard::elementwise_chain(1000));
}

// The workload is too large for the interpreter, so the expected output comes from the reference
// program.
TEST_F(CodegenMeasure, LargeTaskIsComparedWithTheReferenceProgram) {
  const auto workload = test::standard::conv2d({.h = 28, .w = 28, .ci = 64, .co = 64});
  ASSERT_GT(ir::flop_count(workload), 3e7);
  expect_ok(workload);
}

}  // namespace
}  // namespace tensorsmith::measure::codegen_measure_test
