// `run` as a user sees it: formats of outputs, JSON, and messages about missing folders.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../graph/onnx_model_builder.h"
#include "base/processors.h"
#include "cli_support.h"
#include "tools/npy.h"

namespace tensorsmith::tools::run_cli_test {
namespace {

using testing::CliResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_cli;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

class RunCli : public ::testing::Test {
 protected:
  RunCli() {
    options_.directory = folder_.path();
    graph::testing::ModelBuilder builder;
    builder.input("x", {2, 3}).output("y").output("z").node("Relu", {"x"}, {"y"}).node("Neg", {"x"}, {"z"});
    std::ofstream(folder_.file("m.onnx"), std::ios::binary) << builder.bytes();
    lower::Tensor x = lower::Tensor::zeros(ir::DType::kF32, {2, 3});
    for (int64_t i = 0; i < 6; ++i) x.set(i, ir::scalar_float(ir::DType::kF32, static_cast<double>(i) - 2.5));
    EXPECT_TRUE(write_npy(folder_.file("x.npy"), x).ok());
    EXPECT_EQ(cli({"compile", "m.onnx", "-o", "out", "--untuned"}).exit_code, 0);
  }
  CliResult cli(const Words& words) const { return run_cli(words, options_); }
  CliResult run(const Words& more) const {
    Words words = {"run", "out", "--input", "x=x.npy"};
    words.insert(words.end(), more.begin(), more.end());
    return cli(words);
  }
  std::string content(const std::string& name) const {
    std::ifstream file(folder_.file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void expect_error(const Words& words, const std::vector<std::string>& says) const {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 1) << ::testing::PrintToString(words);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& word : says) EXPECT_THAT(result.err, HasSubstr(word));
  }

