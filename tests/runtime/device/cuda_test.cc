// The CUDA side against a driver that computes on the host (fake_cuda.cc).
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "runtime/device/fake_cuda.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::runtime::cuda_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = ::dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << ::dlerror();
    find("fake_cuda_take_log", take_log_);
    find("fake_cuda_fail", fail_);
    find("fake_cuda_alive", alive_);
    find("fake_cuda_first_address", first_address_);
    fail_(nullptr, 0);
    auto gpu = open_gpu({&cuda_platform, 0}, FAKE_CUDA);
    ASSERT_TRUE(gpu.ok()) << gpu.error().message();
    gpu_ = std::move(gpu).value();
    take_log_();
  }
  void TearDown() override {
    gpu_.reset();
    EXPECT_EQ(alive_(), 0) << "not everything was given back";
    ::dlclose(library_);
  }

  std::unique_ptr<GpuMemory> on_device(const std::vector<float>& values) {
    auto memory = gpu_->allocate(static_cast<int64_t>(values.size() * sizeof(float)));
    EXPECT_TRUE(memory.ok());
    EXPECT_TRUE(gpu_->copy_in((*memory)->all(), values.data()).ok());
    return std::move(memory).value();
  }
  std::vector<float> from_device(GpuSpan span) {
    std::vector<float> values(static_cast<size_t>(span.bytes) / sizeof(float));
    EXPECT_TRUE(gpu_->copy_out(span, values.data()).ok());
    return values;
  }
  std::unique_ptr<GpuModule> load(std::string_view text) {
    auto module = gpu_->load(text);
    EXPECT_TRUE(module.ok());
    return std::move(module).value();
  }
  std::unique_ptr<GpuSequence> sequence() {
    auto made = gpu_->make_sequence();
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }

  void* library_ = nullptr;
  const char* (*take_log_)() = nullptr;
  void (*fail_)(const char*, int) = nullptr;
  int (*alive_)() = nullptr;
  unsigned long long (*first_address_)() = nullptr;
  std::unique_ptr<Gpu> gpu_;

 private:
  template <typename F>
  void find(const char* name, F*& function) {
    function = reinterpret_cast<F*>(::dlsym(library_, name));
    ASSERT_TRUE(function) << name;
  }
};

