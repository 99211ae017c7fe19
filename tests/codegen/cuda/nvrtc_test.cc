// NVRTC needs no GPU. TENSORSMITH_NVRTC names the folder with its library. Without it, the tests
// are skipped, or fail if TENSORSMITH_REQUIRE_NVRTC is set, as scripts/test does.
#include "codegen/cuda/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/scratch_directory.h"

namespace tensorsmith::codegen::nvrtc_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKernels = R"(
extern "C" __global__ void add(const float* a, const float* b, float* c) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = a[i] + b[i];
}
// 512 values a thread at places that are not known before it runs: no registers, local memory.
extern "C" __global__ void scattered(const int* a, float* c) {
  float r[512];
  for (int i = 0; i < 512; ++i) r[i] = i * a[0];
  for (int i = 0; i < 512; ++i) r[a[i]] += 1;
  float s = 0;
  for (int i = 0; i < 512; ++i) s += r[a[512 + i]];
  c[0] = s;
}
// 64 values that are all needed in each step, and 2048 threads a multiprocessor, so 32 registers each: spills.
extern "C" __global__ void __launch_bounds__(1024, 2) crowded(const float* a, float* c) {
  __shared__ float shared[256];
  float r[64];
  for (int i = 0; i < 64; ++i) r[i] = a[i * 64 + threadIdx.x];
  shared[threadIdx.x & 255] = r[3];
  __syncthreads();
  const float z = shared[threadIdx.x ^ 1];
  for (int k = 0; k < 64; ++k) {
#pragma unroll
    for (int i = 0; i < 64; ++i) r[i] = r[i] * r[(i + 1) & 63] + z;
  }
  for (int i = 0; i < 64; ++i) c[i * 64 + threadIdx.x] = r[i];
}
)";

TEST(NvrtcLibrary, IsTheOneThatIsNamed) {
  const auto scratch = ScratchDirectory::create("nvrtc_test");
  ASSERT_TRUE(scratch.ok());
  std::ofstream(scratch->file("libnvrtc.so.12")) << "no library";
  const std::vector<std::string> folders = {"/no/such/folder", scratch->file("")};
  const auto opened = Nvrtc::open(folders);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(opened.error().message(),
              AllOf(HasSubstr(scratch->file("")), HasSubstr("nvidia-cuda-nvrtc-cu12")));
}

class NvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("TENSORSMITH_NVRTC");
    auto opened = Nvrtc::open(std::vector<std::string>(folder ? 1 : 0, folder ? folder : ""));
    if (!opened.ok()) {
      ASSERT_FALSE(std::getenv("TENSORSMITH_REQUIRE_NVRTC")) << opened.error().message();
      GTEST_SKIP() << opened.error().message();
    }
    nvrtc_ = std::move(opened).value();
  }
  std::shared_ptr<const Nvrtc> nvrtc_;
};

TEST_F(NvrtcTest, SaysWhatItCan) {
  EXPECT_GE(nvrtc_->version().first, 12);
  EXPECT_THAT(nvrtc_->architectures(), ::testing::IsSupersetOf({75, 80, 90}));
}

TEST_F(NvrtcTest, MakesMachineCodeAndSaysWhatItTakes) {
  for (const char* architecture : {"sm_75", "sm_80", "sm_90a"}) {
    SCOPED_TRACE(architecture);
    const auto module = nvrtc_->compile(kKernels, architecture);
    ASSERT_TRUE(module.ok()) << module.error().message();
    ASSERT_GT(module->cubin.size(), 64u);
    EXPECT_EQ(std::string(module->cubin.data(), 4),
              "\x7f"
              "ELF");
    EXPECT_EQ(module->cubin[18], '\xbe');  // e_machine: EM_CUDA is 190
    ASSERT_EQ(module->kernels.size(), 3u);
    const KernelResources& add = module->kernels[0];
    EXPECT_EQ(add.symbol, "add");
    EXPECT_GE(add.registers, 4);  // three addresses and more
    EXPECT_LE(add.registers, 32);
    EXPECT_EQ(add.shared_bytes, 0);
    EXPECT_EQ(add.stack_bytes, 0);
    EXPECT_EQ(add.spill_store_bytes, 0);
    const KernelResources& crowded = module->kernels[1];
    EXPECT_EQ(crowded.symbol, "crowded");
    // 65,536 registers for two blocks of 1024 threads; sm_75 runs only one such block.
    EXPECT_LE(crowded.registers, std::string(architecture) == "sm_75" ? 64 : 32);
    EXPECT_EQ(crowded.shared_bytes, 1024);
    EXPECT_GT(crowded.spill_store_bytes, 0);
    EXPECT_GT(crowded.spill_load_bytes, 0);
    EXPECT_GT(crowded.stack_bytes, 0);
    EXPECT_EQ(crowded.barriers, 1);
    const KernelResources& scattered = module->kernels[2];
    EXPECT_EQ(scattered.symbol, "scattered");
    EXPECT_GE(scattered.stack_bytes, 2048);
    EXPECT_EQ(scattered.spill_store_bytes, 0);
  }
}