  testing::TemporaryDirectory folder_;
  testing::CliOptions options_;
};

TEST_F(RunCli, OutputsAreArraysOfNumpy) {
  const CliResult result = run({"--output", "results"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("results/output_0.npy: 'y' f32 2x3"));
  const auto y = parse_npy(content("results/output_0.npy"), "output_0.npy");
  const auto z = parse_npy(content("results/output_1.npy"), "output_1.npy");
  ASSERT_TRUE(y.ok() && z.ok());
  EXPECT_THAT(y->shape, ElementsAre(2, 3));
  for (int64_t i = 0; i < 6; ++i) {
    const double x = static_cast<double>(i) - 2.5;
    EXPECT_EQ(y->at(i).f, std::max(x, 0.0));
    EXPECT_EQ(z->at(i).f, -x);
  }
  // Written outputs can be inputs again, and the next run replaces them.
  EXPECT_EQ(cli({"run", "out", "--input", "x=results/output_1.npy", "--output", "again"}).exit_code, 0);
  EXPECT_EQ(run({"--output", "results"}).exit_code, 0);
}

TEST_F(RunCli, OutputsAreTensorProtosWhereThatIsAsked) {
  const CliResult result = run({"--output", "results", "--format", "pb"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  onnx::TensorProto tensor;
  ASSERT_TRUE(tensor.ParseFromString(content("results/output_1.pb")));
  EXPECT_EQ(tensor.name(), "z");
  EXPECT_THAT(tensor.dims(), ElementsAre(2, 3));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "results/output_0.npy"));
  // The layout of ONNX's test data, which --check reads.
  std::filesystem::copy(folder_.path() / "results", folder_.path() / "set");
  onnx::TensorProto x;
  x.set_data_type(onnx::TensorProto::FLOAT);
  x.add_dims(2);
  x.add_dims(3);
  for (int i = 0; i < 6; ++i) x.add_float_data(static_cast<float>(i) - 2.5F);
  std::ofstream(folder_.file("set/input_0.pb"), std::ios::binary) << x.SerializeAsString();
  EXPECT_EQ(cli({"run", "out", "--check", "set"}).exit_code, 0);
  EXPECT_EQ(run({"--format", "pb"}).exit_code, 2) << "without --output";
  EXPECT_EQ(run({"--output", "r", "--format", "xml"}).exit_code, 2);
}

TEST_F(RunCli, ArraysOfOthersStay) {
  std::filesystem::create_directory(folder_.path() / "theirs");
  // Like numpy.save: the header is padded with no more spaces than needed, and the elements begin
  // at byte 128.
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  header.resize(117, ' ');
  const std::string theirs =
      std::string("\x93NUMPY\x01\x00", 8) + '\x76' + std::string(1, '\0') + header + "\n" + "abcd";
  ASSERT_TRUE(parse_npy(theirs, "theirs").ok());
  std::ofstream(folder_.file("theirs/output_0.npy"), std::ios::binary) << theirs;
  const CliResult refused = run({"--output", "theirs"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("theirs/output_0.npy"));
  EXPECT_EQ(content("theirs/output_0.npy"), theirs);
  EXPECT_EQ(run({"--output", "theirs", "--force"}).exit_code, 0);
}

TEST_F(RunCli, JsonHasTheValuesOrTheFiles) {
  const CliResult values = run({"--json"});
  ASSERT_EQ(values.exit_code, 0) << values.err;
  EXPECT_EQ(Json::parse(values.out), Json::parse(R"({"outputs": [
      {"output": "y", "dtype": "f32", "shape": [2, 3], "values": [0, 0, 0, 0.5, 1.5, 2.5]},
      {"output": "z", "dtype": "f32", "shape": [2, 3], "values": [2.5, 1.5, 0.5, -0.5, -1.5, -2.5]}]})"));
  const CliResult files = run({"--json", "--output", "results"});
  ASSERT_EQ(files.exit_code, 0) << files.err;
  const Json outputs = Json::parse(files.out)["outputs"];
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[1]["file"], "results/output_1.npy");
  EXPECT_FALSE(outputs[1].contains("values"));
}

TEST_F(RunCli, FoldersThatAreNotThere) {
  const CliResult missing = cli({"run", "out", "--check", "nowhere"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("nowhere: there is no such folder"));
  expect_error({"run", "out", "--check", "m.onnx"}, {"m.onnx: is a file"});
  std::filesystem::create_directory(folder_.path() / "empty");
  expect_error({"run", "out", "--check", "empty"}, {"empty: ", "input_0.pb", "test_data_set_"});
  // `report` takes databases and folders: a missing name is not taken for a second database.
  ASSERT_EQ(cli({"tune", "m.onnx", "-o", "tuned", "--trials", "2", "--db", "a.db", "--quiet"}).exit_code, 0);
  expect_error({"report", "a.db", "nowhere", "-o", "page.html"},
               {"nowhere: there is no such file or folder"});
  expect_error({"report", "nowhere", "tuned", "-o", "page.html"},
               {"nowhere: there is no such file or folder"});
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "page.html"));
}

TEST_F(RunCli, MoreThreadsThanProcessorsAreWarnedOf) {
  const int most = processors().at_once;
  const std::string many = std::to_string(most + 1), all = std::to_string(most);
  const std::string warning =
      "warning: " + many + " threads are more than the " + all + " that can run at once";
  const auto commands = [](const std::string& threads) {
    const Words short_run = {"--runs", "2", "--seconds", "0.01", "--threads", threads};
    Words compiled = {"bench", "out"}, source = {"bench", "m.onnx", "--untuned"};
    compiled.insert(compiled.end(), short_run.begin(), short_run.end());
    source.insert(source.end(), short_run.begin(), short_run.end());
    return std::vector<Words>{
        compiled,
        source,
        {"run", "out", "--input", "x=x.npy", "--threads", threads},
        {"run", "out", "--reference", "m.onnx", "--threads", threads},
        {"compile", "m.onnx", "-o", "wide", "--untuned", "--threads", threads},
        {"tune", "m.onnx", "-o", "tuned", "--trials", "2", "--threads", threads, "--quiet"},
        {"report", "out", "-o", "page.html", "--threads", threads}};
  };
  for (const Words& words : commands(many)) {
    const CliResult result = cli(words);
    EXPECT_EQ(result.exit_code, 0) << ::testing::PrintToString(words) << result.err;
    const size_t first = result.err.find(warning);
    EXPECT_NE(first, std::string::npos) << ::testing::PrintToString(words) << result.err;
    EXPECT_EQ(result.err.find("can run at once", first + warning.size()), std::string::npos)
        << "said twice: " << result.err;
  }
  for (const Words& words : commands(all))
    EXPECT_THAT(cli(words).err, Not(HasSubstr("can run at once"))) << ::testing::PrintToString(words);
  // The thread count of another machine causes no warning here.
  const CliResult other = cli({"compile", "m.onnx", "-o", "wide", "--untuned", "--device", "epyc-7763"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.err, Not(HasSubstr("warning")));
}

}  // namespace
}  // namespace tensorsmith::tools::run_cli_test
