// Runs NVRTC's output on an NVIDIA GPU. Skipped if there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/cuda/nvrtc.h"
#include "runtime/device/canary.h"
#include "runtime/device/gpu.h"
#include "runtime/device/probe.h"

namespace tensorsmith::codegen::hardware_test {
namespace {

using runtime::GpuSpan;
using runtime::Launch;
using ::testing::HasSubstr;

constexpr const char* kKernels = R"(
extern "C" __global__ void twice(const float* a, float* w) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  w[i] = 2 * a[i];
}
// Reverses blocks of 16,384 values in 64 KiB of shared memory.
extern "C" __global__ void reversed(const float* w, float* c) {
  extern __shared__ float values[];
  const int n = 16384, base = blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = w[base + i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) c[base + i] = values[n - 1 - i];
}
extern "C" __global__ void illegal(float* c) { *(volatile float*)(c + (1ll << 40)) = 1; }
)";

class CudaHardware : public ::testing::Test {
 protected:
  void SetUp() override {
    auto gpu = runtime::open_gpu({&runtime::cuda_platform, 0});
    if (!gpu.ok()) GTEST_SKIP() << gpu.error().message();
    gpu_ = std::move(gpu).value();
    const char* folder = std::getenv("TENSORSMITH_NVRTC");
    auto nvrtc = Nvrtc::open(std::vector<std::string>(folder ? 1 : 0, folder ? folder : ""));
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message();
    const runtime::GpuProperties& p = gpu_->properties();
    const std::string architecture = "sm_" + std::to_string(10 * p.compute_major + p.compute_minor);
    auto compiled = (*nvrtc)->compile(kKernels, architecture);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message();
    auto module = gpu_->load(compiled->cubin);
    ASSERT_TRUE(module.ok()) << module.error().message();
    module_ = std::move(module).value();
  }
  std::unique_ptr<runtime::GpuMemory> allocate(int64_t bytes) {
    auto memory = gpu_->allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.error().message();
    return std::move(memory).value();
  }

  std::unique_ptr<runtime::Gpu> gpu_;
  std::unique_ptr<runtime::GpuModule> module_;
};

TEST_F(CudaHardware, ComputesThroughAWorkspaceAndSharedMemory) {
  constexpr int64_t kValues = 4 * 16384, kBytes = 4 * kValues;
  std::vector<float> a(kValues), c(kValues);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  const auto da = allocate(kBytes), dc = allocate(kBytes), workspace = allocate(64 + kBytes);
  ASSERT_TRUE(gpu_->copy_in(da->all(), a.data()).ok());
  const std::vector<Launch> launches = {{"twice", {kValues / 256, 1, 1}, {256, 1, 1}, 0, {{0, 0}, {-1, 64}}},
                                        {"reversed", {4, 1, 1}, {512, 1, 1}, 65536, {{-1, 64}, {1, 0}}}};
  const std::vector<GpuSpan> buffers = {da->all(), dc->all()};
  auto sequence = gpu_->make_sequence();
  ASSERT_TRUE(sequence.ok());
  const Status added = (*sequence)->add(*module_, launches, buffers, workspace->all());
  ASSERT_TRUE(added.ok()) << added.error().message();
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(gpu_->fill(dc->all(), 0xFF).ok());
    const Status ran = (*sequence)->run();
    ASSERT_TRUE(ran.ok()) << ran.error().message();
    ASSERT_TRUE(gpu_->copy_out(dc->all(), c.data()).ok());
    for (size_t i = 0; i < c.size(); ++i) {
      const size_t from = i / 16384 * 16384 + 16383 - i % 16384;
      ASSERT_EQ(c[i], 2 * a[from]) << i;
    }
  }
  const auto seconds = (*sequence)->time();
  ASSERT_TRUE(seconds.ok()) << seconds.error().message();
  EXPECT_GT(*seconds, 0);
  EXPECT_LT(*seconds, 1);
}

TEST_F(CudaHardware, RunsTheCanaryAndIsMeasured) {
  const Status canary = runtime::run_canary(*gpu_);
  ASSERT_TRUE(canary.ok()) << canary.error().message();
  const auto measured = runtime::measure_gpu(*gpu_);
  ASSERT_TRUE(measured.ok()) << measured.error().message();
  const double told = gpu_->properties().memory_bandwidth_gbs;
  EXPECT_GT(measured->memory_bandwidth_gbs, 0.3 * told);
  EXPECT_LT(measured->memory_bandwidth_gbs, 1.1 * told);
  EXPECT_GT(measured->launch_overhead_us, 0.3);
  EXPECT_LT(measured->launch_overhead_us, 50);
}

// Must be the last test: the device's context is unusable afterwards.
TEST_F(CudaHardware, WasLostAfterAnIllegalAddress) {
  const auto c = allocate(256);
  const Launch launch = {"illegal", {1, 1, 1}, {1, 1, 1}, 0, {{0, 0}}};
  const GpuSpan buffer = c->all();
  auto sequence = gpu_->make_sequence();
  ASSERT_TRUE(sequence.ok());
  ASSERT_TRUE((*sequence)->add(*module_, std::span(&launch, 1), std::span(&buffer, 1), {}).ok());
  static_cast<void>((*sequence)->run());
  const Status status = gpu_->synchronize();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr("a kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_TRUE(gpu_->lost());
  EXPECT_FALSE(gpu_->fill(c->all(), 0).ok());
}

}  // namespace
}  // namespace tensorsmith::codegen::hardware_test
