// Measuring on a device with hand-written modules, correct ones and wrong ones of many kinds:
// OpenCL if there is a device, and CUDA on a driver that computes on the host.
#include "measure/device_measurer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>

#include "doubles.h"
#include "runtime/device/test_device.h"
#include "support/sanitizers.h"

namespace tensorsmith::measure::device_measurer_test {
namespace {

using record::MeasureResult;
using record::Outcome;
using runtime::cuda_platform;
using runtime::Launch;
using runtime::opencl_platform;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Builds modules by name. A candidate is a trace whose only step gives an index into the list.
class ModuleBuilder final : public Builder {
 public:
  void add(const std::string& name, const std::string& text, std::vector<Launch> launches = {},
           int64_t workspace = 0, std::vector<lower::PreparedConstant> prepared = {}) {
    if (launches.empty()) launches = {{"k", {16, 1, 1}, {16, 1, 1}, 0, {{0, 0}, {1, 0}, {2, 0}}}};
    BuiltCandidate built;
    built.kernel.symbol = name;
    built.kernel.object.assign(text.begin(), text.end());
    built.kernel.launches = std::move(launches);
    built.kernel.shared_workspace_bytes = workspace;
    built.prepared = std::move(prepared);
    names_.push_back(name);
    built_.push_back(std::move(built));
  }
  MeasureRequest candidate(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    TS_CHECK(found != names_.end(), "no module " + name);
    MeasureRequest candidate;
    candidate.trace.steps.emplace_back(sched::Unroll{0, static_cast<int>(found - names_.begin())});
    return candidate;
  }
  // Sets the module that is built for traces without a name (the reference program).
  void set_reference(const std::string& name) { reference_ = name; }
  int references() const { return references_; }
  BuildResult build(const ir::Workload&, const sched::Trace& trace) const override {
    if (!std::holds_alternative<sched::Unroll>(trace.steps.at(0))) {
      ++references_;
      return built_.at(
          static_cast<size_t>(std::find(names_.begin(), names_.end(), reference_) - names_.begin()));
    }
    return built_.at(static_cast<size_t>(std::get<sched::Unroll>(trace.steps.at(0)).auto_max_step));
  }

 private:
  std::vector<std::string> names_;
  std::vector<BuiltCandidate> built_;
  std::string reference_;
  mutable std::atomic<int> references_ = 0;
};

class WarningSink final : public LogSink {
 public:
  void log(LogLevel level, std::string_view message) override {
    if (level >= LogLevel::kWarning) lines.emplace_back(message);
  }
  std::vector<std::string> lines;
};

MeasureOptions test_options() {
  MeasureOptions options;
  options.run_timeout_s = 6;
  options.memory_limit_bytes = int64_t{2} << 30;
  options.hopeless_factor = 0;  // other programs use this machine: a repeat may take any time
  return options;
}

class DeviceMeasurerTest : public ::testing::Test {
 protected:
  void start(const DeviceArguments& where, const MeasureOptions& options = test_options()) {
    auto made = make_device_measurer(where, options, {WORKER_PROGRAM}, log_, builder_);
    ASSERT_TRUE(made.ok()) << made.error().message();
    measurer_ = std::move(made).value();
  }
  std::vector<MeasureResult> measure(const std::vector<std::string>& names, double best = 0) {
    std::vector<MeasureRequest> candidates;
    for (const auto& name : names) candidates.push_back(builder_->candidate(name));
    auto results = measurer_->measure(workload_, candidates, best, nullptr);
    EXPECT_TRUE(results.ok()) << results.error().message();
    return results.ok() ? *results : std::vector<MeasureResult>(names.size());
  }
  void expect_right(const MeasureResult& result) {
    ASSERT_TRUE(result.ok()) << record::to_string(result.outcome) << ": " << result.reason;
    EXPECT_GE(result.seconds.size(), 3u);
    EXPECT_GT(result.best_estimate(), 0);
    EXPECT_LT(result.best_estimate(), 0.1);
    EXPECT_GT(result.measure_seconds, 0);
  }
  // Expects that the candidate fails this way and that the candidates before and after it are
  // measured.
  void expect_failure(const std::string& name, Outcome outcome, const std::string& reason) {
    SCOPED_TRACE(name);
    const auto results = measure({"right", name, "right"});
    expect_right(results[0]);
    // Under the address sanitizer, which itself exceeds the memory limit, a hanging candidate may
    // be reported as over that limit.
    if (!TENSORSMITH_ADDRESS_SANITIZER || outcome != Outcome::kRunTimeout) {
      EXPECT_EQ(record::to_string(results[1].outcome), record::to_string(outcome)) << results[1].reason;
      EXPECT_THAT(results[1].reason, HasSubstr(reason));
    }
    EXPECT_TRUE(std::isinf(results[1].best_estimate()));
    expect_right(results[2]);
  }

