// The small models of tests/data/models: import, compile untuned, tune shortly; outputs match both ways
// at 1 and 2 threads. The large ones are checked by scripts/check_models.
#include <gtest/gtest.h>

#include "cli_support.h"

namespace tensorsmith::testing {
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

INSTANTIATE_TEST_SUITE_P(Models, SmallModel,
                         ::testing::Values("mnist_8", "super_resolution_10", "ultraface_rfb320", "fastestdet",
                                           "light_squeezenet", "light_shufflenet"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tensorsmith::testing
