// The backend interface: the list of backends, the errors of each, and the structure of generated
// C.
#include "codegen/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "codegen/c/codegen.h"
#include "codegen/isas.h"
#include "codegen/launch.h"
#include "runtime/device/gpu_platform.h"

namespace tensorsmith::backend_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// y[i] = x[i] + x[i] for 64 elements in vectors of 16.
ir::Program doubled(const std::string& input = "x", const std::string& loop = "i") {
  const ir::Buffer x = ir::make_buffer(input, ir::DType::kF32, {64});
  const ir::Buffer y = ir::make_buffer("y", ir::DType::kF32, {64});
  const ir::Var i(loop), v("v");
  const ir::Expr at = ir::Expr(i) * 16 + ir::Expr(v);
  const ir::Stmt vector = ir::make_for({v,
                                        16,
                                        ir::ForKind::kVectorized,
                                        {},
                                        0,
                                        ir::make_store(y, {at}, ir::load(x, {at}) + ir::load(x, {at}))});
  return {"doubled", {x}, {y}, ir::make_for({i, 4, ir::ForKind::kParallel, {}, 0, vector})};
}

TEST(Backends, AreFoundByTheirNames) {
  std::set<std::string_view> names;
  for (const codegen::Backend* backend : codegen::backends()) {
    EXPECT_TRUE(names.insert(backend->name()).second);
    EXPECT_FALSE(backend->version().empty());
    const auto found = codegen::find_backend(backend->name());
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, backend);
  }
  EXPECT_EQ(names.size(), 4u);
  for (const auto& [device, backend] :
       {std::pair("epyc-9654", "llvm"), {"a100", "cuda"}, {"h100", "cuda"}, {"mi50", "opencl"}})
    EXPECT_EQ(codegen::backend_for(target::find_device(device).value()).value()->name(), backend);
  for (const runtime::GpuPlatform* platform : runtime::gpu_platforms()) {
    target::Device device = target::find_device("a100").value();
    for (const std::string_view arch : platform->archs) {
      device.arch = arch;
      EXPECT_TRUE(codegen::backend_for(device).ok()) << arch;
      EXPECT_EQ(runtime::platform_of(arch), platform) << "the architecture of one platform only";
    }
  }
  target::Device strange = target::find_device("a100").value();
  strange.arch = "abacus";
  EXPECT_EQ(codegen::backend_for(strange).error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(codegen::backend_for(strange).error().message(),
              HasSubstr("no GPU platform runs the architecture 'abacus'; the platforms are cuda and opencl"));
  target::Device processor = target::find_device("epyc-9654").value();
  processor.arch = "nvptx";
  const auto compiled = codegen::find_backend("cuda").value()->compile(doubled(), processor, {});
  EXPECT_EQ(compiled.error().code, ErrorCode::kUnsupported);
  const auto none = codegen::find_backend("fortran");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message(), HasSubstr("llvm, c"));
}

// The fields that a loader checks are those of the kernel interface, in the same order.
TEST(Launch, DemandsFollowTheInterface) {
  const std::vector<int64_t> demands = codegen::demands_of(doubled(), 128, 64);
  ASSERT_EQ(demands.size(), static_cast<size_t>(TENSORSMITH_INFO_BUFFER_BYTES) + 2);
  EXPECT_EQ(demands[TENSORSMITH_INFO_ABI_VERSION], TENSORSMITH_KERNEL_ABI_VERSION);
  EXPECT_EQ(demands[TENSORSMITH_INFO_INPUTS], 1);
  EXPECT_EQ(demands[TENSORSMITH_INFO_OUTPUTS], 1);
  EXPECT_EQ(demands[TENSORSMITH_INFO_SHARED_BYTES], 128);
  EXPECT_EQ(demands[TENSORSMITH_INFO_THREAD_BYTES], 64);
  EXPECT_EQ(demands[TENSORSMITH_INFO_BUFFER_BYTES], 256);
}

TEST(CSource, HoldsVectorsAsLongAsTheDevices) {
  const auto wide = codegen::emit_c(doubled(), test::device_with("avx512"), {.symbol = "k"});
  const auto narrow = codegen::emit_c(doubled(), test::device_with("avx2"), {.symbol = "k"});
  ASSERT_TRUE(wide.ok() && narrow.ok());
  EXPECT_THAT(wide->text, HasSubstr("TS_VECTOR(f32x16, float, 64)"));
  EXPECT_THAT(narrow->text, HasSubstr("TS_VECTOR(f32x8, float, 32)"));
  EXPECT_THAT(narrow->text, Not(HasSubstr("f32x16")));
  // There is a plain C99 version, too.
  EXPECT_THAT(wide->text, HasSubstr("#else"));
  EXPECT_THAT(wide->text, HasSubstr("context->parallel_for(context->pool, 4, k_part0, &args);"));
  // The header has functions of 2, 4, ... 16 lanes.
  for (const auto& [bytes, type] :
       {std::pair(128, "TS_VECTOR(f32x16, float, 64)"), {48, "TS_VECTOR(f32x8, float, 32)"}}) {
    target::Device odd = test::device_with("avx512");
    odd.cpu().vector_bytes = bytes;
    const auto source = codegen::emit_c(doubled(), odd, {.symbol = "k"});
    ASSERT_TRUE(source.ok());
    EXPECT_THAT(source->text, HasSubstr(type));
  }
  target::Device without = test::device_with("avx2");
  without.cpu().vector_bytes = 4;
  const auto plain = codegen::emit_c(doubled(), without, {.symbol = "k"});
  ASSERT_TRUE(plain.ok());
  EXPECT_THAT(plain->text, Not(HasSubstr("TS_VECTOR")));
}

// Names in programs are arbitrary; names in C must not collide with its keywords, the header's
// names or each other.
TEST(CSource, NamesAreIdentifiers) {
  const auto source = codegen::emit_c(doubled("if", "y"), test::device_with("avx2"), {});
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(source->text, HasSubstr("const float* restrict const if_ ="));
  EXPECT_THAT(source->text, HasSubstr("int64_t y_2 = begin"));
  EXPECT_THAT(codegen::emit_c(doubled(), test::device_with("avx2"), {.symbol = "a.b"}).error().message(),
              HasSubstr("not a C identifier"));
}

TEST(CBackend, RefusesWhatTheCompilerHereCannotMake) {
  target::Device other = test::device_with("avx2");
  other.arch = "riscv64";
  const auto foreign = codegen::c_backend().compile(doubled(), other, {});
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(foreign.error().message(), HasSubstr("write C files with --emit c"));
  EXPECT_TRUE(codegen::emit_c(doubled(), other, {}).ok());
  EXPECT_EQ(codegen::emit_c(doubled(), target::find_device("v100").value(), {}).error().code,
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace tensorsmith::backend_test