int count(const std::string& log, const std::string& line) {
  int found = 0;
  for (size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++found;
  return found;
}

Launch launch_of(std::string symbol, std::vector<LaunchArgument> arguments, int64_t shared_bytes = 0) {
  return {std::move(symbol), {2, 1, 1}, {4, 1, 1}, shared_bytes, std::move(arguments)};
}

const std::vector<float> kEight = {1, 2, 3, 4, 5, 6, 7, 8};

TEST_F(Cuda, SaysWhatTheDeviceIs) {
  const GpuProperties& p = gpu_->properties();
  EXPECT_EQ(p.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(p.driver, "12.8");
  EXPECT_EQ(p.compute_major, 9);
  EXPECT_EQ(p.compute_minor, 0);
  EXPECT_EQ(p.multiprocessors, 132);
  EXPECT_DOUBLE_EQ(p.clock_ghz, 1.98);
  EXPECT_NEAR(p.memory_bandwidth_gbs, 3352, 1);  // NVIDIA's data sheet: 3.35 TB/s
  EXPECT_EQ(p.memory_bytes, int64_t{80} << 30);
  EXPECT_EQ(p.l2_bytes, 50 << 20);
  EXPECT_EQ(p.warp_size, 32);
  EXPECT_EQ(p.max_threads_per_block, 1024);
  EXPECT_EQ(p.max_threads_per_core, 2048);
  EXPECT_EQ(p.max_blocks_per_core, 32);
  EXPECT_EQ(p.max_block, (std::array<int64_t, 3>{1024, 1024, 64}));
  EXPECT_EQ(p.max_grid, (std::array<int64_t, 3>{2147483647, 65535, 65535}));
  EXPECT_EQ(p.shared_memory_per_block, 227 << 10);
  EXPECT_EQ(p.shared_memory_per_core, 228 << 10);
  EXPECT_EQ(p.registers_per_core, 65536);
  const auto all = list_gpus(cuda_platform, FAKE_CUDA);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[1].name, "NVIDIA Other");
  EXPECT_EQ((*all)[1].place.index, 1);
}

TEST_F(Cuda, LaunchesWithArgumentsInOrder) {
  const auto a = on_device(kEight), b = on_device(std::vector<float>(8, 10)),
             c = on_device(std::vector<float>(8));
  const auto module = load("fake more add");
  const auto run = sequence();
  Launch launch = launch_of("add", {{1, 0}, {2, 0}, {0, 0}});
  launch.grid = {1, 2, 1};
  launch.block = {2, 2, 1};
  const std::vector<GpuSpan> buffers = {c->all(), a->all(), b->all()};
  ASSERT_TRUE(run->add(*module, std::span(&launch, 1), buffers, {}).ok());
  take_log_();
  ASSERT_TRUE(run->run().ok());
  EXPECT_THAT(take_log_(), HasSubstr("cuLaunchKernel add grid 1 2 1 block 2 2 1 shared 0\n"));
  EXPECT_EQ(from_device(c->all()), (std::vector<float>{11, 12, 13, 14, 15, 16, 17, 18}));
}

TEST_F(Cuda, BorrowsMemoryOfOthers) {
  const auto own = gpu_->allocate(1024);
  ASSERT_TRUE(own.ok());
  const std::vector<float> zeros(256);
  ASSERT_TRUE(gpu_->copy_in((*own)->all(), zeros.data()).ok());
  const unsigned long long address = first_address_();
  const auto part = gpu_->borrow(reinterpret_cast<void*>(address + 64), 32);
  ASSERT_TRUE(part.ok()) << part.error().message();
  ASSERT_TRUE(gpu_->copy_in((*part)->all(), kEight.data()).ok());
  EXPECT_EQ(from_device({own->get(), 64, 32}), kEight);
  const auto refused = [&](unsigned long long at, int64_t bytes) {
    const auto memory = gpu_->borrow(reinterpret_cast<void*>(at), bytes);
    return memory.ok() ? "" : memory.error().message();
  };
  EXPECT_THAT(refused(address + 1024, 4), HasSubstr("not allocated by the driver"));
  EXPECT_THAT(refused(address + 960, 65), HasSubstr("holds 64 bytes"));
  EXPECT_THAT(refused(address + 4, 4), HasSubstr("not a multiple of 64"));
}

TEST_F(Cuda, EncodesTensorMaps) {
  const auto a = on_device(kEight), c = on_device(std::vector<float>(8)),
             w = on_device(std::vector<float>(32));
  const auto module = load("fake add");
  Launch launch = launch_of("add", {{0, 0}, {-1, 64}, {1, 0}});
  launch.arguments[1].map =
      TensorMap{.element_bytes = 2, .extents = {16, 2}, .strides = {32}, .box = {16, 8}, .swizzle_bytes = 32};
  const std::vector<GpuSpan> buffers = {a->all(), c->all()};
  const auto run = sequence();
  take_log_();
  ASSERT_TRUE(run->add(*module, std::span(&launch, 1), buffers, w->all()).ok());
  EXPECT_THAT(take_log_(), HasSubstr("cuTensorMapEncodeTiled type 1 extents 16 2 strides 32 box 16/1 8/1 "
                                     "interleave 0 swizzle 1 promotion 3 fill 0\n"));
  ASSERT_TRUE(run->run().ok());
  EXPECT_EQ(from_device(c->all()), kEight);
  // Two lines take 64 bytes, but only 32 bytes of the workspace are left at this offset.
  launch.arguments[1].workspace_offset = 96;
  const Status large = sequence()->add(*module, std::span(&launch, 1), buffers, w->all());
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(large.error().message(), HasSubstr("a map of 64 bytes does not fit a buffer of 32"));
  launch.arguments[1].map->box[0] = 8;
  const Status narrow = sequence()->add(*module, std::span(&launch, 1), buffers, w->all());
  ASSERT_FALSE(narrow.ok());
  EXPECT_THAT(narrow.error().message(), HasSubstr("lines of a box must be as long as the swizzle"));
}

TEST_F(Cuda, RunsSeveralLaunchesAsOneGraph) {
  const auto a = on_device(kEight), c = on_device(std::vector<float>(8)),
             w = on_device(std::vector<float>(32));
  const auto module = load("fake more add");
  const auto run = sequence();
  // The second value of the workspace is first a + a, then incremented; the output adds a.
  const LaunchArgument value{-1, 64};
  const std::vector<Launch> launches = {launch_of("add", {{0, 0}, {0, 0}, value}), launch_of("more", {value}),
                                        launch_of("add", {value, {0, 0}, {1, 0}})};
  EXPECT_EQ(gpu_->workspace_bytes(launches, 128), 128);
  const std::vector<GpuSpan> buffers = {a->all(), c->all()};
  ASSERT_TRUE(run->add(*module, launches, buffers, w->all()).ok());
  take_log_();
  ASSERT_TRUE(run->run().ok());
  ASSERT_TRUE(run->run().ok());
  const std::string log = take_log_();
  EXPECT_EQ(count(log, "cuStreamBeginCapture\n"), 1);
  EXPECT_EQ(count(log, "cuStreamEndCapture\n"), 1);
  EXPECT_EQ(count(log, "cuGraphInstantiateWithFlags\n"), 1);
  EXPECT_EQ(count(log, "cuGraphLaunch\n"), 2);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(from_device(c->all())[i], 3 * kEight[i] + 1);
  const auto workspace = from_device(w->all());
  EXPECT_EQ(workspace[0], 0);
  EXPECT_EQ(workspace[16], 3);
}

TEST_F(Cuda, TimesByEvents) {
  const auto a = on_device(kEight);
  const auto module = load("fake more");
  const auto run = sequence();
  const Launch launch = launch_of("more", {{0, 0}});
  const std::vector<GpuSpan> buffers = {a->all()};
  ASSERT_TRUE(run->add(*module, std::span(&launch, 1), buffers, {}).ok());
  for (int i = 0; i < 2; ++i) {
    const auto seconds = run->time();
    ASSERT_TRUE(seconds.ok());
    EXPECT_DOUBLE_EQ(*seconds, 0.0025);
  }
  EXPECT_EQ(from_device(a->all())[0], 3);
}

TEST_F(Cuda, AsksForSharedMemoryBeyondTheDefault) {
  const auto a = on_device(kEight);
  const auto module = load("fake add_shared");
  const auto run = sequence();
  const std::vector<LaunchArgument> arguments = {{0, 0}, {0, 0}, {0, 0}};
  const std::vector<Launch> launches = {launch_of("add_shared", arguments, 47 << 10),
                                        launch_of("add_shared", arguments, 100000),
                                        launch_of("add_shared", arguments, 60000)};
  const std::vector<GpuSpan> buffers = {a->all()};
  take_log_();
  ASSERT_TRUE(run->add(*module, launches, buffers, {}).ok());
  const std::string log = take_log_();
  EXPECT_EQ(count(log, "cuFuncSetAttribute"), 1) << log;
  EXPECT_THAT(log, HasSubstr("cuFuncSetAttribute add_shared 8 100000"));
  ASSERT_TRUE(run->run().ok());
  const Launch greedy = launch_of("add_shared", arguments, 232448);
  const Status status = sequence()->add(*module, std::span(&greedy, 1), buffers, {});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(),
              HasSubstr("needs 233472 bytes of shared memory; the device has 232448"));
}

