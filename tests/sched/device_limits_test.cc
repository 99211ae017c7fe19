#include "sched/device_limits.h"

#include <gtest/gtest.h>

#include "sched/step.h"
#include "support/small_workloads.h"

namespace tensorsmith::sched::device_limits_test {
namespace {

constexpr TailPolicy kPredicate = TailPolicy::kPredicate;

target::Device gpu() {
  target::Device device;
  device.name = "test-gpu";
  device.figures = target::GpuFigures{};
  device.gpu().max_threads_per_block = 64;
  device.gpu().max_vthread_extent = 4;
  device.gpu().shared_memory_per_block = 1024;
  return device;
}

Status check(const ir::Workload& workload, const std::vector<Step>& steps, const target::Device& device) {
  ScheduleBuilder builder(workload);
  for (const Step& step : steps) {
    const Status status = builder.apply(step);
    EXPECT_TRUE(status.ok()) << status.error().message();
  }
  const auto bounds = infer_bounds(builder.schedule());
  EXPECT_TRUE(bounds.ok());
  return check_device_limits(builder.schedule(), *bounds, device);
}

void refuse(const std::vector<Step>& steps, const target::Device& device, const std::string& message) {
  const Status status = check(test::small::matmul(64, 64, 16), steps, device);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kIllegal);
  EXPECT_EQ(status.error().message(), message);
}

// C tiled by blocks of `rows` rows; A is cached in shared memory and fetched by `fetchers` threads.
std::vector<Step> kernel(int64_t rows, int64_t fetchers) {
  return {Split{2, 0, {rows}, true, kPredicate},
          Annotate{2, 0, Annotation::kBlockX},
          Annotate{2, 1, Annotation::kThreadX},
          CacheRead{0, ir::MemoryScope::kShared, {2}},
          ComputeAt{1, 3, 1},
          Fuse{1, {0, 1}},
          Split{1, 0, {fetchers}, true, kPredicate},
          Annotate{1, 1, Annotation::kThreadX}};
}

TEST(DeviceLimits, AKernelThatFits) {
  const Status status = check(test::small::matmul(64, 64, 16), kernel(16, 16), gpu());
  EXPECT_TRUE(status.ok()) << status.error().message();
  // 0 means no limit.
  target::Device unlimited = gpu();
  unlimited.gpu().max_threads_per_block = 0;
  unlimited.gpu().shared_memory_per_block = 0;
  EXPECT_TRUE(check(test::small::matmul(256, 64, 16), kernel(256, 256), unlimited).ok());
}

TEST(DeviceLimits, TooMuch) {
  refuse({Annotate{2, 0, Annotation::kThreadX}, Annotate{2, 1, Annotation::kThreadY}}, gpu(),
         "stage 'C': the kernel has 4096 threads per block, but device 'test-gpu' allows 64");
  refuse(kernel(32, 32), gpu(),
         "stage 'C': the kernel needs 2048 bytes of shared memory per block, but device 'test-gpu' has 1024");
  refuse({Annotate{2, 0, Annotation::kVThread}}, gpu(),
         "stage 'C': loop 'i' has 64 virtual threads, but device 'test-gpu' allows 4");
}

TEST(DeviceLimits, ThreadsOfAKernelAgree) {
  refuse(kernel(16, 8), gpu(),
         "stage 'C': loop 'i.1' binds 16 iterations to threadIdx.x, but another loop of the kernel binds 8");
}

TEST(DeviceLimits, EveryKernelIsBound) {
  refuse({}, gpu(), "stage 'C': no loop of the kernel is bound to a GPU axis");
  refuse({Annotate{2, 0, Annotation::kBlockX}, CacheRead{0, ir::MemoryScope::kShared, {2}}}, gpu(),
         "stage 'A.shared': is in shared memory, but is not computed inside a loop bound to a block axis");
}

TEST(DeviceLimits, CpusHaveNoThreadAxes) {
  target::Device cpu;
  cpu.name = "test-cpu";
  refuse({Annotate{2, 0, Annotation::kBlockX}}, cpu,
         "stage 'C': loop 'i' is bound to blockIdx.x, but device 'test-cpu' is a CPU");
  EXPECT_TRUE(check(test::small::matmul(64, 64, 16), {Annotate{2, 0, Annotation::kParallel}}, cpu).ok());
}

}  // namespace
}  // namespace tensorsmith::sched::device_limits_test
