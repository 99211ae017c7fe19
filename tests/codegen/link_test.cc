// Shared libraries made of kernels, loaded with dlopen.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "codegen/runner.h"

namespace tensorsmith::link_test {
namespace {

using ir::DType;

codegen::CompiledKernel scaled_copy(double factor, const std::string& symbol) {
  const ir::Buffer a = ir::make_buffer("A", DType::kF32, {64});
  const ir::Buffer b = ir::make_buffer("B", DType::kF32, {64});
  const ir::Var i("i");
  const ir::Expr value =
      ir::call(ir::Intrinsic::kTanh, {ir::load(a, {i}) * ir::float_imm(DType::kF32, factor)});
  const ir::Stmt body = ir::make_for({i, 64, ir::ForKind::kParallel, {}, 0, ir::make_store(b, {i}, value)});
  return test::backend().compile({"k", {a}, {b}, body}, test::local_devices()[0], {.symbol = symbol}).value();
}

class Link : public ::testing::Test {
 protected:
  Link()
      : path_(std::filesystem::temp_directory_path() /
              ("tensorsmith_link_test." + std::to_string(getpid()) + ".so")) {}
  ~Link() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
};

TEST_F(Link, LibraryHoldsAllKernelsAndNeedsNothing) {
  const auto one = scaled_copy(1, "model_kernel_1");
  const auto two = scaled_copy(2, "model_kernel_2");
  const auto bytes = test::backend().link({one.object, two.object});
  ASSERT_TRUE(bytes.ok()) << bytes.error().message();
  std::ofstream(path_, std::ios::binary).write(bytes->data(), static_cast<std::streamsize>(bytes->size()));
  void* library = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  alignas(64) float in[64];
  alignas(64) float out[64];
  for (int i = 0; i < 64; ++i) in[i] = static_cast<float>(i) / 64;
  void* buffers[] = {in, out};
  TensorsmithKernelContext context{};
  context.num_threads = 1;
  context.parallel_for = [](void*, int64_t n, TensorsmithParallelBody body, void* closure) {
    body(closure, 0, n, 0);
  };
  for (const int k : {1, 2}) {
    auto* kernel =
        reinterpret_cast<TensorsmithKernel>(dlsym(library, ("model_kernel_" + std::to_string(k)).c_str()));
    ASSERT_NE(kernel, nullptr);
    kernel(&context, buffers);
    for (int i = 0; i < 64; ++i) EXPECT_NEAR(out[i], std::tanh(static_cast<double>(in[i]) * k), 1e-6);
  }
  dlclose(library);
}

TEST_F(Link, ErrorsNameTheReason) {
  const auto one = scaled_copy(1, "same");
  const auto twice = test::backend().link({one.object, one.object});
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().message(),
              ::testing::AnyOf(::testing::HasSubstr("duplicate symbol: same"),
                               ::testing::HasSubstr("multiple definition of `same'")));
  const auto junk = test::backend().link({{'j', 'u', 'n', 'k'}});
  ASSERT_FALSE(junk.ok());
  EXPECT_EQ(junk.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::backend().link({}).error().code, ErrorCode::kInvalidArgument);
  // Linking still works after an error.
  EXPECT_TRUE(test::backend().link({one.object}).ok());
}

}  // namespace
}  // namespace tensorsmith::link_test