TEST_F(Cuda, WorksFromAnotherThread) {
  const auto a = on_device(kEight);
  std::thread other([&] { EXPECT_EQ(from_device(a->all()), kEight); });
  other.join();
}

TEST_F(Cuda, SaysWhatIsWrongWithAKernel) {
  const auto a = on_device(kEight);
  const auto module = load("fake more");
  const std::vector<GpuSpan> buffers = {a->all()};
  const auto error = [&](const Launch& launch) {
    const Status status = sequence()->add(*module, std::span(&launch, 1), buffers, {});
    EXPECT_FALSE(status.ok());
    return status.ok() ? Error{} : status.error();
  };
  Launch launch = launch_of("mor", {{0, 0}});
  EXPECT_EQ(error(launch).code, ErrorCode::kNotFound);
  EXPECT_EQ(error(launch).message(), "kernel mor: the module has no such kernel");
  launch = launch_of("more", {{0, 0}});
  launch.block = {513, 1, 1};  // the kernel's registers allow 512 threads
  EXPECT_EQ(error(launch).code, ErrorCode::kUnsupported);
  EXPECT_THAT(error(launch).message(), HasSubstr("a block of 513 threads"));
  launch.block = {1, 1, 65};
  EXPECT_THAT(error(launch).message(), HasSubstr("1 to 1024 x 1024 x 64"));
  const auto bad = gpu_->load(std::string_view("no cubin"));
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(bad.error().message(), HasSubstr("CUDA_ERROR_INVALID_IMAGE"));
}