  ir::Workload workload_ = matmul16();
  std::shared_ptr<ModuleBuilder> builder_ = std::make_shared<ModuleBuilder>();
  WarningSink log_;
  std::unique_ptr<Measurer> measurer_;
};

// C[i, j], where i is the group and j the item.
std::string opencl_kernel(const std::string& result, const std::string& more = "") {
  return "kernel void k(global float* a, global float* b, global float* c) {\n"
         "  const int i = get_group_id(0), j = get_local_id(0), at = i * 16 + j;\n"
         "  float s = 0;\n"
         "  for (int k = 0; k < 16; ++k) s += a[i * 16 + k] * b[k * 16 + j];\n" +
         more + "  c[at] = " + result + ";\n}\n";
}

class OpenClMeasurer : public DeviceMeasurerTest {
 protected:
  void SetUp() override {
    TS_OPENCL_OR_SKIP(gpu);
    builder_->add("right", opencl_kernel("s"));
    start({{&opencl_platform, 0}, ""});
  }
  void add(const std::string& name, const std::string& result, const std::string& more = "") {
    builder_->add(name, opencl_kernel(result, more));
  }
};

TEST_F(OpenClMeasurer, RightCandidatesAreTimed) {
  // Both operands pass through the workspace, at offsets that are multiples of 64 bytes.
  builder_->add("right_with_workspace",
                opencl_kernel("s") +
                    "kernel void copy(global const float* a, global float* w) {"
                    " w[get_global_id(0)] = a[get_global_id(0)]; }",
                {{"copy", {4, 1, 1}, {64, 1, 1}, 0, {{0, 0}, {-1, 64}}},
                 {"copy", {4, 1, 1}, {64, 1, 1}, 0, {{1, 0}, {-1, 64 + 1024 + 64}}},
                 {"k", {16, 1, 1}, {16, 1, 1}, 0, {{-1, 64}, {-1, 64 + 1024 + 64}, {2, 0}}}},
                64 + 1024 + 64 + 1024);
  std::string packed = opencl_kernel("s");
  packed.replace(packed.find("b[k * 16 + j]"), 13, "b[j * 16 + k]");
  builder_->add("right_packed", packed, {}, 0, {{1, nullptr, {{{1, 1, 16}, {0, 1, 16}}}}});
  for (const auto& result : measure({"right", "right_with_workspace", "right_packed", "right"}))
    expect_right(result);
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(OpenClMeasurer, WrongOutputs) {
  add("wrong_element", "at == 37 ? s + 1 : s");
  add("unwritten", "s", "  if (at == 255) return;\n");
  add("accumulates", "c[at] + s");
  // Detects that it ran before, and stays wrong in every later run.
  add("wrong_later", "c[at] == s || c[at] == s + 1 ? s + 1 : s");
  add("writes_before", "s", "  if (at == 0) c[-1] = 0;\n");
  add("writes_behind", "s", "  if (at == 0) c[256] = 0;\n");
  add("writes_input", "s", "  if (at == 0) a[5] = 0;\n");
  builder_->add(
      "writes_behind_workspace",
      opencl_kernel("s") +
          "kernel void touch(global float* w) { w[get_global_id(0)] = 1; w[64 + get_global_id(0)] = 1; }",
      {{"touch", {1, 1, 1}, {64, 1, 1}, 0, {{-1, 0}}},
       {"k", {16, 1, 1}, {16, 1, 1}, 0, {{0, 0}, {1, 0}, {2, 0}}}},
      256);
  expect_failure("wrong_element", Outcome::kWrongOutput, "output 0: element 37 is ");
  expect_failure("unwritten", Outcome::kWrongOutput, "output 0: element 255 is ");
  expect_failure("accumulates", Outcome::kWrongOutput, "elements differ");
  expect_failure("wrong_later", Outcome::kWrongOutput, "correct in the first run, wrong after");
  expect_failure("writes_before", Outcome::kWrongOutput, "writes outside of its outputs: before output 0");
  expect_failure("writes_behind", Outcome::kWrongOutput,
                 "writes outside of its outputs: after the last output");
  expect_failure("writes_input", Outcome::kWrongOutput, "writes outside of its outputs: input 0");
  expect_failure("writes_behind_workspace", Outcome::kWrongOutput, "writes outside of its workspace");
}

TEST_F(OpenClMeasurer, AHangCostsItsCandidateOnly) {
  add("hangs", "s", "  volatile global float* v = c; while (v[at] != 12345.0f) {}\n");
  const auto before = std::chrono::steady_clock::now();
  expect_failure("hangs", Outcome::kRunTimeout, "not finished after 6 s");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(60));
}

TEST_F(OpenClMeasurer, WhatTheDeviceDoesNotTake) {
  builder_->add("no_source", "this is not a program");
  builder_->add("no_kernel", opencl_kernel("s"), {{"other", {1, 1, 1}, {1, 1, 1}, 0, {{0, 0}}}});
  builder_->add("large_block", opencl_kernel("s"),
                {{"k", {1, 1, 1}, {1 << 20, 1, 1}, 0, {{0, 0}, {1, 0}, {2, 0}}}});
  builder_->add("other_buffer", opencl_kernel("s"),
                {{"k", {1, 1, 1}, {1, 1, 1}, 0, {{0, 0}, {1, 0}, {3, 0}}}});
  builder_->add("huge_workspace", opencl_kernel("s"), {}, int64_t{1} << 50);
  builder_->add("large_workspace", opencl_kernel("s"), {}, int64_t{3} << 30);
  expect_failure("no_source", Outcome::kBuildError, "the driver does not build it");
  expect_failure("no_kernel", Outcome::kBuildError, "kernel other: the module has no such kernel");
  expect_failure("large_block", Outcome::kBuildError, "a block of 1048576 x 1 x 1 threads");
  expect_failure("other_buffer", Outcome::kBuildError, "takes buffer 3 of 3");
  expect_failure("huge_workspace", Outcome::kMemoryLimit, "a workspace of 1125899906842624 bytes");
  expect_failure("large_workspace", Outcome::kMemoryLimit, "a workspace of 3221225472 bytes");
}

// The kernel crashes the worker, since a CPU driver runs it in that process.
TEST_F(OpenClMeasurer, ACrashCostsItsCandidateOnly) {
  if (runtime::opencl_device()->properties().is_gpu) GTEST_SKIP() << "a GPU survives this";
  add("crashes", "s", "  if (at == 0) *(volatile global float*)(size_t)(8 + (size_t)s * 0) = 1;\n");
  expect_failure("crashes", Outcome::kCrash, "SIGSEGV");
}

TEST_F(OpenClMeasurer, StopsEarlyWhereNothingIsToBeWon) {
  MeasureOptions options = test_options();
  options.hopeless_factor = 3;
  start({{&opencl_platform, 0}, ""}, options);
  const auto results = measure({"right"}, 1e-9);
  ASSERT_TRUE(results[0].ok()) << results[0].reason;
  EXPECT_TRUE(results[0].stopped_early);
  EXPECT_EQ(results[0].seconds.size(), 1u);
}

// There are many data sets, and the run through all of them is given up before it begins; their
// outputs are then unwritten.
TEST_F(OpenClMeasurer, WhatIsGivenUpByItsFirstRunIsRight) {
  MeasureOptions options = test_options();
  options.hopeless_factor = 3;
  options.min_repeat_s = 2.6e-3;
  start({{&opencl_platform, 0}, ""}, options);
  // A run through all 256 sets, 0.1 to 0.2 ms each, takes as long as ten to twenty repeats.
  add("slow", "s", "  for (volatile int wait = 0; wait < 200; ++wait) {}\n");
  const auto results = measure({"slow"}, 1e-9);
  ASSERT_TRUE(results[0].ok()) << results[0].reason;
  EXPECT_TRUE(results[0].stopped_early);
}

TEST_F(OpenClMeasurer, FlushesTheCache) {
  MeasureOptions options = test_options();
  options.flush_cache = true;
  start({{&opencl_platform, 0}, ""}, options);
  const auto results = measure({"right"});
  expect_right(results[0]);
  EXPECT_EQ(results[0].runs_per_repeat, 1);
}

// A task so large that the expected output is computed by a compiled program.
class LargeTask : public OpenClMeasurer {
 protected:
  void SetUp() override {
    OpenClMeasurer::SetUp();
    if (IsSkipped()) return;
    const auto a = ir::placeholder("A", ir::DType::kF32, {192, 192});
    const auto b = ir::placeholder("B", ir::DType::kF32, {192, 192});
    const ir::Axis i{ir::Var("i"), 192}, j{ir::Var("j"), 192}, k{ir::Var("k"), 192};
    const auto c =
        ir::compute("C", {i, j}, {k}, ir::Combiner::kSum,
                    {ir::load(a->output(), {i.var, k.var}) * ir::load(b->output(), {k.var, j.var})});
    workload_ = {{a, b, c}, {c->output()}};
    std::string text = opencl_kernel("s");
    for (size_t at = text.find("16"); at != std::string::npos; at = text.find("16", at))
      text.replace(at, 2, "192");
    const std::vector<Launch> launches = {{"k", {192, 1, 1}, {192, 1, 1}, 0, {{0, 0}, {1, 0}, {2, 0}}}};
    builder_->add("right_192", text, launches);
    std::string wrong = text;
    wrong.replace(wrong.find("= s;"), 4, "= at == 191 * 192 + 7 ? s + 10 : s;");
    builder_->add("wrong_192", wrong, launches);
    text.replace(text.find("= s;"), 4, "= s + 1;");
    builder_->add("all_wrong_192", text, launches);
  }
  void expect_one_right() {
    const auto results = measure({"right_192", "wrong_192"});
    expect_right(results[0]);
    EXPECT_EQ(results[1].outcome, Outcome::kWrongOutput);
    EXPECT_THAT(results[1].reason, HasSubstr("output 0: element 36679 is"));
  }
};

TEST_F(LargeTask, IsComparedWithAReferenceProgramOfThisMachine) {
  expect_one_right();
  EXPECT_EQ(builder_->references(), 0);
}

// If this machine would take long, the device computes the reference, and this machine checks
// sample points of it.
TEST_F(LargeTask, IsComparedWithAReferenceProgramOfTheDevice) {
  MeasureOptions options = test_options();
  options.most_host_flops = 1e6;
  builder_->set_reference("right_192");
  start({{&opencl_platform, 0}, ""}, options);
  expect_one_right();
  EXPECT_EQ(builder_->references(), 1);
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(LargeTask, AWrongReferenceOfTheDeviceIsNotBelieved) {
  MeasureOptions options = test_options();
  options.most_host_flops = 1e6;
  builder_->set_reference("all_wrong_192");
  start({{&opencl_platform, 0}, ""}, options);
  expect_one_right();
  EXPECT_EQ(builder_->references(), 1);
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_THAT(log_.lines[0], HasSubstr("elements differ"));
}

TEST_F(DeviceMeasurerTest, SaysWhyThereIsNoDevice) {
  const auto made = make_device_measurer({{&cuda_platform, 0}, "libno_such_cuda.so.1"}, test_options(),
                                         {WORKER_PROGRAM}, log_, builder_);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message(),
              AllOf(HasSubstr("libno_such_cuda.so.1"), HasSubstr("install NVIDIA's driver")));
}

// C = A + B on the driver that computes on the host.
class FakeCudaMeasurer : public DeviceMeasurerTest {
 protected:
  void SetUp() override {
    const auto a = ir::placeholder("A", ir::DType::kF32, {256}),
               b = ir::placeholder("B", ir::DType::kF32, {256});
    const ir::Axis i{ir::Var("i"), 256};
    const auto c = ir::compute("C", {i}, {}, ir::Combiner::kNone,
                               {ir::load(a->output(), {i.var}) + ir::load(b->output(), {i.var})});
    workload_ = {{a, b, c}, {c->output()}};
    builder_->add("right", "fake add", {add_launch("add")});
  }
  void TearDown() override { ::unsetenv("FAKE_CUDA_CANARY"); }
  static Launch add_launch(const std::string& symbol) {
    return {symbol, {2, 1, 1}, {128, 1, 1}, 0, {{0, 0}, {1, 0}, {2, 0}}};
  }
  const DeviceArguments where_{{&cuda_platform, 1}, FAKE_CUDA};
};

TEST_F(FakeCudaMeasurer, TimesAndGoesOnAfterWhatBreaksTheContext) {
  start(where_);
  builder_->add("illegal", "fake illegal", {add_launch("illegal")});
  builder_->add("hangs", "fake hangs", {add_launch("hangs")});
  builder_->add("no_cubin", "nothing", {add_launch("add")});
  expect_failure("illegal", Outcome::kCrash, "a kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS");
  expect_failure("hangs", Outcome::kRunTimeout, "not finished after 6 s");
  expect_failure("no_cubin", Outcome::kBuildError, "CUDA_ERROR_INVALID_IMAGE");
  // The fake driver reports 2.5 ms between any two events, here around a graph of several runs.
  const auto result = measure({"right"})[0];
  EXPECT_NEAR(result.best_estimate() * result.runs_per_repeat, 0.0025, 1e-9);
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(FakeCudaMeasurer, BlamesNoCandidateForADeviceThatDoesNotCompute) {
  ::setenv("FAKE_CUDA_CANARY", "wrong", 1);
  start(where_);
  const auto candidate = builder_->candidate("right");
  const auto results = measurer_->measure(workload_, std::span(&candidate, 1), 0, nullptr);
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(results.error().message(), HasSubstr("does not compute: element 0 of a known kernel"));
}

}  // namespace
}  // namespace tensorsmith::measure::device_measurer_test
