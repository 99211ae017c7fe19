#include "engine/device/gpu_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace tensorsmith::engine::gpu_device_test {
namespace {

using ::testing::HasSubstr;

// Properties of the boards as the driver reports them (deviceQuery's figures).
runtime::GpuProperties h100() {
  runtime::GpuProperties p;
  p.place.platform = &runtime::cuda_platform;
  p.name = "NVIDIA H100 80GB HBM3";
  p.vendor = "NVIDIA";
  p.compute_major = 9;
  p.multiprocessors = 132;
  p.clock_ghz = 1.98;
  p.memory_clock_ghz = 2.619;
  p.memory_bus_bits = 5120;
  p.memory_bandwidth_gbs = 3352.32;
  p.memory_bytes = 84929347584;
  p.l2_bytes = 52428800;
  p.cacheline_bytes = 128;
  p.warp_size = 32;
  p.max_threads_per_block = 1024;
  p.max_threads_per_core = 2048;
  p.max_blocks_per_core = 32;
  p.shared_memory_per_block = 232448;
  p.shared_memory_per_core = 233472;
  p.registers_per_block = p.registers_per_core = 65536;
  p.has_f64 = p.has_f16 = true;
  return p;
}
runtime::GpuProperties a100(const std::string& name, double clock) {
  runtime::GpuProperties p = h100();
  p.name = name;
  p.compute_major = 8;
  p.multiprocessors = 108;
  p.clock_ghz = clock;
  p.memory_bandwidth_gbs = 1555.2;
  p.memory_bytes = 42298834944;
  return p;
}

void expect_sound(const target::Device& device) {
  const Status status = target::check_device(device);
  EXPECT_TRUE(status.ok()) << status.error().message();
  const auto read = target::parse_device(target::to_json(device), "printed");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->key(), device.key());
}

TEST(GpuDevice, KnownBoardsAreThemselves) {
  const target::Device device = gpu_device(h100());
  EXPECT_EQ(device.name, "cuda:0");
  EXPECT_EQ(device.description, "NVIDIA H100 80GB HBM3, NVIDIA");
  EXPECT_EQ(device.key(), target::find_device("h100")->key());
  expect_sound(device);
  // Boards with the same figures, and the property that distinguishes them.
  EXPECT_EQ(gpu_device(a100("NVIDIA A100-SXM4-40GB", 1.41)).key(), target::find_device("a100")->key());
  EXPECT_EQ(gpu_device(a100("NVIDIA A100-PCIE-40GB", 1.41)).key(), target::find_device("a100-pcie")->key());
  runtime::GpuProperties other = h100();
  other.memory_bandwidth_gbs = 4800;
  other.memory_bytes = 150000000000;
  EXPECT_EQ(gpu_device(other).key(), target::find_device("h200")->key());
}

TEST(GpuDevice, PartsOfBoardsAreWhatTheDriverSays) {
  runtime::GpuProperties part = h100();
  part.place.index = 3;
  part.multiprocessors = 60;
  part.memory_bytes /= 2;
  part.memory_bandwidth_gbs /= 2;
  const target::Device device = gpu_device(part);
  expect_sound(device);
  EXPECT_EQ(device.name, "cuda:3");
  EXPECT_EQ(device.kind(), target::DeviceKind::kGpu);
  EXPECT_EQ(device.arch, "nvptx");
  EXPECT_EQ(device.processor, "sm_90");
  EXPECT_EQ(device.gpu().multiprocessors, 60);
  EXPECT_DOUBLE_EQ(device.memory_bandwidth_gbs, 1676.16);
  EXPECT_DOUBLE_EQ(device.peak_f32_gflops, 60 * 1.98 * 128 * 2);
  EXPECT_EQ(device.gpu().shared_memory_per_block, 232448);
  EXPECT_EQ(device.launch_overhead_us, target::find_device("h100")->launch_overhead_us);
}

TEST(GpuDevice, NewArchitecturesTakeAfterTheLastKnown) {
  runtime::GpuProperties next = h100();
  next.compute_major = 12;
  next.multiprocessors = 170;
  const target::Device device = gpu_device(next);
  expect_sound(device);
  EXPECT_EQ(device.processor, "sm_120");
  EXPECT_EQ(device.gpu().lanes, target::find_device("h100")->gpu().lanes);
  runtime::GpuProperties old = h100();
  old.compute_major = 6;
  old.compute_minor = 2;
  EXPECT_EQ(gpu_device(old).gpu().lanes, target::find_device("gtx1080ti")->gpu().lanes);
}

TEST(GpuDevice, OpenClDevicesMaySayLittle) {
  runtime::GpuProperties p;
  p.place = {&runtime::opencl_platform, 1};
  p.name = "Some board";
  p.multiprocessors = 4;
  p.max_threads_per_block = 16;
  p.shared_memory_per_block = 32768;
  p.memory_bytes = int64_t{1} << 32;
  p.has_f16 = true;
  const target::Device device = gpu_device(p);
  expect_sound(device);
  EXPECT_EQ(device.name, "opencl:1");
  EXPECT_EQ(device.arch, "opencl");
  EXPECT_EQ(device.processor, "Some board");
  EXPECT_EQ(device.gpu().warp_size, 16);
  EXPECT_EQ(device.memory_gb, 4);
  EXPECT_TRUE(device.has_feature("fp16"));
  EXPECT_FALSE(device.has_feature("fp64"));
}

TEST(GpuDevice, NamesSayWhere) {
  const auto place = [](std::string_view spec) { return parse_gpu_place(spec).value(); };
  EXPECT_EQ(place("cuda"), (GpuPlace{&runtime::cuda_platform, 0}));
  EXPECT_EQ(place("cuda:12"), (GpuPlace{&runtime::cuda_platform, 12}));
  EXPECT_EQ(place("opencl:1"), (GpuPlace{&runtime::opencl_platform, 1}));
  for (const char* other : {"local", "v100", "cudax", "./cuda", "opencl.json", ""})
    EXPECT_EQ(place(other), std::nullopt);
  for (const char* wrong : {"cuda:", "cuda:x", "opencl:-1", "opencl:0:threads=2", "cuda:99999999999"}) {
    const auto parsed = parse_gpu_place(wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message(), HasSubstr(std::string(wrong)));
  }
  EXPECT_EQ(gpu_place(gpu_device(h100())), (GpuPlace{&runtime::cuda_platform, 0}));
  EXPECT_EQ(gpu_place(*target::find_device("v100")), std::nullopt);
}

TEST(GpuDevice, OtherNamesAreTargets) {
  EXPECT_EQ(find_device("v100")->key(), target::find_device("v100")->key());
  const auto unknown = find_device("toaster");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message(), HasSubstr("the GPUs of this machine are cuda[:N] and opencl[:N]"));
  EXPECT_FALSE(find_device("cuda:x").ok());
}

TEST(GpuDevice, FindsThoseOfThisMachine) {
  const FoundGpus found = find_gpus();
  for (const target::Device& device : found.devices) {
    expect_sound(device);
    const auto again = find_device(device.name);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(again->key(), device.key());
  }
  const auto first = find_device("opencl");
  if (!first.ok()) {
    EXPECT_FALSE(std::getenv("TENSORSMITH_REQUIRE_OPENCL")) << first.error().message();
    GTEST_SKIP() << first.error().message();
  }
  EXPECT_EQ(first->name, "opencl:0");
  EXPECT_EQ(find_device("opencl:99").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tensorsmith::engine::gpu_device_test