TEST_F(Cuda, SaysWhenMemoryIsOut) {
  const auto memory = gpu_->allocate(int64_t{81} << 30);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(memory.error().message(),
              HasSubstr("cannot allocate 86973087744 bytes; the device has 85899345920"));
  EXPECT_FALSE(gpu_->lost());
}

TEST_F(Cuda, IsLostAfterAnIllegalAddress) {
  fail_("cuStreamSynchronize", 700);
  const Status status = gpu_->synchronize();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(status.error().message(),
              AllOf(HasSubstr("a kernel failed"), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS")));
  EXPECT_TRUE(gpu_->lost());
}

TEST_F(Cuda, LeavesTheCaptureWhenALaunchFails) {
  const auto a = on_device(kEight);
  const auto module = load("fake more");
  const std::vector<GpuSpan> buffers = {a->all()};
  const std::vector<Launch> launches(2, launch_of("more", {{0, 0}}));
  const auto run = sequence();
  ASSERT_TRUE(run->add(*module, launches, buffers, {}).ok());
  fail_("cuLaunchKernel", 701);
  const Status status = run->run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(status.error().message(), HasSubstr("cuLaunchKernel of more"));
  EXPECT_FALSE(gpu_->lost());
  EXPECT_TRUE(gpu_->synchronize().ok());  // the launch was refused during a capture
  EXPECT_TRUE(run->run().ok());
}

TEST_F(Cuda, SaysWhichDevicesThereAre) {
  const auto gpu = open_gpu({&cuda_platform, 2}, FAKE_CUDA);
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(gpu.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(gpu.error().message(), HasSubstr("cuda:2: no such device; the driver shows 2"));
}

TEST_F(Cuda, SaysWhyThereIsNone) {
  fail_("cuInit", 100);
  const auto none = open_gpu({&cuda_platform, 0}, FAKE_CUDA);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message(), HasSubstr("there is no NVIDIA GPU that this process may use"));
  fail_("cuInit", 999);
  const auto broken = open_gpu({&cuda_platform, 0}, FAKE_CUDA);
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().message(), HasSubstr("the driver does not start"));
}

TEST(CudaLibrary, SaysWhatToInstall) {
  const auto gpu = open_gpu({&cuda_platform, 0}, "libno_such_cuda.so.1");
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(gpu.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(gpu.error().message(), AllOf(HasSubstr("libno_such_cuda.so.1"),
                                           HasSubstr("install NVIDIA's driver"), Not(HasSubstr("\n"))));
}

TEST(CudaLibrary, NamesWhatAnOldDriverLacks) {
  const auto gpu = open_gpu({&cuda_platform, 0}, OLD_FAKE_CUDA);
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(gpu.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(gpu.error().message(),
              HasSubstr("has no function cuGraphInstantiateWithFlags; install a newer driver"));
}

}  // namespace
}  // namespace tensorsmith::runtime::cuda_test
