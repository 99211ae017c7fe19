// The golden models of tests/graph as compiled models, and ONNX's own cases of operators that
// unroll.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../graph/onnx_golden.h"
#include "cli_support.h"

namespace tensorsmith::testing::golden_models_test {
namespace {

namespace fs = std::filesystem;

void expect_compiles_and_matches(const std::string& model, const std::string& data, bool bounded,
                                 const CliOptions& options) {
  for (const char* threads : {"1", "2"}) {
    std::vector<std::string> compile = {"compile", model, "-o", "out", "--untuned", "--threads", threads};
    if (bounded) compile.emplace_back("--bounded");
    const CliResult compiled = run_cli(compile, options);
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
    const CliResult check = run_cli(
        {"run", "out", "--check", data, "--rtol", "1e-4", "--atol", "1e-5", "--threads", threads}, options);
    EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  }
}

TEST(CompiledGoldenModels, MatchOnnxRuntime) {
  for (const graph::testing::GoldenCase& c : graph::testing::golden_cases()) {
    SCOPED_TRACE(c.name);
    const TemporaryDirectory directory;
    CliOptions options;
    options.directory = directory.path();
    std::ofstream(directory.file("model.onnx"), std::ios::binary) << c.model;
    const fs::path data = directory.path() / "test_data_set_0";
    fs::create_directory(data);
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      ASSERT_TRUE(
          graph::write_tensor_proto((data / ("input_" + std::to_string(i) + ".pb")).string(), "", c.inputs[i])
              .ok());
    }
    for (size_t i = 0; i < c.outputs.size(); ++i) {
      ASSERT_TRUE(graph::write_tensor_proto((data / ("output_" + std::to_string(i) + ".pb")).string(), "",
                                            c.outputs[i])
                      .ok());
    }
    expect_compiles_and_matches("model.onnx", data.string(), c.bounded, options);
  }
}

TEST(CompiledCases, Match) {
  const fs::path node = onnx_test_data() / "node";
  if (onnx_test_data().empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  for (const char* name : {"test_if", "test_scan9_sum", "test_scan_sum", "test_adam", "test_adagrad_multiple",
                           "test_nesterov_momentum", "test_batchnorm_example_training_mode",
                           "test_tfidfvectorizer_tf_batch_uniandbigrams_skip5"}) {
    SCOPED_TRACE(name);
    const TemporaryDirectory directory;
    CliOptions options;
    options.directory = directory.path();
    expect_compiles_and_matches((node / name / "model.onnx").string(),
                                (node / name / "test_data_set_0").string(), false, options);
  }
}

}  // namespace
}  // namespace tensorsmith::testing::golden_models_test