TEST_F(NvrtcTest, TakesFlags) {
  const std::vector<std::string> flags = {"--maxrregcount=16", "-DWIDTH=3"};
  const auto module = nvrtc_->compile(
      "extern \"C\" __global__ void k(float* a) { __shared__ float s[WIDTH]; s[threadIdx.x] = a[0]; "
      "__syncthreads();"
      "a[threadIdx.x] = s[WIDTH - 1 - threadIdx.x]; }",
      "sm_80", flags);
  ASSERT_TRUE(module.ok()) << module.error().message();
  EXPECT_LE(module->kernels.at(0).registers, 16);
  EXPECT_EQ(module->kernels.at(0).shared_bytes, 12);
}

TEST_F(NvrtcTest, SaysInOneLineWhatItRefuses) {
  const auto wrong =
      nvrtc_->compile("extern \"C\" __global__ void k(float* a) {\n  a[0] = missing_name;\n}", "sm_80");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(wrong.error().message(),
              AllOf(HasSubstr("NVRTC 1"), HasSubstr("kernel.cu(2): error: identifier \"missing_name\""),
                    Not(HasSubstr("\n"))));
  for (const char* unknown : {"sm_10", "sm_", "gfx908", ""}) {
    const auto none = nvrtc_->compile(kKernels, unknown);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(none.error().message(),
                AllOf(HasSubstr("unknown architecture '" + std::string(unknown) + "'"), HasSubstr("sm_80")));
  }
  const std::vector<std::string> flags = {"--no-such-flag"};
  const auto flagged = nvrtc_->compile(kKernels, "sm_80", flags);
  ASSERT_FALSE(flagged.ok());
  EXPECT_THAT(flagged.error().message(), HasSubstr("no-such-flag"));
}

// Text in the format of ptxas 12.9.
TEST(PtxasLog, IsRead) {
  const auto kernels = parse_ptxas_log(
      "kernel.cu(3): warning #177-D: variable \"x\" was declared but never referenced\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'crowded' for 'sm_80'\n"
      "ptxas info    : Function properties for crowded\n"
      "ptxas         .     520 bytes stack frame, 1212 bytes spill stores, 1196 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 520 bytes cumulative stack size, 1024 bytes smem, "
      "368 bytes cmem[0]\n"
      "ptxas info    : Compile time = 177.564 ms\n"
      "ptxas info    : Compiling entry function 'add' for 'sm_80'\n"
      "ptxas info    : Function properties for add\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 12 registers, 376 bytes cmem[0]");
  ASSERT_TRUE(kernels.ok());
  const KernelResources crowded{"crowded", 32, 1024, 520, 1212, 1196, 1}, add{"add", 12, 0, 0, 0, 0, 0};
  EXPECT_EQ(*kernels, (std::vector<KernelResources>{add, crowded}));
  EXPECT_TRUE(parse_ptxas_log("")->empty());
}

TEST(PtxasLog, WithoutFiguresIsAnError) {
  const auto kernels = parse_ptxas_log("ptxas info    : Compiling entry function 'add' for 'sm_80'\n");
  ASSERT_FALSE(kernels.ok());
  EXPECT_THAT(kernels.error().message(), HasSubstr("kernel add"));
}

}  // namespace
}  // namespace tensorsmith::codegen::nvrtc_test
