// The small models of tests/data/models are imported, compiled untuned and tuned shortly; outputs
// match both ways at 1 and 2 threads. scripts/check_models checks the large ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli_support.h"
#include "graph/graph.h"
#include "runtime/device/test_device.h"

namespace tensorsmith::testing::models_test {
namespace {

namespace fs = std::filesystem;

class SmallModel : public ::testing::TestWithParam<const char*> {};

TEST_P(SmallModel, MatchesItsExpectedOutputs) {
  const fs::path model = fs::path(TENSORSMITH_TEST_MODELS) / GetParam();
  TemporaryDirectory directory;
  CliOptions options;
  options.directory = directory.path();
  const std::string file = (model / "model.onnx").string();
  std::vector<std::string> shape;
  if (std::string(GetParam()) == "super_resolution_10") shape = {"--shape", "input=1x1x224x224"};
  for (const char* threads : {"1", "2"}) {
    std::vector<std::string> compile = {"compile", file, "-o", "untuned", "--untuned", "--threads", threads};
    compile.insert(compile.end(), shape.begin(), shape.end());
    const CliResult compiled = run_cli(compile, options);
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
    const CliResult untuned =
        run_cli({"run", "untuned", "--check", model.string(), "--threads", threads}, options);
    EXPECT_EQ(untuned.exit_code, 0) << untuned.out << untuned.err;

    std::vector<std::string> tune = {
        "tune", file, "-o", "tuned", "--seconds", "5", "--quiet", "--skip-end-to-end", "--threads", threads};
    tune.insert(tune.end(), shape.begin(), shape.end());
    const CliResult tuned = run_cli(tune, options);
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
    const CliResult check =
        run_cli({"run", "tuned", "--check", model.string(), "--threads", threads}, options);
    EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  }
}

// The same models with GPU kernels, on the OpenCL device of this machine: everything for GPUs
// except tuning.
TEST_P(SmallModel, MatchesOnOpenCl) {
  TS_OPENCL_OR_SKIP(gpu);
  const fs::path model = fs::path(TENSORSMITH_TEST_MODELS) / GetParam();
  TemporaryDirectory directory;
  CliOptions options;
  options.directory = directory.path();
  std::vector<std::string> compile = {
      "compile", (model / "model.onnx").string(), "-o", "out", "--device", "opencl", "--untuned"};
  if (std::string(GetParam()) == "super_resolution_10")
    compile.insert(compile.end(), {"--shape", "input=1x1x224x224"});
  const CliResult compiled = run_cli(compile, options);
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_TRUE(fs::exists(directory.path() / "out/kernels.gpu"));
  const CliResult check = run_cli({"run", "out", "--check", model.string()}, options);
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
}

TEST(DeviceOfACompiledModel, IsChosenAmongThoseOfItsInterface) {
  TS_OPENCL_OR_SKIP(gpu);
  const fs::path model = fs::path(TENSORSMITH_TEST_MODELS) / "light_squeezenet";
  TemporaryDirectory directory;
  CliOptions options;
  options.directory = directory.path();
  const CliResult compiled = run_cli(
      {"compile", (model / "model.onnx").string(), "-o", "out", "--device", "opencl", "--untuned"}, options);
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const auto run_on = [&](const std::string& device) {
    return run_cli({"run", "out", "--check", model.string(), "--device", device}, options);
  };
  const auto bench_on = [&](const std::string& device) {
    return run_cli({"bench", "out", "--runs", "1", "--seconds", "0.01", "--device", device}, options);
  };
  EXPECT_EQ(run_on("opencl:0").exit_code, 0);
  EXPECT_EQ(bench_on("opencl:0").exit_code, 0);
  // The device number is used: a device number that does not exist is an error, while the first
  // device would run the model.
  for (const CliResult& none : {run_on("opencl:99"), bench_on("opencl:99")}) {
    EXPECT_NE(none.exit_code, 0);
    EXPECT_THAT(none.err, ::testing::HasSubstr("99"));
  }
  const CliResult other = run_on("cuda:1");
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err, ::testing::HasSubstr("compiled for opencl"));
  const CliResult none = run_on("a100");
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, ::testing::HasSubstr("cuda[:N] or opencl[:N]"));
}

// The authors' model has a fixed batch of 1; the expected outputs of a larger batch are theirs,
// concatenated.
TEST(FixedBatch, IsReplaced) {
  const fs::path model = fs::path(TENSORSMITH_TEST_MODELS) / "light_squeezenet";
  TemporaryDirectory directory;
  CliOptions options;
  options.directory = directory.path();
  fs::create_directory(directory.path() / "batch");
  for (const char* name : {"input_0.pb", "output_0.pb"}) {
    const auto one = graph::read_tensor_proto((model / "test_data_set_0" / name).string());
    ASSERT_TRUE(one.ok());
    lower::Tensor three = *one;
    three.shape[0] = 3;
    for (int copy = 1; copy < 3; ++copy)
      three.data.insert(three.data.end(), one->data.begin(), one->data.end());
    ASSERT_TRUE(graph::write_tensor_proto((directory.path() / "batch" / name).string(), "t", three).ok());
  }
  const CliResult compiled = run_cli(
      {"compile", (model / "model.onnx").string(), "-o", "out", "--untuned", "--shape", "data_0=3x3x224x224"},
      options);
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const CliResult check = run_cli({"run", "out", "--check", "batch"}, options);
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
}

INSTANTIATE_TEST_SUITE_P(Models, SmallModel,
                         ::testing::Values("mnist_8", "super_resolution_10", "ultraface_rfb320", "fastestdet",
                                           "light_squeezenet", "light_shufflenet"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tensorsmith::testing::models_test
